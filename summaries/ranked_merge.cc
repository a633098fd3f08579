#include "summaries/ranked_merge.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tidemark::internal {
namespace {

template <class Key>
void Append(RankedSamples<Key>& to, Key key, std::uint64_t low, std::uint64_t high) {
  to.keys.push_back(key);
  to.low.push_back(low);
  to.high.push_back(high);
}

template <class Key>
void Resize(RankedSamples<Key>& samples, std::size_t entries) {
  samples.keys.resize(entries);
  samples.low.resize(entries);
  samples.high.resize(entries);
}

template <class Key>
void Reserve(RankedSamples<Key>& samples, std::size_t entries) {
  samples.keys.reserve(entries);
  samples.low.reserve(entries);
  samples.high.reserve(entries);
}

/// Entries [begin, end) move to `kept` and what follows it. Returns the end of the moved ones.
template <class Key>
std::size_t Move(RankedSamples<Key>& samples, std::size_t begin, std::size_t end,
                 std::size_t kept) {
  if (begin != kept) {
    std::copy(samples.keys.data() + begin, samples.keys.data() + end, samples.keys.data() + kept);
    std::copy(samples.low.data() + begin, samples.low.data() + end, samples.low.data() + kept);
    std::copy(samples.high.data() + begin, samples.high.data() + end, samples.high.data() + kept);
  }
  return kept + (end - begin);
}

/// The first index from `at` on whose key is not below v. Counted eight at a time, without a branch
/// on the single comparison.
template <class Key>
std::size_t SkipBelow(const std::vector<Key>& keys, std::size_t at, Key v) {
  constexpr std::size_t kAtOnce = 8;
  while (at + kAtOnce <= keys.size()) {
    unsigned below = 0;
    for (std::size_t i = 0; i < kAtOnce; ++i) below += keys[at + i] < v;
    at += below;
    if (below < kAtOnce) return at;
  }
  while (at < keys.size() && keys[at] < v) ++at;
  return at;
}

}  // namespace

template <class Key>
RankedSamples<Key> FromDigest(const WindowDigest<Key>& digest) {
  RankedSamples<Key> samples{.count = digest.count, .keys = digest.keys};
  samples.low.assign(digest.positions.begin(), digest.positions.end());
  samples.high = samples.low;
  return samples;
}

template <class Key>
WindowDigest<Key> WholeDigest(std::span<const Key> sorted) {
  WindowDigest<Key> digest;
  digest.count = sorted.size();
  digest.keys.reserve(sorted.size());
  digest.positions.reserve(sorted.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i > 0 && i + 1 < sorted.size() && sorted[i - 1] == sorted[i + 1]) continue;
    digest.keys.push_back(sorted[i]);
    digest.positions.push_back(static_cast<std::uint32_t>(i + 1));
  }
  return digest;
}

template <class Key>
void Mirror(RankedSamples<Key>& samples) {
  for (Key& key : samples.keys) key = static_cast<Key>(~key);
  std::reverse(samples.keys.begin(), samples.keys.end());
  std::swap(samples.low, samples.high);
  for (auto* ranks : {&samples.low, &samples.high}) {
    std::reverse(ranks->begin(), ranks->end());
    for (std::uint64_t& rank : *ranks) rank = samples.count + 1 - rank;
  }
}

template <class Key>
void Mirror(WindowDigest<Key>& digest) {
  for (Key& key : digest.keys) key = static_cast<Key>(~key);
  for (std::uint32_t& position : digest.positions) {
    position = static_cast<std::uint32_t>(digest.count + 1 - position);
  }
  std::reverse(digest.keys.begin(), digest.keys.end());
  std::reverse(digest.positions.begin(), digest.positions.end());
}

// Of equal keys those of `a` come first, in one fixed order of equal values. So before an entry of
// `a` come the values of `b` below it, and before an entry of `b` those of `a` up to it.
template <class Key>
RankedSamples<Key> Unite(const RankedSamples<Key>& a, const RankedSamples<Key>& b) {
  RankedSamples<Key> both{.count = a.count + b.count};
  Reserve(both, a.keys.size() + b.keys.size());
  std::size_t i = 0, j = 0;
  while (i < a.keys.size() || j < b.keys.size()) {
    if (j == b.keys.size() || (i < a.keys.size() && a.keys[i] <= b.keys[j])) {
      Append(both, a.keys[i], a.low[i] + b.Low(j), a.high[i] + b.High(j));
      ++i;
    } else {
      Append(both, b.keys[j], b.low[j] + a.Low(i), b.high[j] + a.High(i));
      ++j;
    }
  }
  return both;
}

namespace {

/// An entry of `held` in the union with a window, and the window's entries between it and the one
/// before: [from, to).
struct Gap {
  std::size_t held, from, to;
};

/// Adds to the rank bounds in `held` what the window lets be known of them; returns the gaps into
/// which entries of the window have to go.
template <class Key>
std::vector<Gap> Advance(RankedSamples<Key>& held, const WindowDigest<Key>& window,
                         const GapLimit& limit) {
  const std::size_t size = held.keys.size(), last = window.keys.size();
  std::vector<Gap> wide;
  std::size_t from = 0;
  std::uint64_t low_before = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t to = SkipBelow(window.keys, from, held.keys[i]);
    held.low[i] += to > 0 ? window.positions[to - 1] : 0;
    held.high[i] += to < last ? window.positions[to] - 1 : window.count;
    const bool is_wide = held.high[i] - low_before > 1 + limit.Width(held.high[i]);
    // Before the minimum all must go in. Between equal keys nothing lies.
    if (to > from && (i == 0 || (is_wide && held.keys[i - 1] != held.keys[i]))) {
      wide.push_back({i, from, to});
    }
    low_before = held.low[i];
    from = to;
  }
  if (from < last) wide.push_back({size, from, last});  // behind the maximum, too
  return wide;
}

}  // namespace

