// Other projects' sketches as peers, from their C++ sources, where CMake was told where those are
// (TIDEMARK_PEERS_SOURCES; tests/bench/peers/README.md). What is not there is left out of the
// table. Each is fed value by value in one loop, as its interface wants it, with nothing in
// between.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "tests/bench/peers/peer.h"

#ifdef TIDEMARK_PEERS_DATASKETCHES
#include <frequent_items_sketch.hpp>
#include <kll_sketch.hpp>
#include <quantiles_sketch.hpp>
#include <req_sketch.hpp>
#include <tdigest.hpp>
#endif
#ifdef TIDEMARK_PEERS_HDR
#include <hdr/hdr_histogram.h>
#endif
#ifdef TIDEMARK_PEERS_DDSKETCH
#include <ddsketch/ddsketch.h>
#endif

namespace tidemark::peers {
namespace {

void NoBounds(std::size_t count, std::uint64_t* low, std::uint64_t* high) {
  for (std::size_t i = 0; i < count; ++i) low[i] = high[i] = kNoBound;
}

#ifdef TIDEMARK_PEERS_DATASKETCHES
/// KLL, REQ, the classic sketch and the t-digest. They do not say what they hold in memory;
/// compare.py measures it.
template <class Sketch>
class SketchPeer final : public Peer {
 public:
  explicit SketchPeer(Sketch sketch) : sketch_(std::move(sketch)) {}
  void Add(const void* values, std::size_t count) override {
    const auto* next = static_cast<const float*>(values);
    for (std::size_t i = 0; i < count; ++i) sketch_.update(next[i]);
  }
  std::size_t Bytes() const override { return 0; }
  std::size_t ExportBytes() override { return sketch_.serialize().size(); }
  std::unique_ptr<Peer> Clone() const override { return std::make_unique<SketchPeer>(*this); }
  void Merge(const Peer& other) override {
    sketch_.merge(dynamic_cast<const SketchPeer&>(other).sketch_);
  }
  void Quantiles(std::span<const double> phis, float* values, std::uint64_t* low,
                 std::uint64_t* high) override {
    for (std::size_t i = 0; i < phis.size(); ++i) values[i] = sketch_.get_quantile(phis[i]);
    NoBounds(phis.size(), low, high);
  }

 private:
  Sketch sketch_;
};

template <class Sketch, int kSize>
std::unique_ptr<Peer> MakeSketch() {
  return std::make_unique<SketchPeer<Sketch>>(Sketch(kSize));
}
using Kll = datasketches::kll_sketch<float>;
using Req = datasketches::req_sketch<float>;
using Classic = datasketches::quantiles_sketch<float>;
using Digest = datasketches::tdigest<float>;

template <class Item>
class FrequentItemsPeer final : public Peer {
 public:
  explicit FrequentItemsPeer(std::uint8_t log2_size) : sketch_(log2_size) {}
  void Add(const void* values, std::size_t count) override {
    const auto* next = static_cast<const Item*>(values);
    for (std::size_t i = 0; i < count; ++i) sketch_.update(next[i]);
  }
  std::size_t Bytes() const override { return 0; }
  std::size_t ExportBytes() override { return sketch_.serialize().size(); }
  std::unique_ptr<Peer> Clone() const override {
    return std::make_unique<FrequentItemsPeer>(*this);
  }
  void Merge(const Peer& other) override {
    sketch_.merge(dynamic_cast<const FrequentItemsPeer&>(other).sketch_);
  }
  void Counts(const void* items, std::size_t count, std::uint64_t* low,
              std::uint64_t* high) override {
    const auto* next = static_cast<const Item*>(items);
    for (std::size_t i = 0; i < count; ++i) {
      low[i] = sketch_.get_lower_bound(next[i]);
      high[i] = sketch_.get_upper_bound(next[i]);
    }
  }
  std::size_t HeavyHitters(double support) override {
    const auto threshold =
        static_cast<std::uint64_t>(support * static_cast<double>(sketch_.get_total_weight()));
    return sketch_.get_frequent_items(datasketches::NO_FALSE_NEGATIVES, threshold).size();
  }

