// Random cases for hierarchical summaries: levels, windows, and how to make a failing case smaller.
#ifndef TIDEMARK_TESTS_SUMMARIES_HIERARCHY_CASES_H_
#define TIDEMARK_TESTS_SUMMARIES_HIERARCHY_CASES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "summaries/hierarchy.h"
#include "summaries/key_weight.h"
#include "tests/summaries/hierarchy_reference.h"

namespace tidemark::testing {

template <class Key>
struct HierarchyCase {
  std::vector<int> lengths;
  std::uint64_t parts = 10;        ///< epsilon is 1 / parts
  std::uint64_t support_of_n = 1;  ///< support is that share of n
  std::uint64_t unseen = 0;
  bool weighted = false;
  int summaries = 1;  ///< windows are dealt out to so many, which are then merged
  std::vector<std::vector<KeyWeight<Key>>> windows;  ///< the last one is the open one

  double epsilon() const { return 1.0 / static_cast<double>(parts); }
};

template <class Key>
std::vector<int> RandomLengths(std::mt19937_64& random) {
  constexpr int kBits = PrefixLevels<Key>::kKeyBits;
  switch (random() % 5) {
    case 0:
      return PrefixLevels<Key>::Every(8).lengths();
    case 1:
      return PrefixLevels<Key>::Every(1).lengths();
    case 2:
      return PrefixLevels<Key>::Every(4).lengths();
    default: {
      std::vector<int> lengths;
      const std::uint64_t denominator = 1 + random() % 12;
      for (int length = 0; length <= kBits; ++length) {
        if (random() % denominator == 0) lengths.push_back(length);
      }
      if (lengths.empty()) lengths.push_back(static_cast<int>(random() % (kBits + 1)));
      return lengths;
    }
  }
}

enum class Tree {
  kUniform,
  kOneSubtree,   // all in one /24 or so
  kCascade,      // each bit has a bias of its own: the shape of addresses in traffic
  kLightLeaves,  // many leaves, each once, under one heavy inner prefix
  kHeavyLeaf,    // one leaf with half of all: its discount leaves its ancestors little
  kTies,         // prefixes of equal counts
  kZipf,
  kAscending,
  kMoving,    // another subtree every few windows
  kExtremes,  // the smallest and the largest keys
};
inline constexpr int kTrees = 10;

template <class Key>
class KeySource {
 public:
  KeySource(Tree tree, std::mt19937_64& random) : tree_(tree), random_(random) {
    base_ = Any();
    // How many bits differ from key to key: from a few keys to all of them.
    bits_ = 1 + static_cast<int>(random() % PrefixLevels<Key>::kKeyBits);
    if (random() % 2 == 0) bits_ = 1 + static_cast<int>(random() % 10);
    place_ = static_cast<int>(random() %
                              static_cast<std::uint64_t>(PrefixLevels<Key>::kKeyBits - bits_ + 1));
  }

