// Tidemark's summaries as peers: one row of the table at the end for each form.
//
// A peer is fed as a stream of the daemon is: values become keys in an open window of 2^18, and a
// full window is sorted by the `cpu` sorter, chosen by measurement when the first peer is made, or
// counted, and taken in by the summary; sliding windows take blocks of the size that they ask for.
// Answers cover the open window too. NaN are left out.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpu/sort/sorter_factory.h"
#include "summaries/compact_quantiles.h"
#include "summaries/frequency_summary.h"
#include "summaries/frequency_view.h"
#include "summaries/item_counter.h"
#include "summaries/key_codec.h"
#include "summaries/quantile_export.h"
#include "summaries/quantile_summary.h"
#include "summaries/quantile_view.h"
#include "summaries/sliding_quantiles.h"
#include "summaries/sliding_record.h"
#include "summaries/window_grid.h"
#include "tests/bench/peers/peer.h"

namespace tidemark::peers {
namespace {

constexpr std::size_t kWindow = std::size_t{1} << 18;

sort::WindowSorter& CpuSorter() {
  static const std::unique_ptr<sort::WindowSorter> sorter = [] {
    sort::SorterOptions options;
    options.name = "cpu";
    return sort::MakeSorter(options).sorter;
  }();
  return *sorter;
}

template <class Key>
void SortWindow(std::span<Key> window) {
  const std::array<std::span<Key>, 1> channels{window};
  CpuSorter().Sort(sort::Channels<Key>(channels));
}

/// Maps values to keys as the ingest of the daemon does: NaN are counted in the same vectorised
/// pass, and left out in a second one if there are any. Returns how many keys were written.
template <class Key, class Value>
std::size_t MapValues(const Value* values, std::size_t count, Key* keys) {
  if constexpr (std::is_floating_point_v<Value>) {
    Key nans = 0;
    for (std::size_t i = 0; i < count; ++i) {
      nans += static_cast<Key>(IsNan(values[i]));
      keys[i] = EncodeKey(values[i]);
    }
    if (nans == 0) return count;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      keys[kept] = EncodeKey(values[i]);
      kept += IsNan(values[i]) ? 0 : 1;
    }
    return kept;
  } else {
    std::memcpy(keys, values, count * sizeof(Value));
    return count;
  }
}

/// A peer that fills windows. `Summary` takes full ones.
template <class Key, class Value, class Summary>
class WindowedPeer : public Peer {
 public:
  explicit WindowedPeer(Summary summary, std::size_t window = kWindow)
      : summary_(std::move(summary)), open_(window) {
    CpuSorter();
  }

  void Add(const void* values, std::size_t count) override {
    const auto* next = static_cast<const Value*>(values);
    sorted_ = false;
    while (count > 0) {
      const std::size_t take = std::min(count, open_.size() - filled_);
      filled_ += MapValues(next, take, open_.data() + filled_);
      next += take;
      count -= take;
      if (filled_ == open_.size()) {
        TakeWindow(open_);
        filled_ = 0;
        most_ = std::max(most_, Bytes());
      }
    }
  }

  std::size_t Bytes() const override { return summary_.bytes(); }
  std::size_t MostBytes() const override { return std::max(most_, Bytes()); }
  std::size_t WindowBytes() const override {
    return (open_.capacity() + open_sorted_.capacity()) * sizeof(Key);
  }
  std::size_t ExportBytes() override { return summary_.Serialize().size(); }

  /// The open windows stay outside of what is merged, as between two daemons.
  void Merge(const Peer& other) override {
    summary_.Merge(dynamic_cast<const WindowedPeer&>(other).summary_);
  }

 protected:
  /// May change the window's order. Sorts it unless a peer knows better.
  virtual void TakeWindow(std::span<Key> window) {
    SortWindow(window);
    summary_.AddWindow(window);
  }

  /// The open window, sorted once and kept until it changes.
  std::span<const Key> OpenSorted() {
    if (!sorted_) {
      open_sorted_.assign(open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(filled_));
      SortWindow(std::span<Key>(open_sorted_));
      sorted_ = true;
    }
    return open_sorted_;
  }
  std::size_t filled() const { return filled_; }

  Summary summary_;

 private:
  std::vector<Key> open_, open_sorted_;
  std::size_t filled_ = 0, most_ = 0;
  bool sorted_ = false;
};

/// Any quantile summary whose Snapshot() makes a QuantileView.
template <class Summary>
class QuantilePeer : public WindowedPeer<std::uint32_t, float, Summary> {
  using Base = WindowedPeer<std::uint32_t, float, Summary>;

 public:
  using Base::Base;

  void Quantiles(std::span<const double> phis, float* values, std::uint64_t* low,
                 std::uint64_t* high) override {
    const auto answers = View().Quantiles(phis);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      values[i] = DecodeFloat32(answers[i].value);
      low[i] = answers[i].rank_low;
      high[i] = answers[i].rank_high;
    }
  }
  /// What is handed on, the open window too: not what is kept on disk.
  std::size_t ExportBytes() override { return ExportQuantiles(View()).size(); }
  std::unique_ptr<Peer> Clone() const override { return std::make_unique<QuantilePeer>(*this); }

