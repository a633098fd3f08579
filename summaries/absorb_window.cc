#include "summaries/absorb_window.h"

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace tidemark::internal {
namespace {

/// A gap that must be split takes cuts at this share of what is left of its budget, more than are
/// needed, so that Condense can choose.
constexpr int kSplitShift = 3;

/// `used` and a share of the rest of the budget.
MassBudget FineBudget(const MassBounds& used, const MassBudget& budget) {
  MassBudget fine{used.high.count - used.low.count, used.high.weight() - used.low.weight()};
  if (fine.count < budget.count) fine.count += (budget.count - fine.count) >> kSplitShift;
  if (fine.weight < budget.weight) fine.weight += (budget.weight - fine.weight) >> kSplitShift;
  return fine;
}

template <class Key, class Y>
class Absorber {
 public:
  Absorber(const CorrelatedCuts<Key>& cuts, PairWindow<Key, Y>& window)
      : cuts_(cuts), window_(window) {}

  Absorbed<Key> Run(double epsilon, std::uint64_t rounding, bool all) {
    FindCuts();
    const MassBounds& sum = stretches_.back().end_mass;
    result_.rounding = rounding + static_cast<std::uint64_t>(sum.high.weight() - sum.low.weight());
    if (!all) result_.budget = BudgetOf(epsilon, (cuts_.total() + sum).low, result_.rounding);
    result_.cuts.reserve(cuts_.size() + cuts_.size() / 4 + 16);
    MassBounds before;
    for (std::size_t i = 0; i <= cuts_.size(); ++i) {
      TakeStretch(i, before);
      before = stretches_[i].end_mass;
    }
    return std::move(result_);
  }

 private:
  /// The window's pairs in gap i: [begin, inside_end) strictly inside, [inside_end, end) at its
  /// cut.
  struct Stretch {
    std::size_t begin, inside_end, end;
    MassBounds end_mass;  ///< of the window's pairs before `end`
  };

  void FindCuts() {
    const std::span<const Key> x = window_.x();
    stretches_.reserve(cuts_.size() + 1);
    std::size_t done = 0;
    MassBounds mass;
    const auto add = [&](std::size_t inside_end, std::size_t end) {
      mass += window_.Sum(done, end);
      stretches_.push_back({done, inside_end, end, mass});
      done = end;
    };
    FindKeys(
        x, cuts_.size(), [&](std::size_t i) { return cuts_.keys()[i]; },
        [&](std::size_t /*i*/, std::size_t begin, std::size_t end) { add(begin, end); });
    add(x.size(), x.size());
  }

  const Mass& last_low() const { return result_.cuts.back().at_most.low; }
  bool FollowsLast(Key key) const {
    return !result_.cuts.empty() && key == static_cast<Key>(result_.cuts.back().key + 1);
  }
  void Emit(Key key, bool element, bool atomic, const MassBounds& at_most) {
    result_.cuts.push_back({key, element, atomic || FollowsLast(key), at_most});
  }

  void TakeStretch(std::size_t i, const MassBounds& before) {
    const Stretch& stretch = stretches_[i];
    const bool any_inside = stretch.begin < stretch.inside_end;
    const bool first = i == 0, last = i == cuts_.size();
    if (last && !any_inside) return;
    if (!last) {
      Cut<Key> cut = cuts_[i];
      cut.at_most += stretch.end_mass;
      cut.element |= stretch.inside_end < stretch.end;
      if (!any_inside && cut.atomic) {
        result_.cuts.push_back(cut);
        return;
      }
      if (!first && Fits(last_low(), cut.at_most.high, cut.element, result_.budget)) {
        cut.atomic = false;
        result_.cuts.push_back(cut);
        return;
      }
    }
    Split(i, before);
  }

  /// New cuts in gap i, and its own.
  void Split(std::size_t i, const MassBounds& before) {
    const Stretch& stretch = stretches_[i];
    const MassBounds inside = cuts_.Inside(i);
    const bool closed = i == cuts_.size() || cuts_.atomic(i);  // before this window
    const std::span<const Key> x = window_.x();
    const MassBudget fine = FineBudget(inside, result_.budget);
    std::size_t from = stretch.begin;  // the pairs before it lie at or below the last cut
    MassBounds mass = before;
    if (i == 0 && from < stretch.inside_end) {  // a new minimum
      const std::size_t end = window_.EndOfRun(from);
      mass += window_.Sum(from, end);
      Emit(x[from], true, true, mass);
      from = end;
    }
    std::size_t to = from;  // [from, to) is not behind a cut yet
    while (true) {
      const auto reach =
          window_.Furthest(to, stretch.inside_end, mass, [&](const MassBounds& longer) {
            return Fits(last_low(), inside.high + longer.high, true, fine);
          });
      to = reach.end;
      mass = reach.mass;
      if (to == stretch.inside_end) break;
      if (from < to) {
        Emit(x[to - 1], true, closed && x[from] == x[to - 1], inside + mass);
      } else {
        to = SplitAtRun(from, closed, inside, mass);
      }
      from = to;
    }
    const auto cut_inside = [&] {
      if (from < to) Emit(x[to - 1], true, closed && x[from] == x[to - 1], inside + mass);
    };
    if (i == cuts_.size()) {
      cut_inside();
      return;
    }
    Cut<Key> cut = cuts_[i];
    cut.at_most += stretch.end_mass;
    cut.element |= stretch.inside_end < stretch.end;
    const auto fits = [&] {
      return Fits(last_low(), cut.at_most.high, cut.element, result_.budget);
    };
    if (from == to || !fits()) {
      cut_inside();
      cut.atomic = closed || FollowsLast(cut.key);
      if (!cut.atomic && !fits()) {
        Emit(static_cast<Key>(cut.key - 1), false, false, inside + mass);
        cut.atomic = true;
      }
    } else {
      cut.atomic = false;
    }
    result_.cuts.push_back(cut);
  }

  /// The run at `at` is too heavy for the fine budget and the last cut lies before it: a cut at it,
  /// and one at the key below if that is needed. Returns its end; adds its mass.
  std::size_t SplitAtRun(std::size_t at, bool closed, const MassBounds& inside, MassBounds& mass) {
    const Key key = window_.x()[at];
    const std::size_t end = window_.EndOfRun(at);
    const MassBounds longer = mass + window_.Sum(at, end);
    if (!closed && !FollowsLast(key) &&
        !Fits(last_low(), inside.high + longer.high, true, result_.budget)) {
      Emit(static_cast<Key>(key - 1), false, false, inside + mass);
    }
    mass = longer;
    Emit(key, true, closed, inside + mass);
    return end;
  }

  const CorrelatedCuts<Key>& cuts_;
  PairWindow<Key, Y>& window_;
  std::vector<Stretch> stretches_;
  Absorbed<Key> result_;
};

}  // namespace

template <class Key, class Y>
Absorbed<Key> Absorb(const CorrelatedCuts<Key>& cuts, PairWindow<Key, Y> window, double epsilon,
                     std::uint64_t rounding, bool all) {
  assert(!window.x().empty());
  return Absorber<Key, Y>(cuts, window).Run(epsilon, rounding, all);
}

template <class Key>
bool FewKeys(const CorrelatedCuts<Key>& cuts, std::span<const Key> x, std::size_t most) {
  std::size_t keys = cuts.size();
  auto cut = cuts.keys().begin();
  for (std::size_t at = 0; at < x.size() && keys <= most; at = RunEnd(x, at)) {
    cut = std::lower_bound(cut, cuts.keys().end(), x[at]);
    if (cut == cuts.keys().end() || *cut != x[at]) ++keys;
  }
  return keys <= most;
}

template bool FewKeys(const CorrelatedCuts<std::uint32_t>&, std::span<const std::uint32_t>,
                      std::size_t);
template bool FewKeys(const CorrelatedCuts<std::uint64_t>&, std::span<const std::uint64_t>,
                      std::size_t);

#define TIDEMARK_INSTANTIATE(Key, Y)                                                    \
  template Absorbed<Key> Absorb(const CorrelatedCuts<Key>&, PairWindow<Key, Y>, double, \
                                std::uint64_t, bool);
TIDEMARK_INSTANTIATE(std::uint32_t, std::int64_t)
TIDEMARK_INSTANTIATE(std::uint32_t, std::uint64_t)
TIDEMARK_INSTANTIATE(std::uint32_t, double)
TIDEMARK_INSTANTIATE(std::uint64_t, std::int64_t)
TIDEMARK_INSTANTIATE(std::uint64_t, std::uint64_t)
TIDEMARK_INSTANTIATE(std::uint64_t, double)
#undef TIDEMARK_INSTANTIATE

}  // namespace tidemark::internal
