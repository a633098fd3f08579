#include "summaries/sliding_hierarchical_view.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "summaries/fraction.h"
#include "summaries/leveled_view.h"
#include "summaries/support_rule.h"

namespace tidemark {
namespace {

template <class Key>
std::vector<Key> Open(const RecentValues<Key>& recent, std::span<const Key> later_sorted) {
  std::vector<Key> keys = recent.Sorted();
  const auto middle = static_cast<std::ptrdiff_t>(keys.size());
  keys.insert(keys.end(), later_sorted.begin(), later_sorted.end());
  std::inplace_merge(keys.begin(), keys.begin() + middle, keys.end());
  return keys;
}

std::uint64_t Less(std::uint64_t a, std::uint64_t b) { return a - std::min(a, b); }

}  // namespace

template <class Key>
SlidingHierarchicalView<Key>::SlidingHierarchicalView(const SlidingHierarchyCover<Key>& cover,
                                                      std::span<const Key> later_sorted)
    : n_(cover.range.n_high()),
      n_low_(cover.range.n_low()),
      unseen_(cover.range.uncertain() + Less(cover.range.later, later_sorted.size())),
      cut_values_(cover.cut_values),
      outside_(cover.outside()),
      open_(Open(cover.recent, later_sorted)),
      all_(cover.Snapshot(), std::span<const Key>(open_), unseen_) {
  if (cover.cut.trees != nullptr) cut_.emplace(cover.CutSnapshot());
}

template <class Key>
bool SlidingHierarchicalView<Key>::WithinEpsilon() const {
  return all_.absent() + std::min(outside_, cut_values_) <= FloorFraction(epsilon(), n_low_);
}

template <class Key>
auto SlidingHierarchicalView<Key>::Inside(int level, Key prefix, const Bounds& all,
                                          std::uint64_t most) const -> Bounds {
  if (!cut_) return all;
  const std::uint64_t low = cut_->Count(level, prefix).count_low;
  // all.high may count outside values of prefixes that the cut block does not list.
  return {all.low - std::min({all.low, low, outside_}),
          std::min(all.high - Less(low, cut_values_), most)};
}

template <class Key>
ItemCount<Key> SlidingHierarchicalView<Key>::Count(int level, Key key) const {
  const ItemCount<Key> all = all_.Count(level, key);
  if (levels().length(level) == 0) return {all.key, n_low_, n_};
  const Bounds bounds = Inside(level, all.key, {all.count_low, all.count_high}, n_);
  return {all.key, bounds.low, bounds.high};
}

template <class Key>
bool SlidingHierarchicalView<Key>::Serves(double support) const {
  return n_ == 0 || CeilFraction(support, n_) > all_.absent();
}

template <class Key>
double SlidingHierarchicalView<Key>::MinimumSupport() const {
  return LeastSupport(all_.absent(), n_);
}

template <class Key>
std::vector<HierarchyItem<Key>> SlidingHierarchicalView<Key>::HeavyHitters(double support) const {
  const std::uint64_t wanted = CheckSupport(support, all_.absent(), n_, "a prefix");
  if (n_ == 0) return {};
  auto candidates = all_.Candidates(wanted - unseen_);
  if (cut_) {
    for (std::size_t level = 0; level < candidates.size(); ++level) {
      for (auto& candidate : candidates[level]) {
        // Of what is at hand: the unseen values are added when it is reported.
        const Bounds bounds = Inside(static_cast<int>(level), candidate.prefix,
                                     {candidate.low, candidate.high}, n_ - unseen_);
        candidate.low = bounds.low;
        candidate.high = bounds.high;
        // It is about the block with all its values.
        candidate.own = std::numeric_limits<std::uint64_t>::max();
      }
    }
    internal::TightenCandidates(candidates);
  }
  auto items = internal::ReportDiscounted(candidates, wanted, unseen_);
  for (auto& item : items) {
    if (levels().length(item.level) == 0) item.count_low = n_low_;
  }
  return items;
}

template class SlidingHierarchicalView<std::uint32_t>;
template class SlidingHierarchicalView<std::uint64_t>;
template class SlidingHierarchicalView<Key128>;

}  // namespace tidemark
