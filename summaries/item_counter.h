// Puts a window into a frequency summary without its full order: an order is not needed to count.
//
// Guarantee: the summary is the same to the bit as after a sort and FrequencySummary::AddWindow,
// whatever the keys and whatever was done to get it. What the summary must know of a window is what
// AddItems asks for: the exact count of every key that has an entry, and of every key that comes at
// least LeastCount times.
//
// How: keys are hashed to slots. Of the keys with entries that share a slot the one with the
// greatest count owns it.
//   1. One pass over the window counts for each slot how often its owner came and how many other
//      keys did, and puts these others aside. In Zipf(1.1) at epsilon = 0.01 % that is 2 of 5 keys.
//   2. Those are dropped whose slot has fewer than LeastCount keys that are not its owner's, unless
//      another key of that slot has an entry.
//   3. The few that are left are sorted and their runs counted.
// Proof. A key that owns a slot is never put aside: its count is that of its slot, exact. Of any
// other key all occurrences are put aside, into one slot. They are dropped all together or not at
// all, as 2 looks at slots alone: so that what 3 counts is counted in full. And not if they are
// LeastCount or more, as then the slot holds as many; nor if the key has an entry, as then its slot
// has two keys with entries, itself and the owner.
//
// A look at 256 keys says beforehand what sorting the window would cost, which for few distinct
// keys is next to nothing, and what counting would (Estimate): the cheaper one is done. Where
// counting turned out dear, the next windows of that stream are sorted (GridMemory).
//
// Cost, measured (tests/bench/frequency_bench, one core of an AMD EPYC, medians of 5 rounds;
// windows of 2^18 keys; other work on the machine), and times the rate of a sort with vqsort and
// AddWindow:
//   million keys/s        epsilon 0.01 %, 32 bits   64 bits        0.1 %, 32 bits   64 bits
//   Zipf(1.1)             408, 1.4                  466, 2.2       416, 1.4         334, 1.9
//   uniform               277, 1.1                  220, 1.7       432, 1.5         227, 1.8
//   1,000 distinct        612, 1.8                  395, 2.0       425, 1.7         501, 2.0
// Of 8 kinds of windows, few distinct keys and all equal ones among them, none below 0.99.
// Not guaranteed: a bound on time where light keys are made to share slots, or where what is heavy
// hides from the sample. Where 87 % of the keys were left to sort, a window cost twice its sort
// in 32 bits and 1.5 times in 64; in a stream of such windows that is one in 16. Not counted at
// all: windows of less than 2^12 keys, and a LeastCount below 16 in windows of 2^18 keys, or 26 in
// 2^19, as then slots of light keys fill up to it by chance.
//
// Source: none; the papers sort. Counting heavy keys apart is done in joins and group-bys; that few
// keys of a light slot can be frequent is the step of Park, Chen and Yu (SIGMOD 1995) for frequent
// sets.
//
// Memory: a copy of the window, and up to 2^15 slots of 16 bytes. Deterministic: what is done is a
// function of the window, the summary and the memory; the summary, of what it took in.
// Thread: one at a time. Errors: what `sort` throws, and FrequencySummary::AddWindow.
#ifndef TIDEMARK_SUMMARIES_ITEM_COUNTER_H_
#define TIDEMARK_SUMMARIES_ITEM_COUNTER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "summaries/frequency_summary.h"
#include "summaries/key_weight.h"
#include "summaries/window_grid.h"

namespace tidemark {

/// When counting is tried at all. The defaults are where it begins to pay; tests use others to take
/// every way with few keys.
struct ItemTuning {
  /// Of sorting a random key of a large window, in the unit of grid_plan.h. 0: what was measured
  /// with vqsort on one core of an AMD EPYC (Zen 4). A slower sorter makes counting pay more often.
  double sort_cost = 0;
  std::size_t least_counted = std::size_t{1} << 12;  ///< keys in a window; at least 256
  bool always = false;                               ///< count larger windows whatever it costs
};

/// Serves any streams in turn.
template <class Key>
class ItemCounter {
 public:
  /// Sorts keys ascending, in place.
  using SortKeys = std::function<void(std::span<Key>)>;

  explicit ItemCounter(SortKeys sort, const ItemTuning& tuning = {});

  /// Takes a window into the summary, which is then as documented above. `window`: keys in any
  /// order, which may be changed. `memory`: of the stream that it is from.
  void AddWindow(std::span<Key> window, FrequencySummary<Key>& summary, GridMemory& memory);

  /// How the last one was taken in: counted, or else sorted.
  bool counted() const { return counted_; }
  std::size_t bytes() const;

 private:
  struct Slot {
    Key owner;
    /// How often the owner came, and how many other keys did; kKept more where these are kept
    /// whatever their number.
    std::array<std::uint32_t, 2> counts;
  };
  static constexpr std::size_t kOwn = 0, kOthers = 1;
  static constexpr std::uint32_t kKept = std::uint32_t{1} << 31;

  /// What sorting a key of this window costs, and what counting one does.
  struct Estimate {
    double sort = 0, count = 0;
    bool pays() const;
  };

  std::size_t SlotOf(Key key) const;
  /// The number of slots as a power of two; none if no number will do.
  std::optional<unsigned> SlotBits(std::uint64_t keys, std::uint64_t least,
                                   std::size_t entries) const;
  void ChooseOwners(const FrequencyEntries<Key>& entries);
  double SortCostOf(std::uint64_t least, std::span<const Key> window);
  double CountCostOf(std::uint64_t least, std::uint64_t keys);
  /// False if the window is to be sorted.
  bool Count(std::span<const Key> window, const FrequencySummary<Key>& summary, GridMemory& memory);
  void CountOwners(std::span<const Key> window);
  void DropLight(std::uint64_t least);
  void CollectItems(std::uint64_t least);

  SortKeys sort_;
  ItemTuning tuning_;
  bool counted_ = false;
  unsigned shift_ = 0;  // of a hash, to its slot
  std::vector<Slot> slots_;
  std::vector<FrequencyEntry<Key>> known_;  // the entries
  std::vector<Key> sample_, aside_;
  std::size_t aside_size_ = 0;
  std::vector<KeyWeight<Key>> owned_, found_, items_;
};

extern template class ItemCounter<std::uint32_t>;
extern template class ItemCounter<std::uint64_t>;

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_ITEM_COUNTER_H_
