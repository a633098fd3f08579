#include "summaries/hierarchical_view.h"

#include <algorithm>
#include <utility>

#include "summaries/fraction.h"
#include "summaries/prefix_runs.h"
#include "summaries/support_rule.h"

namespace tidemark {

/// The candidates that are found on a walk down the levels.
template <class Key>
struct HierarchicalView<Key>::Search {
  std::uint64_t threshold;  ///< a candidate may have come so often, unseen values aside
  std::uint64_t least;      ///< and then so often is known
  std::vector<std::vector<internal::HierarchyCandidate<Key>>> levels;
};

template <class Key>
HierarchicalView<Key>::HierarchicalView(const HierarchicalSnapshot<Key>& snapshot,
                                        std::span<const Key> open_sorted,
                                        internal::WindowMass open_mass, std::uint64_t unseen,
                                        std::optional<double> epsilon)
    : root_(snapshot.root),
      levels_(snapshot.levels),
      entries_(snapshot.Entries()),
      open_(open_sorted),
      open_mass_(open_mass),
      unseen_(unseen),
      n_(snapshot.count + open_mass.Of(0, open_sorted.size()) + unseen),
      absent_(snapshot.dropped + unseen),
      epsilon_(epsilon.value_or(snapshot.epsilon)) {
  sums_.reserve(entries_.size() + 1);
  sums_.push_back(0);
  for (const auto& entry : entries_) sums_.push_back(sums_.back() + entry.count);
}

template <class Key>
HierarchicalView<Key>::HierarchicalView(const HierarchicalSnapshot<Key>& snapshot,
                                        std::span<const Key> open_sorted, std::uint64_t unseen,
                                        std::optional<double> epsilon)
    : HierarchicalView(snapshot, open_sorted, internal::WindowMass(), unseen, epsilon) {}

template <class Key>
HierarchicalView<Key>::HierarchicalView(const HierarchicalSnapshot<Key>& snapshot,
                                        std::span<const Key> open_sorted,
                                        std::span<const std::uint64_t> open_sums,
                                        std::uint64_t unseen, std::optional<double> epsilon)
    : HierarchicalView(snapshot, open_sorted, internal::WindowMass(open_sums.data()), unseen,
                       epsilon) {}

template <class Key>
bool HierarchicalView<Key>::WithinEpsilon() const {
  return absent_ <= FloorFraction(epsilon_, n_);
}

template <class Key>
bool HierarchicalView<Key>::Serves(double support) const {
  return n_ == 0 || CeilFraction(support, n_) > absent_;
}

template <class Key>
double HierarchicalView<Key>::MinimumSupport() const {
  return LeastSupport(absent_, n_);
}

template <class Key>
std::uint64_t HierarchicalView<Key>::Low(const Part& part) const {
  return sums_[part.last_entry] - sums_[part.first_entry] + open_mass_.Of(part.begin, part.end);
}

template <class Key>
Key HierarchicalView<Key>::Least(const Part& part) const {
  if (part.first_entry == part.last_entry) return open_[part.begin];
  const Key entry = entries_[part.first_entry].key;
  return part.begin == part.end ? entry : std::min(entry, open_[part.begin]);
}

template <class Key>
Key HierarchicalView<Key>::Greatest(const Part& part) const {
  if (part.first_entry == part.last_entry) return open_[part.end - 1];
  const Key entry = entries_[part.last_entry - 1].key;
  return part.begin == part.end ? entry : std::max(entry, open_[part.end - 1]);
}

/// Visits the prefixes of `level` that a part holds and that may be heavy. The part has no entry of
/// a coarser level.
template <class Key>
void HierarchicalView<Key>::FindBelow(Search& search, int level, const Part& part,
                                      const Above& above) const {
  if (Low(part) < search.least) return;
  const Key least = Least(part), greatest = Greatest(part);
  const int common = CommonBits(least, greatest);
  if (common >= levels_->length(level)) {
    Visit(search, level, part, above);
    return;
  }
  // Where they part: the keys that begin like the greatest one.
  const int shift = PrefixLevels<Key>::kKeyBits - 1 - common;
  const Key middle = static_cast<Key>(static_cast<Key>(greatest >> shift) << shift);
  const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(part.first_entry);
  const auto last = entries_.begin() + static_cast<std::ptrdiff_t>(part.last_entry);
  const auto at = std::partition_point(
      first, last, [middle](const PrefixEntry<Key>& entry) { return entry.key < middle; });
  const auto entry = static_cast<std::size_t>(at - entries_.begin());
  const std::size_t open = internal::FirstNotBelow(open_, part.begin, part.end, middle);
  FindBelow(search, level, {part.first_entry, entry, part.begin, open}, above);
  FindBelow(search, level, {entry, part.last_entry, open, part.end}, above);
}

/// The turn of the one prefix of `level` that a part holds.
template <class Key>
void HierarchicalView<Key>::Visit(Search& search, int level, const Part& part,
                                  const Above& above) const {
  const bool is_entry =
      part.first_entry < part.last_entry && entries_[part.first_entry].level == level;
  const PrefixEntry<Key> entry = is_entry ? entries_[part.first_entry] : PrefixEntry<Key>{};
  const std::uint64_t low = Low(part);
  const std::uint64_t high = low + std::min(is_entry ? entry.delta : above.missed, above.counted);
  if (high < search.threshold) return;
  auto& candidates = search.levels[static_cast<std::size_t>(level)];
  candidates.push_back(
      {levels_->Prefix(level, Least(part)), low, high, above.candidate, entry.count});
  if (level + 1 == levels_->size()) return;
  const std::size_t candidate = candidates.size() - 1;
  if (is_entry) {
    const Part rest{part.first_entry + 1, part.last_entry, part.begin, part.end};
    FindBelow(search, level + 1, rest, {entry.missed, above.counted + entry.count, candidate});
  } else {
    FindBelow(search, level + 1, part, {above.missed, above.counted, candidate});
  }
}

template <class Key>
std::vector<std::vector<internal::HierarchyCandidate<Key>>> HierarchicalView<Key>::Candidates(
    std::uint64_t threshold) const {
  Search search;
  search.threshold = threshold;
  search.least = threshold - (absent_ - unseen_);
  search.levels.resize(static_cast<std::size_t>(levels_->size()));
  const Part all{0, entries_.size(), 0, open_.size()};
  if (levels_->has_root()) {
    const std::uint64_t seen = n_ - unseen_;
    search.levels[0].push_back(
        {0, seen, seen, internal::HierarchyCandidate<Key>::kNoParent, root_.count});
    if (levels_->size() > 1) FindBelow(search, 1, all, {root_.missed, root_.count, 0});
  } else {
    FindBelow(search, 0, all,
              {root_.missed, root_.count, internal::HierarchyCandidate<Key>::kNoParent});
  }
  return std::move(search.levels);
}

template <class Key>
std::vector<HierarchyItem<Key>> HierarchicalView<Key>::HeavyHitters(double support) const {
  const std::uint64_t wanted = CheckSupport(support, absent_, n_, "a prefix");
  if (n_ == 0) return {};
  auto items = internal::ReportDiscounted(Candidates(wanted - unseen_), wanted, unseen_);
  for (auto& item : items) {
    if (levels_->length(item.level) == 0) item.count_low = n_;  // below it is everything
  }
  return items;
}

template <class Key>
ItemCount<Key> HierarchicalView<Key>::Count(int level, Key key) const {
  const Key prefix = levels_->Prefix(level, key);
  if (levels_->length(level) == 0) return {prefix, n_, n_};
  const auto before = [](const PrefixEntry<Key>& entry, const std::pair<Key, int>& place) {
    return entry.key != place.first ? entry.key < place.first : entry.level < place.second;
  };
  const auto find = [&](Key wanted, int wanted_level) {
    return std::lower_bound(entries_.begin(), entries_.end(), std::pair{wanted, wanted_level},
                            before);
  };
  std::uint64_t missed = root_.missed, counted = root_.count;
  for (int above = 0; above < level; ++above) {
    const Key wanted = levels_->Prefix(above, key);
    const auto entry = find(wanted, above);
    if (entry == entries_.end() || entry->key != wanted || entry->level != above) continue;
    missed = entry->missed;
    counted += entry->count;
  }
  const Key last = levels_->Last(level, prefix);
  const auto first = find(prefix, level);
  const auto end = std::partition_point(
      first, entries_.end(), [last](const PrefixEntry<Key>& entry) { return entry.key <= last; });
  const bool is_entry = first != end && first->key == prefix && first->level == level;
  const std::size_t begin = internal::FirstNotBelow(open_, 0, open_.size(), prefix);
  const Part part{static_cast<std::size_t>(first - entries_.begin()),
                  static_cast<std::size_t>(end - entries_.begin()), begin,
                  internal::FirstAbove(open_, begin, open_.size(), last)};
  const std::uint64_t low = Low(part);
  return {prefix, low, low + std::min(is_entry ? first->delta : missed, counted) + unseen_};
}

template class HierarchicalView<std::uint32_t>;
template class HierarchicalView<std::uint64_t>;
template class HierarchicalView<Key128>;

}  // namespace tidemark
