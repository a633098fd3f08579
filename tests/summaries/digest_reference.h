// Digests by their definition, leaf by leaf, what a digest promises, and windows that are hard.
#ifndef TIDEMARK_TESTS_SUMMARIES_DIGEST_REFERENCE_H_
#define TIDEMARK_TESTS_SUMMARIES_DIGEST_REFERENCE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "summaries/digest_rule.h"
#include "summaries/window_digest.h"
#include "tests/summaries/distributions.h"

namespace tidemark::testing {

/// A light cell or a run: its keys are sorted[begin, end).
struct DigestLeaf {
  std::size_t begin, end;
  bool run;
};

/// The leaves of the cells of `level` that sorted[begin, end) are in.
template <class Key>
void CollectLeaves(std::span<const Key> sorted, std::size_t begin, std::size_t end, int level,
                   std::uint64_t stride, std::vector<DigestLeaf>& leaves) {
  for (std::size_t at = begin; at < end;) {
    std::size_t last = at;
    while (last < end && sorted[last] >> level == sorted[at] >> level) ++last;
    if (last - at <= stride) {
      leaves.push_back({at, last, false});
    } else if (level == 0) {
      leaves.push_back({at, last, true});
    } else {
      CollectLeaves(sorted, at, last, internal::RefinedLevel(level, last - at, stride), stride,
                    leaves);
    }
    at = last;
  }
}

/// "Leaves" and "Entries" of digest_rule.h, word for word. REQUIRES: `sorted` is not empty.
template <class Key>
WindowDigest<Key> DigestByDefinition(std::span<const Key> sorted, std::uint64_t stride) {
  std::vector<DigestLeaf> leaves;
  const int level = internal::CellLevel(sorted.front(), sorted.back(), sorted.size(), stride);
  CollectLeaves<Key>(sorted, 0, sorted.size(), level, stride, leaves);
  WindowDigest<Key> digest{sorted.size(), stride, {}, {}};
  std::uint64_t p = 0;
  const auto emit = [&](std::size_t position) {
    digest.keys.push_back(sorted[position - 1]);
    digest.positions.push_back(static_cast<std::uint32_t>(position));
    p = position;
  };
  emit(1);
  std::size_t next = 0;  // the first leaf whose border is out of reach
  while (p < sorted.size()) {
    std::size_t border = p;
    for (; next < leaves.size() && leaves[next].end <= p + stride; ++next) {
      border = leaves[next].end;
    }
    if (next == leaves.size() || !leaves[next].run) {
      emit(border);
      continue;
    }
    const DigestLeaf& run = leaves[next];
    if (run.begin + 1 > p + stride) emit(border);
    if (run.begin + 1 > p) emit(run.begin + 1);
    emit(run.end);
  }
  return digest;
}

template <class Key>
void CheckDigest(const WindowDigest<Key>& digest, std::span<const Key> sorted,
                 std::uint64_t stride) {
  ASSERT_EQ(digest.count, sorted.size());
  ASSERT_EQ(digest.stride, stride);
  ASSERT_EQ(digest.keys.size(), digest.positions.size());
  ASSERT_FALSE(digest.keys.empty());
  ASSERT_EQ(digest.positions.front(), 1u);
  ASSERT_EQ(digest.positions.back(), sorted.size());
  for (std::size_t i = 0; i < digest.keys.size(); ++i) {
    const std::uint64_t position = digest.positions[i];
    ASSERT_EQ(sorted[position - 1], digest.keys[i]) << "entry " << i;
    if (i == 0) continue;
    ASSERT_GT(position, digest.positions[i - 1]) << "entry " << i;
    if (digest.keys[i] != digest.keys[i - 1]) {
      ASSERT_LE(position - digest.positions[i - 1], stride) << "entry " << i;
    }
    if (i >= 2) {
      ASSERT_GT(position - digest.positions[i - 2], stride) << "entry " << i;
    }
  }
  ASSERT_LE(digest.keys.size(), 2 + 2 * (sorted.size() - 1) / (stride + 1));
}

/// Up to 700 keys: mixtures of uniform stretches, clusters within clusters, runs, outliers.
template <class Key>
std::vector<Key> RandomDigestWindow(std::mt19937_64& random) {
  if (random() % 4 == 0) {
    const auto& all = kDistributions;
    return Generate<Key>(all[random() % std::size(all)], 1 + random() % 700, random());
  }
  std::vector<Key> keys;
  const std::size_t size = 1 + random() % 700;
  constexpr int kBits = static_cast<int>(8 * sizeof(Key));
  while (keys.size() < size) {
    const Key base =
        random() % 4 == 0 ? static_cast<Key>(random() % 3 - 1) : static_cast<Key>(random());
    const int bits = static_cast<int>(random() % (kBits - 1)) + 1;
    const std::size_t part = 1 + random() % size;
    for (std::size_t i = 0; i < part; ++i) {
      switch (random() % 8) {
        case 0:
          keys.push_back(base);
          break;
        case 1:
          keys.push_back(static_cast<Key>(base + random() % 3));
          break;
        default:
          keys.push_back(static_cast<Key>(base + (static_cast<Key>(random()) >> bits)));
      }
    }
  }
  keys.resize(size);
  return keys;
}

}  // namespace tidemark::testing

#endif  // TIDEMARK_TESTS_SUMMARIES_DIGEST_REFERENCE_H_
