// Runs of keys with a common prefix in an ascending window, and the ends of given intervals.
#ifndef TIDEMARK_SUMMARIES_PREFIX_RUNS_H_
#define TIDEMARK_SUMMARIES_PREFIX_RUNS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "summaries/window_mass.h"

namespace tidemark::internal {

/// The first place in [from, end) that `is_before` does not hold for, by steps that double.
/// REQUIRES: it holds for a first part and for nothing behind it.
template <class Key, class IsBefore>
std::size_t FirstNot(std::span<const Key> keys, std::size_t from, std::size_t end,
                     IsBefore is_before) {
  std::size_t step = 1;
  while (step <= end - from && is_before(keys[from + step - 1])) {
    from += step;
    step *= 2;
  }
  // Not at or behind from + step - 1, where that is a place.
  std::size_t length = std::min(step - 1, end - from);
  while (length > 0) {
    const std::size_t half = (length + 1) / 2;
    from += is_before(keys[from + half - 1]) ? half : 0;
    length -= half;
  }
  return from;
}
/// The first place in [from, end) whose key is not below `key`.
template <class Key>
std::size_t FirstNotBelow(std::span<const Key> keys, std::size_t from, std::size_t end, Key key) {
  return FirstNot(keys, from, end, [key](Key other) { return other < key; });
}
/// The first place in [from, end) whose key is above `key`.
template <class Key>
std::size_t FirstAbove(std::span<const Key> keys, std::size_t from, std::size_t end, Key key) {
  return FirstNot(keys, from, end, [key](Key other) { return other <= key; });
}

/// Calls visit(begin, end), in ascending order, for each run of keys that agree in the bits of
/// `mask` and weigh `least` or more; for least <= 1 for every run.
///
/// Places are compared that lie least / 2 of mass apart: a run of that mass twice holds two
/// neighbours. That touches 2 / least of the keys; where each weighs 1 and hardly any two agree,
/// several pairs are compared without a branch.
template <class Key, class Visit>
void ForEachHeavyRun(std::span<const Key> keys, std::size_t begin, std::size_t end, Key mask,
                     std::uint64_t least, const WindowMass& mass, Visit visit) {
  const Key below = static_cast<Key>(~mask);
  if (least <= 1) {
    while (begin < end) {
      const std::size_t run_end = FirstAbove<Key>(keys, begin + 1, end, keys[begin] | below);
      visit(begin, run_end);
      begin = run_end;
    }
    return;
  }
  constexpr std::size_t kPairs = 8;  // compared at once
  const std::uint64_t stride = least / 2;
  std::size_t floor = begin;  // no run that is looked for begins before it
  std::size_t at = begin;
  while (at < end) {
    if (mass.is_unit() && stride < (end - at) / kPairs) {
      const auto step = static_cast<std::size_t>(stride);
      const Key* const first = keys.data() + at;
      unsigned agreeing = 0;
      for (std::size_t i = 0; i < kPairs; ++i) {
        agreeing |= unsigned{((first[i * step] ^ first[(i + 1) * step]) & mask) == 0};
      }
      if (agreeing == 0) {
        at += kPairs * step;
        floor = at - step;
        continue;
      }
    }
    const std::size_t far = mass.Advance(at, stride, end);
    if (far >= end) return;
    if (((keys[at] ^ keys[far]) & mask) != 0) {
      floor = at;
      at = far;
      continue;
    }
    const std::size_t run_begin = FirstNotBelow<Key>(keys, floor, at, keys[at] & mask);
    const std::size_t run_end = FirstAbove<Key>(keys, far, end, keys[at] | below);
    if (mass.Of(run_begin, run_end) >= least) visit(run_begin, run_end);
    floor = at = run_end;
  }
}

}  // namespace tidemark::internal

#endif  // TIDEMARK_SUMMARIES_PREFIX_RUNS_H_