 private:
  QuantileView<std::uint32_t> View() {
    return QuantileView<std::uint32_t>(this->summary_.Snapshot(), this->OpenSorted());
  }
};

/// Compact quantiles, fed with digests that are counted where that pays, as the daemon does for a
/// stream without counts of items.
class CountedPeer : public QuantilePeer<CompactQuantiles<std::uint32_t>> {
  using Base = QuantilePeer<CompactQuantiles<std::uint32_t>>;

 public:
  using Base::Base;
  std::unique_ptr<Peer> Clone() const override { return std::make_unique<CountedPeer>(*this); }

 protected:
  void TakeWindow(std::span<std::uint32_t> window) override {
    if (const auto stride = summary_.DigestStride(window.size())) {
      summary_.AddDigest(grid_.Digest(window, *stride, memory_));
    } else {
      Base::TakeWindow(window);
    }
  }

 private:
  WindowGrid<std::uint32_t> grid_{SortWindow<std::uint32_t>};
  GridMemory memory_;
};

template <class Key, class Summary>
class FrequencyPeer : public WindowedPeer<Key, Key, Summary> {
  using Base = WindowedPeer<Key, Key, Summary>;

 public:
  using Base::Base;

  void Counts(const void* items, std::size_t count, std::uint64_t* low,
              std::uint64_t* high) override {
    const auto view = View();
    const auto* keys = static_cast<const Key*>(items);
    for (std::size_t i = 0; i < count; ++i) {
      const ItemCount<Key> item = view.Count(keys[i]);
      low[i] = item.count_low;
      high[i] = item.count_high;
    }
  }
  std::size_t HeavyHitters(double support) override { return View().HeavyHitters(support).size(); }
  std::unique_ptr<Peer> Clone() const override { return std::make_unique<FrequencyPeer>(*this); }

 private:
  FrequencyView<Key> View() {
    return FrequencyView<Key>(this->summary_.Snapshot(), this->OpenSorted());
  }
};

/// Items counted where that pays, without sorting their windows.
template <class Key, class Summary>
class CountedFrequencyPeer : public FrequencyPeer<Key, Summary> {
  using Base = FrequencyPeer<Key, Summary>;

 public:
  using Base::Base;
  std::size_t WindowBytes() const override { return Base::WindowBytes() + counter_.bytes(); }
  std::unique_ptr<Peer> Clone() const override {
    return std::make_unique<CountedFrequencyPeer>(*this);
  }

 protected:
  void TakeWindow(std::span<Key> window) override {
    counter_.AddWindow(window, this->summary_, memory_);
  }

 private:
  ItemCounter<Key> counter_{SortWindow<Key>};
  GridMemory memory_;
};

/// Quantiles of the last so many values. A full block stays as it came, and is sorted beside.
class SlidingPeer : public Peer {
  using Key = std::uint32_t;

 public:
  explicit SlidingPeer(const SlidingOptions& options)
      : record_(options),
        quantiles_(record_.shared_rule()),
        block_(record_.rule().block_size()),
        sorted_(block_) {
    CpuSorter();
    Open();
  }

  void Add(const void* values, std::size_t count) override {
    const auto* next = static_cast<const float*>(values);
    while (count > 0) {
      const std::size_t take = std::min(count, block_ - filled_);
      filled_ += MapValues(next, take, open_.get() + filled_);
      next += take;
      count -= take;
      if (filled_ < block_) continue;
      std::copy_n(open_.get(), block_, sorted_.begin());
      SortWindow(std::span<Key>(sorted_));
      record_.AddBlock(std::move(open_), {});
      quantiles_.AddBlock(sorted_, record_.expired());
      Open();
    }
  }

  std::size_t Bytes() const override { return record_.bytes() + quantiles_.bytes(); }
  std::size_t WindowBytes() const override { return 2 * block_ * sizeof(Key); }
  std::size_t ExportBytes() override {
    return record_.Serialize().size() + quantiles_.Serialize().size();
  }
  std::unique_ptr<Peer> Clone() const override { throw std::logic_error("windows are not copied"); }
  void Merge(const Peer&) override { throw std::logic_error("windows are not merged"); }

  void Quantiles(std::span<const double> phis, float* values, std::uint64_t* low,
                 std::uint64_t* high) override {
    const SlidingRange range = record_.Last(record_.rule().options().max_values, filled_);
    std::vector<Key> later(open_.get() + filled_ - range.later, open_.get() + filled_);
    SortWindow(std::span<Key>(later));
    const auto answers = quantiles_.Cover(range, record_).View(later).Quantiles(phis);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      values[i] = DecodeFloat32(answers[i].value);
      low[i] = answers[i].rank_low;
      high[i] = answers[i].rank_high;
    }
  }

 private:
  void Open() {
    open_ = std::make_shared_for_overwrite<Key[]>(block_);
    filled_ = 0;
  }

  SlidingRecord<Key> record_;
  SlidingQuantiles<Key> quantiles_;
  std::size_t block_, filled_ = 0;
  std::shared_ptr<Key[]> open_;
  std::vector<Key> sorted_;
};

