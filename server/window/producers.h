// Which batches a stream has taken from whom, so that one that comes again is not counted again.
//
// A producer has an id of 128 bits that nobody else has, and numbers its batches to each stream 1,
// 2, ... Of each producer a stream keeps the last number L, which of the kNumbersKept numbers up to
// L were taken, and what each was worth. A number N is
//   new       if N > L (a gap is no fault: what was refused has no number here), if
//             L - kNumbersKept < N <= L and it was not taken, or if N = 1 and the producer is not
//             known;
//   taken     if it is kept and was taken: it is answered as it was then;
//   refused   if N <= L - kNumbersKept, or the producer is not known and N > 1: whether it was
//             taken before cannot be known any more.
//
// Guarantee: while a producer is known, each of its numbers is taken at most once, in whatever
// order and however often they come. For a number is new only while it is not taken, and once it
// was it is `taken` as long as L < N + kNumbersKept and `refused` from then on. Who has at most
// kNumbersKept numbers unanswered, from the oldest to the newest, is never refused for that.
//
// Memory is bounded: beyond a number of producers in all streams the one whose last batch is
// longest ago is forgotten, and all that it sends from then on is refused; except number 1, which
// begins anew. So that even a number 1 that was answered into a cut connection and is sent again
// after its producer was forgotten counts nothing twice, a careful producer's number 1 is an empty
// batch, and it sends no other number before that is answered. Not promised, then: what happens to
// a copy of the batches 1, 2, ... that was held up in some connection until then.
#ifndef TIDEMARK_SERVER_WINDOW_PRODUCERS_H_
#define TIDEMARK_SERVER_WINDOW_PRODUCERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "server/window/ingest_sink.h"

namespace tidemark::server {

/// Bits of a word, and twice the batches that a client library has unanswered by default.
inline constexpr std::uint64_t kNumbersKept = 64;

struct TakenBatch {
  std::uint32_t accepted = 0;  ///< values; a batch of the log has fewer than 2^32
  std::uint32_t refused = 0;
  /// Of this producer's batch that the log took last: when that is durable, this one is.
  std::uint64_t log_sequence = 0;
};

/// What a stream knows of one producer, for its image (stream_image.h).
struct ProducerImage {
  std::array<std::uint64_t, 2> id{};
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t taken = 0;
  /// Of each number taken, the last one first: accepted, refused.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> worth;
};

class StreamProducers;

/// What the producers of all streams take together. Thread: any. Lifetime: outlives its
/// StreamProducers. Costs: about 650 bytes for each producer of a stream.
class ProducerMemory {
 public:
  ProducerMemory() = default;
  /// Of at least one.
  explicit ProducerMemory(std::size_t producers_max) : producers_max_(producers_max) {}
  ProducerMemory(const ProducerMemory&) = delete;
  ProducerMemory& operator=(const ProducerMemory&) = delete;

  /// That are known; one that sends to two streams counts as two.
  std::size_t known() const;
  /// That were forgotten since the call before.
  std::uint64_t TakeForgotten();

 private:
  friend class StreamProducers;
  struct Producer {
    StreamProducers* owner;
    std::array<std::uint64_t, 2> id;
    /// Numbers below are not known of, other than that they are not new.
    std::uint64_t first;
    std::uint64_t last;
    std::uint64_t taken = 0;  ///< bit i: last - i was
    std::uint64_t log_sequence = 0;
    std::uint64_t touched = 0;  ///< rises in the order of `order_`
    /// What number N was worth, at N % kNumbersKept: accepted, refused.
    std::array<std::pair<std::uint32_t, std::uint32_t>, kNumbersKept> worth{};
  };
  void ForgetSurplus();

  using Order = std::list<Producer>;  // the one whose last batch is longest ago in front

  const std::size_t producers_max_ = std::numeric_limits<std::size_t>::max();
  mutable std::mutex mutex_;
  Order order_;                  // guarded by mutex_
  std::uint64_t forgotten_ = 0;  // guarded by mutex_
  std::uint64_t touches_ = 0;    // guarded by mutex_
};

/// The producers of one stream. Thread: any; between Find and Add of a number nobody else may ask
/// for it: the stream's lock is held.
class StreamProducers {
 public:
  explicit StreamProducers(ProducerMemory& memory) : memory_(memory) {}
  ~StreamProducers();
  StreamProducers(const StreamProducers&) = delete;
  StreamProducers& operator=(const StreamProducers&) = delete;

  /// nullopt: the batch is new. Errors: FAILED_PRECONDITION, as above. REQUIRES: batch.numbered().
  absl::StatusOr<std::optional<TakenBatch>> Find(const ProducerBatch& batch) const;
  /// The batch was taken. If its producer is not known (it was forgotten since Find; or a log is
  /// replayed), lower numbers are refused from now on. REQUIRES: batch.numbered().
  void Add(const ProducerBatch& batch, const TakenBatch& taken);

  /// All of them, the one whose last batch is longest ago in front.
  std::vector<ProducerImage> Images() const;
  /// What Images() of another stream gave; the last of them count as the latest of all streams.
  /// Errors: throws std::invalid_argument for what no stream can know. REQUIRES: none is known.
  void Restore(const std::vector<ProducerImage>& images);

 private:
  friend class ProducerMemory;

  ProducerMemory& memory_;
  // Guarded by memory_.mutex_, as what they point to is.
  absl::flat_hash_map<std::array<std::uint64_t, 2>, ProducerMemory::Order::iterator> known_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_PRODUCERS_H_