template <class Key>
RankedSamples<Key> UniteWhereNeeded(RankedSamples<Key> held, const WindowDigest<Key>& window,
                                    const GapLimit& limit) {
  const std::uint64_t held_count = held.count;
  const std::vector<Gap> wide = Advance(held, window, limit);
  held.count += window.count;
  if (wide.empty()) return held;
  std::size_t entries = held.keys.size();
  for (const Gap& gap : wide) entries += gap.to - gap.from;
  RankedSamples<Key> both{.count = held.count};
  Resize(both, entries);
  std::size_t done = 0, at = 0;
  const auto copy_held = [&](std::size_t end) {
    std::copy(held.keys.data() + done, held.keys.data() + end, both.keys.data() + at);
    std::copy(held.low.data() + done, held.low.data() + end, both.low.data() + at);
    std::copy(held.high.data() + done, held.high.data() + end, both.high.data() + at);
    at += end - done;
    done = end;
  };
  for (const Gap& gap : wide) {
    copy_held(gap.held);
    // What `held` knew of this place before the window.
    const std::uint64_t low =
        gap.held > 0 ? held.low[gap.held - 1] - (gap.from > 0 ? window.positions[gap.from - 1] : 0)
                     : 0;
    const std::uint64_t high =
        gap.held < held.keys.size()
            ? held.high[gap.held] - 1 -
                  (gap.to < window.keys.size() ? window.positions[gap.to] - 1 : window.count)
            : held_count;
    for (std::size_t j = gap.from; j < gap.to; ++j, ++at) {
      both.keys[at] = window.keys[j];
      both.low[at] = low + window.positions[j];
      both.high[at] = high + window.positions[j];
    }
  }
  copy_held(held.keys.size());
  return both;
}

template <class Key>
void Prune(RankedSamples<Key>& samples, const GapLimit& limit) {
  const std::size_t size = samples.keys.size();
  if (size < 3) return;
  // A jump from x to y leaves a gap within the limit if reach(y) <= low(x).
  std::vector<std::uint64_t> reach(size), room(size);
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint64_t most = 1 + limit.Width(samples.high[i]);
    const std::uint64_t unknown = samples.high[i] - samples.low[i];
    reach[i] = samples.high[i] - std::min(samples.high[i], most);
    room[i] = unknown < most / 3 ? (most - 3 * unknown) / 8 : 0;
  }
  const auto may_jump = [&](std::size_t from, std::size_t to, std::uint64_t left) {
    return reach[to] + left <= samples.low[from] || samples.keys[to] == samples.keys[from];
  };
  // Jumps over more entries than one begin with a jump over one: where there is none, all stay.
  std::size_t kept = 0, moved = 0;  // entries before `moved` are done with
  for (std::size_t at = 0; at + 2 < size;) {
    if (!may_jump(at, at + 2, room[at + 1])) {
      ++at;
      continue;
    }
    std::size_t next = at + 2;
    std::uint64_t left = room[at + 1];  // the room that the entries passed over ask for
    while (next + 1 < size) {
      left = std::max(left, room[next]);
      if (!may_jump(at, next + 1, left)) break;
      ++next;
    }
    kept = Move(samples, moved, at + 1, kept);
    moved = at = next;
  }
  Resize(samples, Move(samples, moved, size, kept));
}

template <class Key>
bool Within(const RankedSamples<Key>& samples, const GapLimit& limit) {
  for (std::size_t i = 1; i < samples.keys.size(); ++i) {
    if (samples.keys[i - 1] == samples.keys[i]) continue;
    if (samples.high[i] - samples.low[i - 1] > 1 + limit.Width(samples.high[i])) return false;
  }
  return true;
}

#define TIDEMARK_INSTANTIATE(Key)                                                            \
  template RankedSamples<Key> FromDigest(const WindowDigest<Key>&);                          \
  template WindowDigest<Key> WholeDigest(std::span<const Key>);                              \
  template void Mirror(RankedSamples<Key>&);                                                 \
  template void Mirror(WindowDigest<Key>&);                                                  \
  template RankedSamples<Key> Unite(const RankedSamples<Key>&, const RankedSamples<Key>&);   \
  template RankedSamples<Key> UniteWhereNeeded(RankedSamples<Key>, const WindowDigest<Key>&, \
                                               const GapLimit&);                             \
  template void Prune(RankedSamples<Key>&, const GapLimit&);                                 \
  template bool Within(const RankedSamples<Key>&, const GapLimit&)
TIDEMARK_INSTANTIATE(std::uint32_t);
TIDEMARK_INSTANTIATE(std::uint64_t);
#undef TIDEMARK_INSTANTIATE

}  // namespace tidemark::internal
