// Runs of equal keys in a sorted array: all of them, the long ones alone, or those of given keys,
// each without looking at more of the array than is needed.
#ifndef TIDEMARK_SUMMARIES_SORTED_RUNS_H_
#define TIDEMARK_SUMMARIES_SORTED_RUNS_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tidemark::internal {

/// All ones or all zeros. GCC 12 makes a branch of `condition ? half : 0`.
constexpr std::size_t Mask(bool condition) { return std::size_t{0} - std::size_t{condition}; }

/// The first place in [first, last) whose key is not below `key`, or last. Without a branch on
/// keys.
template <class Key>
const Key* LowerBound(const Key* first, const Key* last, Key key) {
  for (auto length = static_cast<std::size_t>(last - first); length > 0;) {
    const std::size_t half = (length + 1) / 2;
    first += half & Mask(first[half - 1] < key);
    length -= half;
  }
  return first;
}

/// The first place in [first, last) whose key is above `key`, or last.
template <class Key>
const Key* UpperBound(const Key* first, const Key* last, Key key) {
  for (auto length = static_cast<std::size_t>(last - first); length > 0;) {
    const std::size_t half = (length + 1) / 2;
    first += half & Mask(first[half - 1] <= key);
    length -= half;
  }
  return first;
}

/// The end of the run of equal keys that `at` stands in, by steps that double from `step` on.
/// REQUIRES: at < size, step >= 1.
template <class Key>
std::size_t RunEnd(std::span<const Key> sorted, std::size_t at, std::size_t step = 1) {
  const Key key = sorted[at];
  while (step < sorted.size() - at && sorted[at + step] == key) {
    at += step;
    step *= 2;
  }
  const Key* const data = sorted.data();
  const Key* const last = data + at + std::min(step, sorted.size() - at);
  return static_cast<std::size_t>(UpperBound(data + at, last, key) - data);
}

/// Bit i says whether first[i] == second[i], for 64 places: contiguous loads, compared and packed
/// to bytes as vectors, and the bytes to bits by a multiplication.
template <class Key>
std::uint64_t EqualMask(const Key* first, const Key* second) {
  std::array<std::uint8_t, 64> equal;
  if constexpr (sizeof(Key) == 4) {
    for (std::size_t i = 0; i < 64; ++i) equal[i] = first[i] == second[i] ? 1 : 0;
  } else {
    // The compiler's base line for x86-64 cannot compare 64-bit keys as vectors: their difference
    // is folded to 32 bits.
    std::array<std::uint32_t, 64> difference;
    for (std::size_t i = 0; i < 64; ++i) {
      const Key bits = first[i] ^ second[i];
      difference[i] = static_cast<std::uint32_t>(bits) | static_cast<std::uint32_t>(bits >> 32);
    }
    for (std::size_t i = 0; i < 64; ++i) equal[i] = difference[i] == 0 ? 1 : 0;
  }
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    if constexpr (std::endian::native == std::endian::little) {
      std::uint64_t eight;
      std::memcpy(&eight, &equal[8 * i], 8);
      mask |= ((eight * 0x0102'0408'1020'4080u) >> 56) << (8 * i);
    } else {
      for (std::size_t j = 0; j < 8; ++j) mask |= std::uint64_t{equal[8 * i + j]} << (8 * i + j);
    }
  }
  return mask;
}
/// The same for the first `count` < 64 places; the other bits are 0.
template <class Key>
std::uint64_t EqualMask(const Key* first, const Key* second, std::size_t count) {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < count; ++i) mask |= std::uint64_t{first[i] == second[i]} << i;
  return mask;
}

/// Every run: a key that differs from the next one ends it.
template <class Key, class Visit>
void VisitAllRuns(std::span<const Key> sorted, Visit visit) {
  const Key* const data = sorted.data();
  std::size_t begin = 0;
  for (std::size_t at = 0; at + 1 < sorted.size();) {
    const std::size_t pairs = sorted.size() - 1 - at;
    std::uint64_t ends =
        pairs < 64 ? ~EqualMask(data + at, data + at + 1, pairs) & ((std::uint64_t{1} << pairs) - 1)
                   : ~EqualMask(data + at, data + at + 1);
    if (ends == 0) {  // amid a long run
      at = RunEnd(sorted, at) - 1;
      if (at + 1 == sorted.size()) break;
      ends = 1;
      visit(begin, at + 1);
      begin = ++at;
      continue;
    }
    if (ends == ~std::uint64_t{0}) {  // no two keys are equal
      visit(begin, at + 1);
      for (std::size_t i = 1; i < 64; ++i) visit(at + i, at + i + 1);
      begin = at += 64;
      continue;
    }
    for (; ends != 0; ends &= ends - 1) {
      const std::size_t end = at + static_cast<std::size_t>(std::countr_zero(ends)) + 1;
      visit(begin, end);
      begin = end;
    }
    at += std::min<std::size_t>(pairs, 64);
  }
  if (!sorted.empty()) visit(begin, sorted.size());
}

