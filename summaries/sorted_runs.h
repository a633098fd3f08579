// Runs of equal keys in a sorted array: all of them, the long ones alone, or those of given keys,
// each without looking at more of the array than is needed.
#ifndef TIDEMARK_SUMMARIES_SORTED_RUNS_H_
#define TIDEMARK_SUMMARIES_SORTED_RUNS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tidemark::internal {

/// The end of the run of equal keys that `at` stands in, by doubling steps. REQUIRES: at < size.
template <class Key>
std::size_t RunEnd(std::span<const Key> sorted, std::size_t at) {
  const Key key = sorted[at];
  std::size_t step = 1;
  while (at + step < sorted.size() && sorted[at + step] == key) {
    at += step;
    step *= 2;
  }
  const auto first = sorted.begin() + static_cast<std::ptrdiff_t>(at);
  const auto last =
      sorted.begin() + static_cast<std::ptrdiff_t>(std::min(at + step, sorted.size()));
  return static_cast<std::size_t>(std::upper_bound(first, last, key) - sorted.begin());
}

/// Its begin, not looked for before `least`. REQUIRES: least <= at, and the run does not begin
/// earlier.
template <class Key>
std::size_t RunBegin(std::span<const Key> sorted, std::size_t at, std::size_t least) {
  const Key key = sorted[at];
  std::size_t step = 1;
  while (at >= least + step && sorted[at - step] == key) {
    at -= step;
    step *= 2;
  }
  const std::size_t from = at >= least + step ? at - step : least;
  const auto first = sorted.begin() + static_cast<std::ptrdiff_t>(from);
  const auto last = sorted.begin() + static_cast<std::ptrdiff_t>(at);
  return static_cast<std::size_t>(std::lower_bound(first, last, key) - sorted.begin());
}

/// Calls visit(key, length) for each run of at least `least` keys, in ascending order.
///
/// A run of `least` keys begins where a key equals the one least - 1 places on. For small `least`
/// every place is compared so: contiguous loads, vectorised. For a large one only every h-th place
/// is compared with the next such place, h = least / 2: a run of 2h keys or more covers two
/// neighbours. That touches 2 / least of the keys. In both, in most data hardly any pair is equal,
/// and blocks of pairs are compared without a branch.
template <class Key, class Visit>
void ForEachRun(std::span<const Key> sorted, std::uint64_t least, Visit visit) {
  const std::size_t size = sorted.size();
  if (least > size) return;
  if (least < 2) {
    for (std::size_t at = 0; at < size;) {
      const std::size_t near = std::min(size, at + 8);
      std::size_t end = at + 1;
      while (end < near && sorted[end] == sorted[at]) ++end;
      if (end == near && end < size) end = RunEnd(sorted, end - 1);
      visit(sorted[at], static_cast<std::uint64_t>(end - at));
      at = end;
    }
    return;
  }
  // From here every compared pair is `reach` apart and compared places are `step` apart.
  constexpr std::uint64_t kDenseMax = 8;
  const bool dense = least <= kDenseMax;
  const std::size_t reach = static_cast<std::size_t>(dense ? least - 1 : least / 2);
  const std::size_t step = dense ? 1 : reach;
  constexpr std::size_t kBlock = 16;  // pairs compared at once
  std::size_t at = 0;
  while (at + reach < size) {
    const std::size_t block_end = at + kBlock * step;
    if (block_end - step + reach < size) {
      const Key* first = sorted.data() + at;
      const Key* second = first + reach;
      unsigned equal = 0;
      if (dense) {
        for (std::size_t i = 0; i < kBlock; ++i) equal |= unsigned{first[i] == second[i]};
      } else {
        for (std::size_t i = 0; i < kBlock; ++i) {
          equal |= unsigned{first[i * step] == second[i * step]};
        }
      }
      if (equal == 0) {
        at = block_end;
        continue;
      }
    }
    // The pairs of this block one by one. Behind a run, go on at its end: the places are counted
    // from there, as the next run begins there or later.
    while (at < block_end && at + reach < size) {
      if (sorted[at] != sorted[at + reach]) {
        at += step;
        continue;
      }
      // The run holds no place compared before: else that pair had been equal.
      const std::size_t begin = RunBegin(sorted, at, at >= step ? at - step : 0);
      const std::size_t end = RunEnd(sorted, at + reach);
      if (end - begin >= least) visit(sorted[at], static_cast<std::uint64_t>(end - begin));
      at = end;
    }
  }
}

/// All ones or all zeros. GCC 12 makes a branch of `condition ? half : 0`.
constexpr std::size_t Mask(bool condition) { return std::size_t{0} - std::size_t{condition}; }

/// Finds given keys: calls visit(index, begin, end) for each of `size` ascending keys
/// key_at(0 … size-1), in that order; sorted[begin, end) are the keys that equal it, in the place
/// where they are or would be. Searches for several keys run side by side, as each waits for
/// memory.
template <class Key, class KeyAt, class Visit>
void FindKeys(std::span<const Key> sorted, std::size_t size, KeyAt key_at, Visit visit) {
  constexpr std::size_t kLanes = 8;
  const Key* const data = sorted.data();
  std::size_t floor = 0;  // nothing of interest lies before it
  for (std::size_t first = 0; first < size; first += kLanes) {
    const std::size_t lanes = std::min(kLanes, size - first);
    std::array<Key, kLanes> keys;
    std::array<const Key*, kLanes> begin, end;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      keys[lane] = key_at(first + std::min(lane, lanes - 1));
      begin[lane] = end[lane] = data + floor;
    }
    // They all lie within a stretch that is guessed from the number of keys and doubled until it
    // does.
    const std::size_t rest = sorted.size() - floor;
    std::size_t length = std::min(rest, 2 * kLanes * (rest / (size - first) + 1));
    while (length < rest && sorted[floor + length - 1] <= keys[lanes - 1]) {
      length = std::min(rest, 2 * length);
    }
    while (length > 1) {
      const std::size_t half = length / 2;
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        begin[lane] += half & Mask(begin[lane][half - 1] < keys[lane]);
        end[lane] += half & Mask(end[lane][half - 1] <= keys[lane]);
      }
      length -= half;
    }
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      if (length == 1) {
        begin[lane] += *begin[lane] < keys[lane] ? 1 : 0;
        end[lane] += *end[lane] <= keys[lane] ? 1 : 0;
      }
      floor = static_cast<std::size_t>(end[lane] - data);
      visit(first + lane, static_cast<std::size_t>(begin[lane] - data), floor);
    }
  }
}

}  // namespace tidemark::internal

#endif  // TIDEMARK_SUMMARIES_SORTED_RUNS_H_
