// Runs of sorted arrays and the branch-free merge, against the plain way to do the same.
#include "summaries/sorted_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "summaries/merge_sorted.h"
#include "tests/summaries/cases.h"

namespace tidemark {
namespace {

std::vector<std::uint32_t> RandomSorted(std::mt19937_64& random) {
  std::vector<std::uint32_t> keys;
  const std::size_t size = random() % 400;
  const std::uint64_t longest = 1 + random() % 60;
  while (keys.size() < size) {
    const auto key = random() % 8 == 0 ? ~static_cast<std::uint32_t>(random() % 3)
                                       : static_cast<std::uint32_t>(random() % 500);
    keys.insert(keys.end(), 1 + random() % longest, key);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

TEST(SortedRuns, LongRunsAreFoundWithTheirLengths) {
  for (std::uint64_t seed = 0; seed < Seeds(4000); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto keys = RandomSorted(random);
    std::map<std::uint32_t, std::uint64_t> counts;
    for (const auto key : keys) ++counts[key];
    const std::uint64_t least = 1 + random() % 40;
    std::vector<std::pair<std::uint32_t, std::uint64_t>> expected, found;
    for (const auto& run : counts) {
      if (run.second >= least) expected.push_back(run);
    }
    internal::ForEachRun(
        std::span<const std::uint32_t>(keys), least,
        [&](std::uint32_t key, std::uint64_t count) { found.emplace_back(key, count); });
    ASSERT_EQ(found, expected) << "least " << least;
  }
}

TEST(SortedRuns, LongArraysWithHugeRuns) {
  for (std::uint64_t seed = 0; seed < Seeds(300, 20'000); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::vector<std::uint64_t> keys;
    const std::size_t size = random() % 20'000;
    for (std::uint64_t key = 0; keys.size() < size; key += 1 + random() % 3) {
      const std::uint64_t length = std::uint64_t{1} << (random() % (random() % 8 == 0 ? 13 : 5));
      keys.insert(keys.end(), 1 + random() % length, key << 40 | key);
    }
    for (const std::uint64_t least : {std::uint64_t{1}, std::uint64_t{2}, 1 + random() % 70}) {
      std::vector<std::pair<std::size_t, std::size_t>> expected, found;
      for (std::size_t at = 0; at < keys.size();) {
        const std::size_t begin = at;
        while (at < keys.size() && keys[at] == keys[begin]) ++at;
        if (at - begin >= least) expected.emplace_back(begin, at);
      }
      internal::ForEachRunAt(
          std::span<const std::uint64_t>(keys), least,
          [&](std::size_t begin, std::size_t end) { found.emplace_back(begin, end); });
      ASSERT_EQ(found, expected) << "least " << least;
    }
  }
}

TEST(SortedRuns, EveryRunAtEveryPlaceAndStride) {
  // One run of each length at each place of 70 otherwise distinct keys, for each least length.
  for (std::size_t length = 1; length <= 24; ++length) {
    for (std::size_t place = 0; place + length <= 70; ++place) {
      std::vector<std::uint64_t> keys(70);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        keys[i] = i < place ? i : std::max(i, place + length - 1);
      }
      for (std::uint64_t least = 1; least <= 26; ++least) {
        std::uint64_t runs = 0;
        internal::ForEachRun(std::span<const std::uint64_t>(keys), least,
                             [&](std::uint64_t, std::uint64_t count) {
                               runs += count >= 2 || length == 1;
                               ASSERT_TRUE(count == length || count == 1);
                               ASSERT_GE(count, least);
                             });
        ASSERT_EQ(runs, length == 1 ? (least == 1 ? 70 : 0) : (least <= length ? 1 : 0))
            << length << ' ' << place << ' ' << least;
      }
    }
  }
}

TEST(SortedRuns, KeysAreFoundWhetherThereOrNot) {
  for (std::uint64_t seed = 0; seed < Seeds(2000); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto keys = RandomSorted(random);
    std::vector<std::uint32_t> wanted;
    for (std::uint32_t key = 0; key < 510; ++key) {
      if (random() % 3 == 0) wanted.push_back(key);
    }
    wanted.push_back(~0u);
    std::size_t visited = 0;
    internal::FindKeys(
        std::span<const std::uint32_t>(keys), wanted.size(),
        [&](std::size_t i) { return wanted[i]; },
        [&](std::size_t i, std::size_t begin, std::size_t end) {
          ASSERT_EQ(i, visited++);
          const auto [first, last] = std::equal_range(keys.begin(), keys.end(), wanted[i]);
          ASSERT_EQ(begin, static_cast<std::size_t>(first - keys.begin()));
          ASSERT_EQ(end, static_cast<std::size_t>(last - keys.begin()));
        });
    ASSERT_EQ(visited, wanted.size());
  }
}

TEST(MergeEqualLengths, EqualsStdMerge) {
  for (std::uint64_t seed = 0; seed < Seeds(1000); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const std::size_t n = random() % 70;
    std::vector<std::uint64_t> a(n), b(n), merged(2 * n), expected(2 * n);
    const std::uint64_t range = 1 + random() % 100;
    for (auto& key : a) key = random() % range;
    for (auto& key : b) key = random() % range + (seed % 3) * range;  // also apart
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    std::merge(a.begin(), a.end(), b.begin(), b.end(), expected.begin());
    MergeEqualLengths(a.data(), b.data(), n, merged.data());
    ASSERT_EQ(merged, expected);
    MergeEqualLengths(b.data(), a.data(), n, merged.data());
    ASSERT_EQ(merged, expected);
  }
}

}  // namespace
}  // namespace tidemark
