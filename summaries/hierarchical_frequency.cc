#include "summaries/hierarchical_frequency.h"

#include <stdexcept>
#include <utility>
#include <vector>

#include "summaries/byte_io.h"
#include "summaries/lossy_counts.h"
#include "summaries/prefix_sweep.h"
#include "summaries/quantile_rule.h"

namespace tidemark {
namespace {

constexpr std::string_view kMagic = "TMHF";

/// What one side of a merge says of prefixes that are asked in preorder.
template <class Key>
class MergeSide {
 public:
  MergeSide(const std::vector<PrefixEntry<Key>>& entries, const PrefixRoot& root,
            const PrefixLevels<Key>& levels)
      : entries_(entries), root_(root), levels_(levels) {}

  bool done() const { return next_ == entries_.size(); }
  const PrefixEntry<Key>& next() const { return entries_[next_]; }
  bool Comes(const PrefixEntry<Key>& first) const {
    return !done() && next().key == first.key && next().level == first.level;
  }

  /// Adds what this side says of the prefix of `sum`. REQUIRES: no entry before it is left.
  void AddTo(PrefixEntry<Key>& sum) {
    while (!above_.empty() && levels_.Last(above_.back()->level, above_.back()->key) < sum.key) {
      above_.pop_back();
    }
    if (Comes(sum)) {
      above_.push_back(&next());
      sum.count += next().count;
      sum.delta += next().delta;
      sum.missed += next().missed;
      ++next_;
    } else {
      const std::uint64_t missed = above_.empty() ? root_.missed : above_.back()->missed;
      sum.delta += missed;
      sum.missed += missed;
    }
  }

 private:
  const std::vector<PrefixEntry<Key>>& entries_;
  const PrefixRoot& root_;
  const PrefixLevels<Key>& levels_;
  std::size_t next_ = 0;
  std::vector<const PrefixEntry<Key>*> above_;  // those that stand above where we are
};

template <class Key>
std::vector<PrefixEntry<Key>> Together(MergeSide<Key> a, MergeSide<Key> b) {
  std::vector<PrefixEntry<Key>> all;
  while (!a.done() || !b.done()) {
    const bool from_a =
        b.done() ||
        (!a.done() && (a.next().key < b.next().key ||
                       (a.next().key == b.next().key && a.next().level < b.next().level)));
    const PrefixEntry<Key>& first = from_a ? a.next() : b.next();
    PrefixEntry<Key> sum{first.key, first.level, 0, 0, 0};
    a.AddTo(sum);
    b.AddTo(sum);
    all.push_back(sum);
  }
  return all;
}

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
  const auto here = entries_->Unpack(*levels_, dropped());
  const auto there = other.entries_->Unpack(*levels_, other.dropped());
  auto together =
      Together(MergeSide<Key>(here, root_, *levels_), MergeSide<Key>(there, other.root_, *levels_));
  const PrefixRoot other_root = other.root_;  // `other` may be this very summary
  root_ = {root_.count + other_root.count, root_.missed + other_root.missed};
  count_ += other.count_;
  internal::PrefixSweep<Key> sweep(*levels_, {}, internal::WindowMass(), dropped(), dropped());
  Keep(sweep.Run(std::move(together), root_));
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