 private:
  datasketches::frequent_items_sketch<Item> sketch_;
};
template <class Item, int kLog2Size>
std::unique_ptr<Peer> MakeFrequentItems() {
  return std::make_unique<FrequentItemsPeer<Item>>(std::uint8_t{kLog2Size});
}
#endif

#ifdef TIDEMARK_PEERS_HDR
/// Whole numbers from 1 to 10^9 with three digits. It takes no negative values, and values as whole
/// numbers: they are multiplied by a million, which keeps three digits from 0.001 on.
class HdrPeer final : public Peer {
 public:
  HdrPeer() : histogram_(Open()) {}
  HdrPeer(const HdrPeer& other) : Peer(other), histogram_(Open()) {
    hdr_add(histogram_.get(), other.histogram_.get());
  }
  void Add(const void* values, std::size_t count) override {
    const auto* next = static_cast<const float*>(values);
    hdr_histogram* const histogram = histogram_.get();
    for (std::size_t i = 0; i < count; ++i) {
      hdr_record_value(histogram, static_cast<std::int64_t>(next[i] * kScale));
    }
  }
  std::size_t Bytes() const override { return hdr_get_memory_size(histogram_.get()); }
  std::size_t ExportBytes() override { return Bytes(); }
  std::unique_ptr<Peer> Clone() const override { return std::make_unique<HdrPeer>(*this); }
  void Merge(const Peer& other) override {
    hdr_add(histogram_.get(), dynamic_cast<const HdrPeer&>(other).histogram_.get());
  }
  void Quantiles(std::span<const double> phis, float* values, std::uint64_t* low,
                 std::uint64_t* high) override {
    for (std::size_t i = 0; i < phis.size(); ++i) {
      values[i] =
          static_cast<float>(hdr_value_at_percentile(histogram_.get(), 100 * phis[i])) / kScale;
    }
    NoBounds(phis.size(), low, high);
  }

 private:
  static constexpr float kScale = 1e6f;
  struct Close {
    void operator()(hdr_histogram* histogram) const { hdr_close(histogram); }
  };
  using Owned = std::unique_ptr<hdr_histogram, Close>;
  static Owned Open() {
    hdr_histogram* histogram = nullptr;
    if (hdr_init(1, 1'000'000'000, 3, &histogram) != 0) throw std::bad_alloc();
    return Owned(histogram);
  }
  Owned histogram_;
};
#endif

#ifdef TIDEMARK_PEERS_DDSKETCH
class DdPeer final : public Peer {
 public:
  DdPeer() : sketch_(0.01) {}
  void Add(const void* values, std::size_t count) override {
    const auto* next = static_cast<const float*>(values);
    for (std::size_t i = 0; i < count; ++i) sketch_.add(static_cast<double>(next[i]));
  }
  std::size_t Bytes() const override { return 0; }
  std::size_t ExportBytes() override { return 0; }
  std::unique_ptr<Peer> Clone() const override { return std::make_unique<DdPeer>(*this); }
  void Merge(const Peer& other) override {
    sketch_.merge(dynamic_cast<const DdPeer&>(other).sketch_);
  }
  void Quantiles(std::span<const double> phis, float* values, std::uint64_t* low,
                 std::uint64_t* high) override {
    for (std::size_t i = 0; i < phis.size(); ++i) {
      values[i] = static_cast<float>(sketch_.get_quantile_value(phis[i]));
    }
    NoBounds(phis.size(), low, high);
  }

 private:
  ddsketch::DDSketch sketch_;
};
#endif

#if defined(TIDEMARK_PEERS_HDR) || defined(TIDEMARK_PEERS_DDSKETCH)
template <class Row>
std::unique_ptr<Peer> MakeOne() {
  return std::make_unique<Row>();
}
#endif

}  // namespace

std::span<const Variant> Variants() {
  static const std::vector<Variant> variants{
#ifdef TIDEMARK_PEERS_DATASKETCHES
      {"KLL k=268", "quantile", "f32", 0.01, "1.00 %, 99 % confidence", MakeSketch<Kll, 268>},
      {"KLL k=2862", "quantile", "f32", 0.001, "0.100 %, 99 % confidence", MakeSketch<Kll, 2862>},
      {"KLL k=29000", "quantile", "f32", 1e-4, "0.0105 %, 99 % confidence", MakeSketch<Kll, 29000>},
      {"classic k=2048", "quantile", "f32", 0, "0.095 %, 99 % confidence",
       MakeSketch<Classic, 2048>},
      {"REQ k=50 HRA", "quantile", "f32", 0, "relative to 1 - φ", MakeSketch<Req, 50>},
      {"t-digest k=1000", "quantile", "f32", 0, "none", MakeSketch<Digest, 1000>},
#endif
#ifdef TIDEMARK_PEERS_HDR
      {"HdrHistogram 3 digits", "quantile", "f32", 0, "0.1 % of the value", MakeOne<HdrPeer>},
#endif
#ifdef TIDEMARK_PEERS_DDSKETCH
      {"DDSketch 1 %", "quantile", "f32", 0, "1 % of the value", MakeOne<DdPeer>},
#endif
#ifdef TIDEMARK_PEERS_DATASKETCHES
      {"frequent_items lg=12, u32", "frequency", "u32", 1e-3, "0.085 %",
       MakeFrequentItems<std::uint32_t, 12>},
      {"frequent_items lg=15, u32", "frequency", "u32", 1e-4, "0.0107 %",
       MakeFrequentItems<std::uint32_t, 15>},
      {"frequent_items lg=12, u64", "frequency", "u64", 1e-3, "0.085 %",
       MakeFrequentItems<std::uint64_t, 12>},
      {"frequent_items lg=15, u64", "frequency", "u64", 1e-4, "0.0107 %",
       MakeFrequentItems<std::uint64_t, 15>},
#endif
  };
  return variants;
}

}  // namespace tidemark::peers