template <int kMillionths>
std::unique_ptr<Peer> MakeSliding() {
  SlidingOptions options;
  options.epsilon = kMillionths * 1e-6;
  options.max_values = 1'000'000;
  return std::make_unique<SlidingPeer>(options);
}

using Histogram = QuantileSummary<std::uint32_t>;

/// `percent` of error, in parts of a million: template arguments are whole numbers.
template <class Row, class Summary, int kMillionths>
std::unique_ptr<Peer> Make() {
  return std::make_unique<Row>(Summary(kMillionths * 1e-6));
}
using Compact = CompactQuantiles<std::uint32_t>;
template <class Row, int kMillionths, TailEnd kEnd = TailEnd::kNone>
std::unique_ptr<Peer> MakeCompact() {
  return std::make_unique<Row>(Compact(kMillionths * 1e-6, kEnd));
}
template <int kMillionths>
constexpr auto kCounted = MakeCompact<CountedPeer, kMillionths>;
template <int kMillionths, int kLog2Window>
std::unique_ptr<Peer> MakeLargeWindows() {
  return std::make_unique<CountedPeer>(Compact(kMillionths * 1e-6), std::size_t{1} << kLog2Window);
}
template <int kMillionths>
constexpr auto kCountedTail = MakeCompact<CountedPeer, kMillionths, TailEnd::kUpper>;
template <int kMillionths>
constexpr auto kSorted = MakeCompact<QuantilePeer<Compact>, kMillionths>;
template <int kMillionths>
constexpr auto kHistogram = Make<QuantilePeer<Histogram>, Histogram, kMillionths>;
template <class Key, int kMillionths>
constexpr auto kFrequency =
    Make<CountedFrequencyPeer<Key, FrequencySummary<Key>>, FrequencySummary<Key>, kMillionths>;
template <class Key, int kMillionths>
constexpr auto kSortedFrequency =
    Make<FrequencyPeer<Key, FrequencySummary<Key>>, FrequencySummary<Key>, kMillionths>;

constexpr const char* kProven = "proven";

}  // namespace

std::span<const Variant> Variants() {
  static constexpr Variant kVariants[] = {
      {"compact 0.1 %", "quantile", "f32", 0.001, kProven, kCounted<1000>},
      {"compact 0.1 %, windows of 2^20", "quantile", "f32", 0.001, kProven,
       MakeLargeWindows<1000, 20>},
      {"compact 0.1 %, windows of 2^21", "quantile", "f32", 0.001, kProven,
       MakeLargeWindows<1000, 21>},
      {"compact 1 %", "quantile", "f32", 0.01, kProven, kCounted<10000>},
      {"compact 0.01 %", "quantile", "f32", 1e-4, kProven, kCounted<100>},
      {"compact, upper tail 0.5 %", "quantile", "f32", 0, "proven, 0.5 % of n - rank + 1",
       kCountedTail<5000>, 0.005},
      {"compact 0.1 %, sorted", "quantile", "f32", 0.001, kProven, kSorted<1000>},
      {"compact 1 %, sorted", "quantile", "f32", 0.01, kProven, kSorted<10000>},
      {"exponential histogram 0.1 %", "quantile", "f32", 0.001, kProven, kHistogram<1000>},
      {"exponential histogram 1 %", "quantile", "f32", 0.01, kProven, kHistogram<10000>},
      {"exponential histogram 0.01 %", "quantile", "f32", 1e-4, kProven, kHistogram<100>},
      {"last 10^6 values, 1 %", "sliding", "f32", 0.01, kProven, MakeSliding<10000>},
      {"last 10^6 values, 0.1 %", "sliding", "f32", 0.001, kProven, MakeSliding<1000>},
      {"lossy counting 0.01 %, u32", "frequency", "u32", 1e-4, kProven,
       kFrequency<std::uint32_t, 100>},
      {"lossy counting 0.1 %, u32", "frequency", "u32", 1e-3, kProven,
       kFrequency<std::uint32_t, 1000>},
      {"lossy counting 0.01 %, u64", "frequency", "u64", 1e-4, kProven,
       kFrequency<std::uint64_t, 100>},
      {"lossy counting 0.1 %, u64", "frequency", "u64", 1e-3, kProven,
       kFrequency<std::uint64_t, 1000>},
      {"lossy counting 0.01 %, sorted, u32", "frequency", "u32", 1e-4, kProven,
       kSortedFrequency<std::uint32_t, 100>},
      {"lossy counting 0.01 %, sorted, u64", "frequency", "u64", 1e-4, kProven,
       kSortedFrequency<std::uint64_t, 100>},
  };
  return kVariants;
}

}  // namespace tidemark::peers
