// One summary under comparison, whoever wrote it: what compare.py does with each of them.
//
// Two libraries list their peers in a table: tidemark_peers.cc (this project's summaries, each with
// all that a rival's update includes: the map from values to keys, the windows, the sort, the
// summary) and rival_peers.cc (other projects' sketches, where their sources are at hand).
// peer_c.cc gives each table a C interface.
#ifndef TIDEMARK_TESTS_BENCH_PEERS_PEER_H_
#define TIDEMARK_TESTS_BENCH_PEERS_PEER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace tidemark::peers {

/// A rank or count that a peer states no bound for.
inline constexpr std::uint64_t kNoBound = ~std::uint64_t{0};

/// Thread: one at a time. Methods that a kind of peer lacks throw std::logic_error.
class Peer {
 public:
  Peer() = default;
  Peer& operator=(const Peer&) = delete;
  virtual ~Peer() = default;

  /// Takes in `count` packed values of the type that the table names.
  virtual void Add(const void* values, std::size_t count) = 0;
  /// Memory of the summary as it counts itself, and the most that it was behind any window.
  virtual std::size_t Bytes() const = 0;
  virtual std::size_t MostBytes() const { return Bytes(); }
  /// Memory beside the summary: windows that are not full, room to sort in.
  virtual std::size_t WindowBytes() const { return 0; }
  /// Length of the form that is sent or stored.
  virtual std::size_t ExportBytes() = 0;
  virtual std::unique_ptr<Peer> Clone() const = 0;
  /// Takes in all that `other`, a peer of the same row, stands for.
  virtual void Merge(const Peer& other) = 0;

  /// One answer for each phi; [low, high] is the certificate of its rank, or kNoBound.
  virtual void Quantiles(std::span<const double> /*phis*/, float* /*values*/,
                         std::uint64_t* /*low*/, std::uint64_t* /*high*/) {
    throw std::logic_error("not a quantile summary");
  }
  /// For each of `count` packed items: its count is stated to lie in [low, high].
  virtual void Counts(const void* /*items*/, std::size_t /*count*/, std::uint64_t* /*low*/,
                      std::uint64_t* /*high*/) {
    throw std::logic_error("not a frequency summary");
  }
  /// How many items are reported for a support.
  virtual std::size_t HeavyHitters(double /*support*/) {
    throw std::logic_error("not a frequency summary");
  }

 protected:
  Peer(const Peer&) = default;
};

/// A row of a table.
struct Variant {
  const char* name;
  const char* kind;     ///< "quantile", "frequency", "sliding"
  const char* value;    ///< what Add takes: "f32", "u32", "u64"
  double epsilon;       ///< the error it is compared at; 0: it promises no rank error
  const char* promise;  ///< of the error, in words
  std::unique_ptr<Peer> (*make)();
  double tail_epsilon = 0;  ///< above 0: promised of the distance from the upper end, from 0.5 on
};

/// The table of the library.
std::span<const Variant> Variants();

}  // namespace tidemark::peers

#endif  // TIDEMARK_TESTS_BENCH_PEERS_PEER_H_