/// A run of `least` keys or more is where keys equal those least - 1 places on.
/// REQUIRES: 2 <= least <= size.
template <class Key, class Visit>
void VisitRunsDensely(std::span<const Key> sorted, std::size_t least, Visit visit) {
  const Key* const data = sorted.data();
  const std::size_t reach = least - 1;
  for (std::size_t at = 0; at + reach < sorted.size();) {
    const std::size_t pairs = sorted.size() - reach - at;
    std::uint64_t equal = pairs < 64 ? EqualMask(data + at, data + at + reach, pairs)
                                     : EqualMask(data + at, data + at + reach);
    std::size_t next = at + 64;
    while (equal != 0) {
      const auto skip = static_cast<std::size_t>(std::countr_zero(equal));
      const auto ones = static_cast<std::size_t>(std::countr_one(equal >> skip));
      const std::size_t begin = at + skip;
      if (skip + ones == 64) {  // it may go on behind this mask
        const std::size_t end = RunEnd(sorted, begin + ones - 1 + reach);
        visit(begin, end);
        next = end;  // the next run begins there
        break;
      }
      visit(begin, begin + ones + reach);
      equal &= equal + (std::uint64_t{1} << skip);  // clears this run's ones
    }
    at = next;
  }
}

/// Only every h-th place is compared with the next such place, h = least / 2: a run of 2h keys or
/// more covers two neighbours. That touches 2 / least of the keys. Borders of runs are searched for
/// once the places near them are known, so that searches do not wait for one another.
/// REQUIRES: 2 <= least <= size.
template <class Key, class Visit>
void VisitRunsByStrides(std::span<const Key> sorted, std::size_t least, Visit visit) {
  const std::size_t stride = least / 2;
  const Key* const data = sorted.data();
  for (std::size_t at = 0; at + stride < sorted.size();) {
    const std::size_t pairs = std::min<std::size_t>(64, (sorted.size() - 1 - at) / stride);
    std::uint64_t equal = 0;
    if (pairs == 64) {
      for (std::size_t i = 0; i < 64; ++i) {
        equal |= std::uint64_t{data[at + i * stride] == data[at + (i + 1) * stride]} << i;
      }
    } else {
      for (std::size_t i = 0; i < pairs; ++i) {
        equal |= std::uint64_t{data[at + i * stride] == data[at + (i + 1) * stride]} << i;
      }
    }
    std::size_t next = at + pairs * stride;
    while (equal != 0) {
      const auto skip = static_cast<std::size_t>(std::countr_zero(equal));
      const auto ones = static_cast<std::size_t>(std::countr_one(equal >> skip));
      const std::size_t first = at + skip * stride;  // places of one run
      const std::size_t last = first + ones * stride;
      // The run holds no place before `first`: else that pair had been equal, or a run had ended
      // there.
      const Key* const from = data + (first - std::min(first, stride));
      const auto begin =
          static_cast<std::size_t>(LowerBound(from, data + first, data[first]) - data);
      std::size_t end;
      if (skip + ones == pairs) {  // it may go on
        end = RunEnd(sorted, last, stride);
        next = end;  // the next run begins there
        equal = 0;
      } else {
        end = static_cast<std::size_t>(UpperBound(data + last, data + last + stride, data[last]) -
                                       data);
        equal &= equal + (std::uint64_t{1} << skip);  // clears this run's ones
      }
      if (end - begin >= least) visit(begin, end);
    }
    at = next;
  }
}

/// Calls visit(begin, end) for each run sorted[begin, end) of at least `least` equal keys, in
/// ascending order.
template <class Key, class Visit>
void ForEachRunAt(std::span<const Key> sorted, std::uint64_t least, Visit visit) {
  // Up to here, in Zipf(1.1), comparing every key costs no more than finding runs by strides.
  constexpr std::uint64_t kDenseMax = sizeof(Key) == 4 ? 12 : 8;
  if (least > sorted.size()) return;
  if (least < 2) {
    VisitAllRuns(sorted, visit);
  } else if (least <= kDenseMax) {
    VisitRunsDensely(sorted, static_cast<std::size_t>(least), visit);
  } else {
    VisitRunsByStrides(sorted, static_cast<std::size_t>(least), visit);
  }
}

/// The same with visit(key, length).
template <class Key, class Visit>
void ForEachRun(std::span<const Key> sorted, std::uint64_t least, Visit visit) {
  ForEachRunAt(sorted, least, [&](std::size_t begin, std::size_t end) {
    visit(sorted[begin], static_cast<std::uint64_t>(end - begin));
  });
}

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