  Key Next(std::size_t window) {
    ++drawn_;
    switch (tree_) {
      case Tree::kUniform:
        return Spread(Any());
      case Tree::kOneSubtree:
        return base_ ^ static_cast<Key>(random_() & 0xFF);
      case Tree::kCascade: {
        Key key = base_;
        std::uint64_t node = 1;
        for (int bit = bits_ - 1; bit >= 0; --bit) {
          const std::uint64_t mixed = (node * 0x9E37'79B9'7F4A'7C15u) >> 56;
          const bool one = random_() % 256 < mixed;
          node = 2 * node + (one ? 1 : 0);
          if (one) key ^= static_cast<Key>(Key{1} << (place_ + bit));
        }
        return key;
      }
      case Tree::kLightLeaves:
        return random_() % 8 == 0 ? Any() : base_ ^ static_cast<Key>(drawn_ & 0xFFF);
      case Tree::kHeavyLeaf:
        return random_() % 2 == 0 ? base_ : base_ ^ (Spread(Any()) & static_cast<Key>(0xFFF));
      case Tree::kTies:
        return base_ ^ static_cast<Key>(static_cast<Key>(drawn_ % 16)
                                        << place_ % (PrefixLevels<Key>::kKeyBits - 4));
      case Tree::kZipf: {
        std::uint64_t rank = 1;
        while (rank < 4096 && random_() % 2 == 0) rank = 2 * rank + random_() % 2;
        return Spread(static_cast<Key>(rank * 0x9E37'79B9'7F4A'7C15u));
      }
      case Tree::kAscending:
        return base_ + static_cast<Key>(drawn_);
      case Tree::kMoving:
        return (base_ + static_cast<Key>(static_cast<Key>(window / 3) << place_)) ^
               static_cast<Key>(random_() & 7);
      case Tree::kExtremes:
        return random_() % 2 == 0 ? static_cast<Key>(random_() % 3)
                                  : static_cast<Key>(~static_cast<Key>(random_() % 3));
    }
    return 0;
  }

 private:
  Key Any() {
    if constexpr (sizeof(Key) <= 8) {
      return static_cast<Key>(random_());
    } else {
      const Key high = random_();
      return high << 64 | random_();
    }
  }
  /// The base with some bits of `key`.
  Key Spread(Key key) const {
    const Key mask = static_cast<Key>(
        static_cast<Key>(~Key{0} >> (PrefixLevels<Key>::kKeyBits - bits_)) << place_);
    return (base_ & static_cast<Key>(~mask)) | (key & mask);
  }

  Tree tree_;
  std::mt19937_64& random_;
  Key base_;
  int bits_, place_;
  std::uint64_t drawn_ = 0;
};

/// `longest`: of a window. REQUIRES: longest >= 1.
template <class Key>
HierarchyCase<Key> RandomHierarchyCase(std::uint64_t seed, std::size_t longest = 64) {
  std::mt19937_64 random(seed);
  HierarchyCase<Key> drawn;
  drawn.lengths = RandomLengths<Key>(random);
  constexpr std::uint64_t kParts[] = {2, 3, 5, 10, 20, 50, 100, 1000};
  drawn.parts = kParts[random() % std::size(kParts)];
  drawn.support_of_n = random();
  drawn.unseen = random() % 4 == 0 ? random() % 20 : 0;
  drawn.weighted = random() % 4 == 0;
  drawn.summaries = random() % 3 == 0 ? 1 + static_cast<int>(random() % 5) : 1;
  KeySource<Key> source(static_cast<Tree>(random() % kTrees), random);
  KeySource<Key> other(static_cast<Tree>(random() % kTrees), random);
  const bool mixed = random() % 3 == 0;
  const std::size_t windows = 1 + random() % 20;
  const std::uint64_t heaviest = random() % 2 == 0 ? 4 : 2000;
  for (std::size_t w = 0; w < windows; ++w) {
    std::vector<KeyWeight<Key>> window(random() % (1 + random() % longest));
    for (auto& value : window) {
      value.key = mixed && random() % 2 == 0 ? other.Next(w) : source.Next(w);
      value.weight = drawn.weighted ? random() % heaviest : 1;
    }
    std::sort(window.begin(), window.end(),
              [](const auto& a, const auto& b) { return a.key < b.key; });
    drawn.windows.push_back(std::move(window));
  }
  return drawn;
}

template <class Key>
std::string Describe(const HierarchyCase<Key>& shown) {
  std::ostringstream text;
  text << "lengths";
  for (const int length : shown.lengths) text << ' ' << length;
  text << ", epsilon 1/" << shown.parts << ", support " << shown.support_of_n << " mod n, unseen "
       << shown.unseen << ", summaries " << shown.summaries << (shown.weighted ? ", weighted" : "")
       << ", windows, the last one open:";
  for (const auto& window : shown.windows) {
    text << "\n  {";
    for (const auto& value : window) {
      text << ' ' << Hex(value.key);
      if (value.weight != 1) text << '*' << value.weight;
    }
    text << " }";
  }
  return text.str();
}

/// A smaller case that fails, too. `fault(case)` is empty for a case that does not.
template <class Key, class Fault>
HierarchyCase<Key> Shrink(HierarchyCase<Key> failing, Fault fault) {
  const auto try_it = [&](const HierarchyCase<Key>& smaller) {
    if (fault(smaller).empty()) return false;
    failing = smaller;
    return true;
  };
  bool again = true;
  for (int round = 0; again && round < 20; ++round) {
    again = false;
    for (std::size_t i = failing.lengths.size(); i-- > 0 && failing.lengths.size() > 1;) {
      auto smaller = failing;
      smaller.lengths.erase(smaller.lengths.begin() + static_cast<std::ptrdiff_t>(i));
      again |= try_it(smaller);
    }
    for (std::size_t w = failing.windows.size(); w-- > 0 && failing.windows.size() > 1;) {
      auto smaller = failing;
      smaller.windows.erase(smaller.windows.begin() + static_cast<std::ptrdiff_t>(w));
      again |= try_it(smaller);
    }
    for (std::size_t w = 0; w < failing.windows.size(); ++w) {
      for (std::size_t size = failing.windows[w].size(); size > 0; size /= 2) {
        for (std::size_t at = 0; at + size <= failing.windows[w].size();) {
          auto smaller = failing;
          auto& window = smaller.windows[w];
          const auto first = window.begin() + static_cast<std::ptrdiff_t>(at);
          window.erase(first, first + static_cast<std::ptrdiff_t>(size));
          if (try_it(smaller)) {
            again = true;
          } else {
            at += size;
          }
        }
      }
    }
    if (failing.unseen > 0) {
      auto smaller = failing;
      smaller.unseen = 0;
      again |= try_it(smaller);
    }
  }
  return failing;
}

}  // namespace tidemark::testing

#endif  // TIDEMARK_TESTS_SUMMARIES_HIERARCHY_CASES_H_
