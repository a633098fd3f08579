#include "summaries/hierarchical_frequency.h"

#include <stdexcept>
#include <utility>
#include <vector>

#include "summaries/byte_io.h"
#include "summaries/lossy_counts.h"
#include "summaries/prefix_merge.h"
#include "summaries/prefix_sweep.h"
#include "summaries/quantile_rule.h"

namespace tidemark {
namespace {

constexpr std::string_view kMagic = "TMHF";

}  // namespace

template <class Key>
HierarchicalFrequencySummary<Key>::HierarchicalFrequencySummary(double epsilon,
                                                                PrefixLevels<Key> levels)
    : epsilon_(epsilon),
      levels_(std::make_shared<const PrefixLevels<Key>>(std::move(levels))),
      entries_(std::make_shared<const PackedEntries<Key>>()) {
  if (!(epsilon > 0 && epsilon <= 0.5)) {
    throw std::invalid_argument("epsilon of a hierarchical frequency summary is " +
                                std::to_string(epsilon) +
                                ", expected a number above 0 and at most 0.5");
  }
}

template <class Key>
void HierarchicalFrequencySummary<Key>::CheckRoom(std::uint64_t more) const {
  if (more > kMaxSummaryCount - count_) {
    throw std::length_error("a hierarchical frequency summary of " + std::to_string(count_) +
                            " values cannot take in " + std::to_string(more) +
                            " more: the limit is 2^63 - 1");
  }
}

template <class Key>
std::uint64_t HierarchicalFrequencySummary<Key>::dropped() const {
  return DroppedBound(epsilon_, count_);
}

template <class Key>
void HierarchicalFrequencySummary<Key>::Keep(const std::vector<PrefixEntry<Key>>& entries) {
  entries_ = std::make_shared<const PackedEntries<Key>>(entries, *levels_, dropped());
}

template <class Key>
void HierarchicalFrequencySummary<Key>::AddWindow(std::span<const Key> sorted) {
  if (sorted.empty()) return;
  CheckRoom(sorted.size());
  const std::uint64_t before = dropped(), after = DroppedBound(epsilon_, count_ + sorted.size());
  internal::PrefixSweep<Key> sweep(*levels_, sorted, internal::WindowMass(), before, after);
  const auto entries = sweep.Run(entries_->Unpack(*levels_, before), root_);
  count_ += sorted.size();
  Keep(entries);
}

template <class Key>
void HierarchicalFrequencySummary<Key>::AddWeighted(std::span<const KeyWeight<Key>> sorted) {
  std::vector<Key> keys;
  std::vector<std::uint64_t> sums{0};
  keys.reserve(sorted.size());
  sums.reserve(sorted.size() + 1);
  for (const auto& value : sorted) {
    if (value.weight == 0) continue;
    if (value.weight > kMaxSummaryCount - sums.back()) CheckRoom(kMaxSummaryCount + 1);
    keys.push_back(value.key);
    sums.push_back(sums.back() + value.weight);
  }
  if (keys.empty()) return;
  CheckRoom(sums.back());
  const std::uint64_t before = dropped(), after = DroppedBound(epsilon_, count_ + sums.back());
  internal::PrefixSweep<Key> sweep(*levels_, keys, internal::WindowMass(sums.data()), before,
                                   after);
  const auto entries = sweep.Run(entries_->Unpack(*levels_, before), root_);
  count_ += sums.back();
  Keep(entries);
}

template <class Key>
void HierarchicalFrequencySummary<Key>::Merge(const HierarchicalFrequencySummary& other) {
  if (other.epsilon_ != epsilon_ || *other.levels_ != *levels_) {
    throw std::invalid_argument(
        "hierarchical frequency summaries cannot be merged: expected the "
        "same epsilon and the same levels");
  }
  CheckRoom(other.count_);
  auto together =
      internal::MergeTrees<Key>(*levels_, {entries_->Unpack(*levels_, dropped()), root_},
                                {other.entries_->Unpack(*levels_, other.dropped()), other.root_});
  root_ = together.root;
  count_ += other.count_;
  internal::PrefixSweep<Key> sweep(*levels_, {}, internal::WindowMass(), dropped(), dropped());
  Keep(sweep.Run(std::move(together.entries), root_));
}

template <class Key>
std::size_t HierarchicalFrequencySummary<Key>::bytes() const {
  return sizeof(*this) + sizeof(*levels_) +
         levels_->lengths().capacity() * (sizeof(int) + sizeof(Key)) + sizeof(*entries_) +
         entries_->bytes();
}

template <class Key>
std::string HierarchicalFrequencySummary<Key>::Serialize() const {
  ByteWriter writer(kMagic, sizeof(Key));
  writer.PutDouble(epsilon_);
  writer.Put(count_);
  writer.Put(std::uint64_t{entries_->size()});
  writer.Put(root_.missed);
  writer.Put(static_cast<std::uint8_t>(levels_->size()));
  for (const int length : levels_->lengths()) writer.Put(static_cast<std::uint8_t>(length));
  writer.PutBytes(entries_->stream());
  return writer.Finish();
}

template <class Key>
HierarchicalFrequencySummary<Key> HierarchicalFrequencySummary<Key>::Deserialize(
    std::string_view bytes) {
  ByteReader reader(bytes, kMagic, sizeof(Key), "hierarchical frequency summary");
  const double epsilon = reader.GetDouble();
  if (!(epsilon > 0 && epsilon <= 0.5)) {
    reader.Fail("has epsilon " + std::to_string(epsilon) + ", expected above 0 and at most 0.5");
  }
  const auto count = reader.Get<std::uint64_t>();
  if (count > kMaxSummaryCount) reader.Fail("has n above the limit of 2^63 - 1");
  const std::uint64_t bound = DroppedBound(epsilon, count);
  const auto size = reader.Get<std::uint64_t>();
  const auto missed = reader.Get<std::uint64_t>();
  if (missed > bound) reader.Fail("has a root whose bound its n and epsilon do not allow");
  std::vector<int> lengths(reader.Get<std::uint8_t>());
  for (int& length : lengths) length = reader.Get<std::uint8_t>();
  std::optional<PrefixLevels<Key>> levels;
  try {
    levels.emplace(std::move(lengths));
  } catch (const std::invalid_argument& error) {
    reader.Fail(std::string("has wrong levels: ") + error.what());
  }
  HierarchicalFrequencySummary summary(epsilon, *std::move(levels));
  reader.NeedItems(size, PackedEntries<Key>::kEntryMin);
  auto entries =
      PackedEntries<Key>::Check(reader.GetBytes(reader.left()), static_cast<std::size_t>(size),
                                summary.levels(), bound, count);
  if (!entries) reader.Fail("has entries that are out of order or that its n does not allow");
  std::uint64_t counted = 0;
  for (const auto& entry : entries->Unpack(summary.levels(), bound)) counted += entry.count;
  // While nothing was ever dropped, the root counts values only where no level lies below it.
  const bool root_alone = summary.levels().lengths() == std::vector<int>{0};
  if (bound == 0 && counted != count && !root_alone) {
    reader.Fail("lacks values although nothing was dropped");
  }
  summary.count_ = count;
  summary.root_ = {count - counted, missed};
  summary.entries_ = std::make_shared<const PackedEntries<Key>>(*std::move(entries));
  return summary;
}

template class HierarchicalFrequencySummary<std::uint32_t>;
template class HierarchicalFrequencySummary<std::uint64_t>;
template class HierarchicalFrequencySummary<Key128>;

}  // namespace tidemark
