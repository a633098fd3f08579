// What sorters on a device check before they overwrite the caller's keys.
#include "gpu/sort/sorted_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/gpu/sort_cases.h"

namespace tidemark::sort {
namespace {

using testing::Distributions;
using testing::MakeKeys;

template <class Key>
bool Looks(const std::vector<Key>& sorted, const std::vector<Key>& original) {
  return LooksSorted<Key>(std::span<const Key>(sorted), std::span<const Key>(original));
}

template <class Key>
class SortedCheck : public ::testing::Test {};
using Keys = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(SortedCheck, Keys);

TYPED_TEST(SortedCheck, AcceptsWhatStdSortMakes) {
  for (const std::string& distribution : Distributions()) {
    for (const std::size_t n : {0, 1, 2, 1000}) {
      const std::vector<TypeParam> keys = MakeKeys<TypeParam>(distribution, n, n);
      std::vector<TypeParam> sorted = keys;
      std::sort(sorted.begin(), sorted.end());
      EXPECT_TRUE(Looks(sorted, keys)) << distribution;
    }
  }
}

TYPED_TEST(SortedCheck, RefusesWhatALostContextReturns) {
  const std::vector<TypeParam> keys = MakeKeys<TypeParam>("random", 1000, 1);
  std::vector<TypeParam> sorted = keys;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_FALSE(Looks(keys, keys)) << "untouched";
  EXPECT_FALSE(Looks(std::vector<TypeParam>(1000), keys)) << "zeros";
  std::vector<TypeParam> other = MakeKeys<TypeParam>("random", 1000, 2);
  std::sort(other.begin(), other.end());
  EXPECT_FALSE(Looks(other, keys)) << "another window";
  std::swap(sorted[500], sorted[501]);
  EXPECT_FALSE(Looks(sorted, keys)) << "one pair out of order";
  std::swap(sorted[500], sorted[501]);
  sorted[500] = sorted[501];
  EXPECT_FALSE(Looks(sorted, keys)) << "a key twice, another lost";
}

TYPED_TEST(SortedCheck, SeesAPayloadBesideAnotherKey) {
  using Pair = std::pair<TypeParam, std::uint32_t>;
  for (const char* distribution : {"random", "few distinct", "all equal", "all max"}) {
    const std::vector<TypeParam> keys = MakeKeys<TypeParam>(distribution, 300, 1);
    std::vector<std::uint32_t> payloads(300);
    std::iota(payloads.begin(), payloads.end(), 7);
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < 300; ++i) pairs.emplace_back(keys[i], payloads[i]);
    std::sort(pairs.begin(), pairs.end());
    std::vector<TypeParam> sorted;
    std::vector<std::uint32_t> moved;
    for (const auto& [key, payload] : pairs) {
      sorted.push_back(key);
      moved.push_back(payload);
    }
    const auto looks = [&] { return LooksSorted<TypeParam>(sorted, moved, keys, payloads); };
    EXPECT_TRUE(looks()) << distribution;
    std::swap(moved[100], moved[200]);
    EXPECT_FALSE(looks()) << distribution << ", payloads exchanged";
    std::swap(moved[100], moved[200]);
    moved[299] += 1;
    EXPECT_FALSE(looks()) << distribution << ", another payload";
  }
}

}  // namespace
}  // namespace tidemark::sort
