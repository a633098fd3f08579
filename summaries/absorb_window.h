// How a window of sorted pairs enters cuts: every cut learns its exact mass in the window, so that
// its bounds move but do not part, and new cuts are made where a gap would exceed the budget.
#ifndef TIDEMARK_SUMMARIES_ABSORB_WINDOW_H_
#define TIDEMARK_SUMMARIES_ABSORB_WINDOW_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "summaries/correlated_cuts.h"
#include "summaries/pair_window.h"

namespace tidemark::internal {

template <class Key>
struct Absorbed {
  std::vector<Cut<Key>> cuts;  ///< of both, more than are needed; each gap fits or is atomic
  MassBudget budget;           ///< that of both
  std::uint64_t rounding = 0;  ///< that of before and what the window's sums cut off
};

/// `all`: every key of the window becomes a cut, and the budget is nothing.
/// REQUIRES: `cuts` are in the window's scale and within the budget of their total and `rounding`;
/// all of their gaps are atomic if `all`; the window is not empty. The first and the last cut stay
/// minimum and maximum.
template <class Key, class Y>
Absorbed<Key> Absorb(const CorrelatedCuts<Key>& cuts, PairWindow<Key, Y> window, double epsilon,
                     std::uint64_t rounding, bool all);

/// Whether cuts and window together have at most `most` different keys. Cost: most + 1 runs of the
/// window at most.
template <class Key>
bool FewKeys(const CorrelatedCuts<Key>& cuts, std::span<const Key> x, std::size_t most);

}  // namespace tidemark::internal

#endif  // TIDEMARK_SUMMARIES_ABSORB_WINDOW_H_
