// Streams that look at what a quantile summary holds and send what it knows least about: sorted
// windows, one after another.
//
// What makes a summary grow: elements that fall where it holds nothing, again and again, so that
// their ranks are known no better than the gap that they fell into.
#ifndef TIDEMARK_TESTS_SUMMARIES_ADVERSARIES_H_
#define TIDEMARK_TESTS_SUMMARIES_ADVERSARIES_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "summaries/quantile_view.h"
#include "summaries/ranked_samples.h"

namespace tidemark::testing {

enum class Attack {
  kWidestGap,     // where the rank is known least, in the whole range
  kUnknownRange,  // the same, but weighed by how many keys there still are between
  kZoomLow,       // into the last but one gap of where the window before went; then the middle one,
  kZoomMiddle,    // the highest one, a random one
  kZoomHigh,
  kZoomAny,
  kAnyGap,
  kRefine,  // Greenwald and Khanna's lower bound as Cormode and Vesely build it: fill an interval
            // by two streams of half the length, the second one into the widest gap of the first
};
inline constexpr Attack kAttacks[] = {Attack::kWidestGap,  Attack::kUnknownRange, Attack::kZoomLow,
                                      Attack::kZoomMiddle, Attack::kZoomHigh,     Attack::kZoomAny,
                                      Attack::kAnyGap,     Attack::kRefine};
inline const char* Name(Attack attack) {
  static constexpr const char* kNames[] = {"widest gap", "unknown range", "zoom low", "zoom middle",
                                           "zoom high",  "zoom any",      "any gap",  "refine"};
  return kNames[static_cast<int>(attack)];
}

/// `size` ascending keys from low to high, as evenly as they are there.
template <class Key>
std::vector<Key> Spread(Key low, Key high, std::size_t size) {
  std::vector<Key> keys(size);
  const double step =
      (static_cast<double>(high) - static_cast<double>(low)) / static_cast<double>(size);
  for (std::size_t i = 0; i < size; ++i) {
    const double by = step * static_cast<double>(i);
    keys[i] =
        by < static_cast<double>(high - low) ? static_cast<Key>(low + static_cast<Key>(by)) : high;
  }
  return keys;
}

template <class Key>
class Adversary {
 public:
  Adversary(Attack attack, std::uint64_t seed) : attack_(attack), random_(seed) {}

  /// The next window of `size` keys, ascending, for a summary whose state is `view`.
  std::vector<Key> Next(const QuantileView<Key>& view, std::size_t size) {
    ++step_;
    if (view.n() == 0) return Fill(kLeast, kMost, size);
    const RankedSamples<Key> held = view.Samples();
    switch (attack_) {
      case Attack::kWidestGap:
      case Attack::kUnknownRange:
        return FillGap(held, Widest(held, kLeast, kMost, attack_ == Attack::kUnknownRange), size);
      case Attack::kAnyGap:
        return FillGap(held, random_() % (held.keys.size() - 1), size);
      case Attack::kRefine:
        return Refine(held, size);
      default:
        return Zoom(held, size);
    }
  }

 private:
  static constexpr Key kLeast = std::numeric_limits<Key>::max() / 4;
  static constexpr Key kMost = kLeast * 3;

  std::vector<Key> Fill(Key low, Key high, std::size_t size) {
    low_ = low;
    high_ = high;
    return Spread(low, high, size);
  }

  /// Gap i lies between entries i and i + 1.
  std::vector<Key> FillGap(const RankedSamples<Key>& held, std::size_t i, std::size_t size) {
    if (held.keys.size() < 2) return Fill(kLeast, kMost, size);
    const Key low = held.keys[i], high = held.keys[i + 1];
    if (high - low <= 2) return Fill(low, high, size);
    return Fill(static_cast<Key>(low + 1), static_cast<Key>(high - 1), size);
  }

  /// The gap within [low, high] with the widest bounds; 0 if there is none.
  std::size_t Widest(const RankedSamples<Key>& held, Key low, Key high, bool by_range) const {
    std::size_t widest = 0;
    double most = -1;
    for (std::size_t i = 0; i + 1 < held.keys.size(); ++i) {
      const Key from = held.keys[i], to = held.keys[i + 1];
      if (from < low || to > high || to - from <= 2) continue;
      double worth = static_cast<double>(held.high[i + 1] - held.low[i]);
      if (by_range) worth *= std::log2(static_cast<double>(to - from));
      if (worth >= most) {
        most = worth;
        widest = i;
      }
    }
    return widest;
  }

  std::vector<Key> Zoom(const RankedSamples<Key>& held, std::size_t size) {
    std::vector<std::size_t> gaps;
    for (std::size_t i = 0; i + 1 < held.keys.size(); ++i) {
      const Key from = held.keys[i], to = held.keys[i + 1];
      if (from >= low_ && to <= high_ && to - from > 2) gaps.push_back(i);
    }
    // No key is left there: start again elsewhere.
    if (gaps.empty()) return FillGap(held, Widest(held, 0, static_cast<Key>(-1), true), size);
    switch (attack_) {
      case Attack::kZoomLow:
        return FillGap(held, gaps[std::min<std::size_t>(1, gaps.size() - 1)], size);
      case Attack::kZoomMiddle:
        return FillGap(held, gaps[gaps.size() / 2], size);
      case Attack::kZoomHigh:
        return FillGap(held, gaps.back(), size);
      default:
        return FillGap(held, gaps[random_() % gaps.size()], size);
    }
  }

  /// Windows are the leaves of a binary tree. When one has been sent that ends left subtrees, the
  /// right sibling of the largest of them begins: in the widest gap of what that subtree filled.
  std::vector<Key> Refine(const RankedSamples<Key>& held, std::size_t size) {
    const std::uint64_t level = static_cast<std::uint64_t>(std::countr_zero(step_ - 1));
    intervals_.resize(std::max<std::size_t>(intervals_.size(), level + 2), {kLeast, kMost});
    const auto [low, high] = intervals_[level + 1];  // of the node whose left half is done
    const std::size_t widest = Widest(held, low, high, false);
    Key from = held.keys[widest], to = held.keys[widest + 1];
    if (from < low || to > high || to - from <= 4) {
      from = low;
      to = high;
    }
    for (std::uint64_t below = 0; below <= level; ++below) intervals_[below] = {from, to};
    return Spread(static_cast<Key>(from + 1), static_cast<Key>(to - 1), size);
  }

  Attack attack_;
  std::mt19937_64 random_;
  std::uint64_t step_ = 0;
  Key low_ = kLeast, high_ = kMost;  // where the window before went
  std::vector<std::pair<Key, Key>> intervals_;
};

}  // namespace tidemark::testing

#endif  // TIDEMARK_TESTS_SUMMARIES_ADVERSARIES_H_
