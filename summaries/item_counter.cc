#include "summaries/item_counter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "summaries/grid_plan.h"
#include "summaries/key_sample.h"
#include "summaries/sorted_runs.h"

namespace tidemark {
namespace {

constexpr std::size_t kGlance = 32;  // keys that are not all equal by chance
constexpr std::size_t kSample = 256;

// What each key costs, in the unit of grid_plan.h (measured with frequency_bench).
constexpr double kCountCost = 1.3;
constexpr double kAsideCost = 1.1;  // to look whether a key that was put aside is to be dropped
template <class Key>
constexpr double kSortCost = sizeof(Key) == 4 ? 3.8 : 6;

constexpr double kClearly = 0.85;  // of what sorting seems to cost: these are estimates
constexpr int kMostWait = 15;      // what is lost in one window in 16 is not seen

constexpr unsigned kLeastBits = 10;  // fewer slots save nothing
constexpr unsigned kMostBits = 15;   // 512 KB: more leave the second-level cache

/// 32 bits of which the high ones depend on all bits of the key. The constants spread ids well that
/// are small numbers, floats, or products of them with powers of two or ten and with 2^w / golden
/// ratio; under that constant itself, the latter fall together. To fold the key first would spread
/// any product, and take a sixth more time.
std::uint32_t Hash(std::uint32_t key) { return key * 0xC2B2'AE35u; }
std::uint32_t Hash(std::uint64_t key) {
  return static_cast<std::uint32_t>((key * 0xE703'7ED1'A0B4'28DBu) >> 32);
}

/// Moves keys to the front, without a branch; returns how many.
template <class Key, class Keep>
std::size_t KeepIf(std::span<Key> keys, Keep keep) {
  Key* kept = keys.data();
  for (const Key key : keys) {
    *kept = key;
    kept += std::size_t{keep(key)};
  }
  return static_cast<std::size_t>(kept - keys.data());
}

}  // namespace

template <class Key>
ItemCounter<Key>::ItemCounter(SortKeys sort, const ItemTuning& tuning)
    : sort_(std::move(sort)), tuning_(tuning) {
  if (tuning_.sort_cost == 0) tuning_.sort_cost = kSortCost<Key>;
  tuning_.least_counted = std::max(tuning_.least_counted, kSample);
}

template <class Key>
std::size_t ItemCounter<Key>::bytes() const {
  return slots_.capacity() * sizeof(Slot) + known_.capacity() * sizeof(FrequencyEntry<Key>) +
         (sample_.capacity() + aside_.capacity()) * sizeof(Key) +
         (owned_.capacity() + found_.capacity() + items_.capacity()) * sizeof(KeyWeight<Key>);
}

template <class Key>
bool ItemCounter<Key>::Estimate::pays() const {
  return count < kClearly * sort;
}

template <class Key>
std::size_t ItemCounter<Key>::SlotOf(Key key) const {
  return Hash(key) >> shift_;
}

template <class Key>
void ItemCounter<Key>::AddWindow(std::span<Key> window, FrequencySummary<Key>& summary,
                                 GridMemory& memory) {
  counted_ = false;
  if (memory.wait > 0) {
    --memory.wait;
  } else {
    counted_ = Count(window, summary, memory);
  }
  if (counted_) {
    summary.AddItems(window.size(), items_);
  } else {
    sort_(window);
    summary.AddWindow(window);
  }
}

template <class Key>
bool ItemCounter<Key>::Count(std::span<const Key> window, const FrequencySummary<Key>& summary,
                             GridMemory& memory) {
  if (window.size() < tuning_.least_counted || window.size() >= kKept) return false;
  const std::uint64_t least = summary.LeastCount(window.size());
  const FrequencySnapshot<Key> snapshot = summary.Snapshot();
  const auto bits = SlotBits(window.size(), least, snapshot.entries->size());
  if (!bits) return false;
  Estimate estimate{SortCostOf(least, window), kCountCost};
  if (!estimate.pays() && !tuning_.always) return false;
  shift_ = 32 - *bits;
  ChooseOwners(*snapshot.entries);
  estimate.count = CountCostOf(least, window.size());
  if (!estimate.pays() && !tuning_.always) return false;

  CountOwners(window);
  const double put_aside = static_cast<double>(aside_size_);
  DropLight(least);
  sort_(std::span(aside_).first(aside_size_));
  CollectItems(least);

  const double keys = static_cast<double>(window.size());
  estimate.count = kCountCost + kAsideCost * put_aside / keys +
                   tuning_.sort_cost * static_cast<double>(aside_size_) / keys;
  memory.last_wait = estimate.pays() || tuning_.always
                         ? 0
                         : static_cast<std::uint8_t>(std::min(2 * memory.last_wait + 1, kMostWait));
  memory.wait = memory.last_wait;
  return true;
}

/// So many that hardly a slot holds `least` light keys, and hardly two keys with entries.
template <class Key>
std::optional<unsigned> ItemCounter<Key>::SlotBits(std::uint64_t keys, std::uint64_t least,
                                                   std::size_t entries) const {
  const unsigned for_entries = static_cast<unsigned>(std::bit_width(entries)) + 4;
  for (unsigned bits = std::clamp(for_entries, kLeastBits, kMostBits); bits <= kMostBits; ++bits) {
    // Light keys fall into slots at random: mean and standard deviation of a Poisson distribution.
    const double mean = std::ldexp(static_cast<double>(keys), -static_cast<int>(bits));
    if (mean + 2.5 * std::sqrt(mean) <= static_cast<double>(least) || tuning_.always) return bits;
  }
  return std::nullopt;
}

template <class Key>
double ItemCounter<Key>::SortCostOf(std::uint64_t least, std::span<const Key> window) {
  internal::TakeSample(window, kGlance, sample_);
  if (std::all_of(sample_.begin(), sample_.end(), [&](Key key) { return key == sample_[0]; })) {
    return 0;
  }
  internal::TakeSample(window, kSample, sample_);
  sort_(sample_);
  return internal::EstimateRuns<Key>(window.size(), least, sample_, tuning_.sort_cost, false)
      .sort_cost;
}

/// From the sample. Leaves those of its keys that own no slot.
template <class Key>
double ItemCounter<Key>::CountCostOf(std::uint64_t least, std::uint64_t keys) {
  const double all = static_cast<double>(sample_.size());
  sample_.resize(
      KeepIf(std::span(sample_), [&](Key key) { return slots_[SlotOf(key)].owner != key; }));
  if (sample_.empty()) return kCountCost;
  const double aside = static_cast<double>(sample_.size()) / all;
  const auto runs =
      internal::EstimateRuns<Key>(static_cast<std::size_t>(aside * static_cast<double>(keys)),
                                  least, sample_, tuning_.sort_cost, false);
  return kCountCost + aside * (kAsideCost + runs.share * tuning_.sort_cost);
}

template <class Key>
void ItemCounter<Key>::ChooseOwners(const FrequencyEntries<Key>& entries) {
  // No key of a slot without an owner may look like one: 0 has the hash 0, so that in all slots but
  // the first no key is 0, and there a key will do that is hashed elsewhere.
  slots_.assign(std::size_t{1} << (32 - shift_), {0, {0, 0}});
  Key elsewhere = 1;
  while (SlotOf(elsewhere) == 0) ++elsewhere;
  slots_[0].owner = elsewhere;
  known_.clear();
  entries.ForEach([&](const FrequencyEntry<Key>& entry) {
    known_.push_back(entry);
    Slot& slot = slots_[SlotOf(entry.key)];
    const auto place = static_cast<std::uint32_t>(known_.size());  // from 1; 0 is none
    std::uint32_t& owner_place = slot.counts[kOwn];
    if (owner_place != 0) slot.counts[kOthers] = kKept;
    if (owner_place == 0 || known_[owner_place - 1].count < entry.count) {
      slot.owner = entry.key;
      owner_place = place;
    }
  });
  for (const FrequencyEntry<Key>& entry : known_) slots_[SlotOf(entry.key)].counts[kOwn] = 0;
}

template <class Key>
void ItemCounter<Key>::CountOwners(std::span<const Key> window) {
  aside_.resize(window.size() + 1);
  Slot* const slots = slots_.data();
  const unsigned shift = shift_;
  Key* aside = aside_.data();
  for (const Key key : window) {
    Slot& slot = slots[Hash(key) >> shift];
    const bool is_other = slot.owner != key;
    // Which count is raised is a matter of its place, not of a branch: twice as fast.
    ++slot.counts[std::size_t{is_other}];
    *aside = key;
    aside += std::size_t{is_other};
  }
  aside_size_ = static_cast<std::size_t>(aside - aside_.data());
}

template <class Key>
void ItemCounter<Key>::DropLight(std::uint64_t least) {
  const Slot* const slots = slots_.data();
  const unsigned shift = shift_;
  aside_size_ = KeepIf(std::span(aside_).first(aside_size_),
                       [&](Key key) { return slots[Hash(key) >> shift].counts[kOthers] >= least; });
}

template <class Key>
void ItemCounter<Key>::CollectItems(std::uint64_t least) {
  owned_.clear();
  for (const FrequencyEntry<Key>& entry : known_) {
    const Slot& slot = slots_[SlotOf(entry.key)];
    if (slot.owner == entry.key && slot.counts[kOwn] > 0)
      owned_.push_back({entry.key, slot.counts[kOwn]});
  }
  found_.clear();
  internal::ForEachRun(std::span<const Key>(aside_).first(aside_size_), 1,
                       [&](Key key, std::uint64_t count) {
                         if (count >= least || slots_[SlotOf(key)].counts[kOthers] >= kKept) {
                           found_.push_back({key, count});
                         }
                       });
  items_.resize(owned_.size() + found_.size());
  std::merge(owned_.begin(), owned_.end(), found_.begin(), found_.end(), items_.begin(),
             [](const auto& a, const auto& b) { return a.key < b.key; });
}

template class ItemCounter<std::uint32_t>;
template class ItemCounter<std::uint64_t>;

}  // namespace tidemark
