// Digests that were counted: the same bits as those of sorted windows, whatever was done for them.
#include "summaries/window_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

#include "summaries/digest_rule.h"
#include "summaries/grid_plan.h"
#include "summaries/key_range.h"
#include "tests/summaries/cases.h"
#include "tests/summaries/digest_reference.h"
#include "tests/summaries/distributions.h"
#include "tests/summaries/property.h"

namespace tidemark {
namespace {

using testing::RandomDigestWindow;

template <class Key>
void SortAll(std::span<Key> keys) {
  std::sort(keys.begin(), keys.end());
}

/// Counting is tried with few keys, too, and seems cheap beside the sort.
GridTuning Eager() {
  return {.sort_cost = 1000, .least_counted = 1, .least_planned = 1, .least_stride = 1};
}
/// As on a machine that has none.
GridTuning WithoutVectors(GridTuning tuning) {
  tuning.vectors = false;
  return tuning;
}

/// As WindowGrid takes a sample, so that a test can put keys where it does not look.
std::size_t SampledAt(std::size_t i, std::size_t part) {
  const std::uint64_t mixed = (i + 1) * 0x9E37'79B9'7F4A'7C15;
  return i * part + static_cast<std::size_t>(((mixed >> 32) * part) >> 32);
}

template <class Key>
class WindowGridTest : public ::testing::Test {
 protected:
  /// Whether the digest is that of the sorted window, and the window still holds its keys.
  static void Check(const std::vector<Key>& keys, std::uint64_t stride, const GridTuning& tuning,
                    std::map<DigestPath, int>* paths = nullptr) {
    auto sorted = keys;
    SortAll<Key>(sorted);
    WindowGrid<Key> grid(SortAll<Key>, tuning);
    auto window = keys;
    const auto digest = grid.Digest(window, stride);
    if (paths != nullptr) ++(*paths)[grid.path()];
    const auto expected = DigestSorted<Key>(sorted, stride);
    ASSERT_EQ(digest.positions, expected.positions) << "stride " << stride;
    ASSERT_EQ(digest.keys, expected.keys) << "stride " << stride;
    ASSERT_EQ(digest, expected) << "stride " << stride;
    SortAll<Key>(window);
    ASSERT_EQ(window, sorted) << "stride " << stride;
  }
};
using KeyTypes = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(WindowGridTest, KeyTypes);

template <class Key>
struct GridInput {
  std::vector<Key> keys;
  std::uint64_t stride = 1;
  GridTuning tuning;
};

TYPED_TEST(WindowGridTest, SameBitsAsSortedWhateverIsTried) {
  using Key = TypeParam;
  std::map<DigestPath, int> paths;
  testing::ForSeeds<GridInput<Key>>(
      Cases(3000),
      [](std::mt19937_64& random) {
        GridInput<Key> input{RandomDigestWindow<Key>(random), 1, Eager()};
        std::shuffle(input.keys.begin(), input.keys.end(), random);
        input.stride = 1 + random() % (random() % 4 == 0 ? 2 * input.keys.size() + 1 : 40);
        constexpr double kCosts[] = {0, 2, 10, 1000};
        input.tuning.sort_cost = kCosts[random() % 4];
        input.tuning.watch = random() % 2 == 0;
        if (random() % 2 == 0) input.tuning = WithoutVectors(input.tuning);
        return input;
      },
      [&](const GridInput<Key>& input) {
        TestFixture::Check(input.keys, input.stride, input.tuning, &paths);
      });
  EXPECT_GT(paths[DigestPath::kSorted], 100);
  EXPECT_GT(paths[DigestPath::kCounted], 100);
  EXPECT_GT(paths[DigestPath::kRefined], 100);
}

// The real tuning, and plans of every kind: windows that are large enough for them.
TYPED_TEST(WindowGridTest, LargeWindowsOfEveryDistribution) {
  using Key = TypeParam;
  std::map<DigestPath, int> paths;
  for (const auto distribution : testing::kDistributions) {
    for (const std::size_t size : {std::size_t{1} << 14, std::size_t{150'001}}) {
      const auto keys = testing::Generate<Key>(distribution, size, 3);
      for (const std::uint64_t stride : {11, 33, 500, 5000}) {
        for (const auto& tuning : {GridTuning{}, WithoutVectors({}), Eager()}) {
          SCOPED_TRACE(::testing::Message() << testing::Name(distribution) << ' ' << size
                                            << " sort cost " << tuning.sort_cost);
          ASSERT_NO_FATAL_FAILURE(TestFixture::Check(keys, stride, tuning, &paths));
        }
      }
    }
  }
  EXPECT_GT(paths[DigestPath::kSorted], 0);
  EXPECT_GT(paths[DigestPath::kCounted], 0);
  EXPECT_GT(paths[DigestPath::kRefined], 0);
}

// Clusters within clusters, of which each holds half of what is left: splits within splits, blocks,
// cells that must be refined again and again.
TYPED_TEST(WindowGridTest, NestedClustersWithOutliers) {
  using Key = TypeParam;
  constexpr int kBits = static_cast<int>(8 * sizeof(Key));
  std::map<DigestPath, int> paths;
  const int cases = Cases(10, 200);
  for (int seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const std::size_t size = (std::size_t{1} << 16) + random() % 100'000;
    const std::size_t often = std::size_t{1} << (1 + random() % 8);  // one in so many goes deeper
    const int step = 1 + static_cast<int>(random() % 8);
    const Key center = static_cast<Key>(random());
    std::vector<Key> keys(size);
    for (Key& key : keys) {
      int depth = 0;
      while (depth + step < kBits && (often > 64 ? random() % often != 0 : random() % often == 0)) {
        depth += step;
      }
      key = static_cast<Key>(center + (static_cast<Key>(random()) >> depth));
    }
    const std::uint64_t stride = 12 + random() % 600;
    for (const bool watch : {true, false}) {
      GridTuning tuning = seed % 2 == 0 ? GridTuning{} : Eager();
      if (seed % 4 < 2) tuning = WithoutVectors(tuning);
      tuning.watch = watch;
      ASSERT_NO_FATAL_FAILURE(TestFixture::Check(keys, stride, tuning, &paths));
    }
  }
  EXPECT_GT(paths[DigestPath::kRefined], 0);
}

// Integers that crowd at the low end, by any power, from any base: blocks by order of magnitude,
// within one cell of the digest and larger than one; runs of small numbers; some far off.
TYPED_TEST(WindowGridTest, KeysThatCrowdAtTheLowEnd) {
  using Key = TypeParam;
  std::map<DigestPath, int> paths;
  const int cases = Cases(60, 1000);
  for (int seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    std::uniform_real_distribution<double> unit;
    const std::size_t size = (std::size_t{1} << 16) + random() % 100'000;
    const double power = 1 + 12 * unit(random);
    const double widest = std::ldexp(1, static_cast<int>(6 + random() % (8 * sizeof(Key) - 6)));
    const Key base = random() % 2 == 0 ? 0 : static_cast<Key>(random()) / 2;
    const std::size_t far_off = random() % 3 == 0 ? 1 + random() % 2000 : 0;  // one in so many
    std::vector<Key> keys(size);
    for (Key& key : keys) {
      const double distance = widest * std::pow(unit(random), power) / 2;
      key = static_cast<Key>(base + static_cast<Key>(distance));
      if (far_off > 0 && random() % far_off == 0) key = static_cast<Key>(random());
    }
    const std::uint64_t stride = 12 + random() % 600;
    for (const bool watch : {true, false}) {
      GridTuning tuning = seed % 2 == 0 ? GridTuning{} : Eager();
      if (seed % 8 < 2) tuning = WithoutVectors(tuning);
      tuning.watch = watch;
      ASSERT_NO_FATAL_FAILURE(TestFixture::Check(keys, stride, tuning, &paths));
    }
  }
  EXPECT_GT(paths[DigestPath::kCounted], cases / 4);
  EXPECT_GT(paths[DigestPath::kRefined], 0);
}

// Nearly all keys lie close together, within one cell or at the border of two, and others far off
// on either side: these are parted off first.
TYPED_TEST(WindowGridTest, OneClusterAndOutliers) {
  using Key = TypeParam;
  constexpr std::size_t kSize = std::size_t{1} << 17;
  constexpr int kBits = static_cast<int>(8 * sizeof(Key));
  const int cases = Cases(12, 200);
  for (int seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const int width = 6 + seed * 5 % (kBits - 12);
    Key low = static_cast<Key>(random());
    if (seed % 3 == 0) low = static_cast<Key>(low >> width << width);  // whole cells of many levels
    if (seed % 5 == 0) low = seed % 2 == 0 ? 0 : static_cast<Key>(-1) << width;
    const std::size_t often = std::size_t{100} << (seed % 4);
    std::vector<Key> keys(kSize + random() % 1000);
    for (Key& key : keys) {
      key = random() % often == 0
                ? static_cast<Key>(random())
                : static_cast<Key>(low + (static_cast<Key>(random()) >> (kBits - width)));
    }
    for (const std::uint64_t stride : {17, 131, 1000}) {
      ASSERT_NO_FATAL_FAILURE(TestFixture::Check(keys, stride, GridTuning{}));
      ASSERT_NO_FATAL_FAILURE(TestFixture::Check(keys, stride, Eager()));
    }
  }
}

// That the ways of grid_plan.h are taken where they are meant to be, so that the tests above go
// through all of them.
TYPED_TEST(WindowGridTest, PlansOfEveryKind) {
  using Key = TypeParam;
  using internal::GridWay;
  constexpr std::size_t kSize = std::size_t{1} << 18;
  constexpr std::uint64_t kStride = 300;
  constexpr int kBits = static_cast<int>(8 * sizeof(Key));
  constexpr Key kThird = std::numeric_limits<Key>::max() / 3;
  std::mt19937_64 random(6);
  bool vectors = false, by_magnitude = false;
  const auto way_of = [&](auto key) {
    std::vector<Key> sample(2000);
    for (Key& at : sample) at = static_cast<Key>(key());
    sample[0] = 0;
    sample[1] = std::numeric_limits<Key>::max();
    SortAll<Key>(sample);
    const internal::GridTask<Key> task{
        .count = kSize,
        .min = sample.front(),
        .max = sample.back(),
        .level = internal::CellLevel(sample.front(), sample.back(), kSize, kStride),
        .stride = kStride,
        .vectors = vectors};
    internal::GridPlan<Key> plan;
    internal::PlanGrid<Key>(task, sample, 4, plan);
    EXPECT_TRUE(vectors || (!plan.few_blocks && !plan.log_blocks));
    by_magnitude = plan.way == GridWay::kBlocks && plan.log_blocks;
    return plan.way;
  };
  for (const bool with : {false, true}) {
    vectors = with;
    EXPECT_EQ(way_of([&] { return random(); }), GridWay::kEven);
    EXPECT_EQ(way_of([&] { return static_cast<Key>(random()) >> (random() % 3 * 2); }),
              GridWay::kBlocks);
    EXPECT_EQ(way_of([&] { return kThird + (static_cast<Key>(random()) >> (kBits / 2)); }),
              GridWay::kSplit);
    EXPECT_FALSE(by_magnitude);
    EXPECT_EQ(way_of([&] { return random() % 200 * 1'234'567; }), GridWay::kSort);
    if (!vectors) continue;
    EXPECT_EQ(way_of([&] { return static_cast<Key>(random()) >> (random() % kBits); }),
              GridWay::kBlocks);
    EXPECT_TRUE(by_magnitude);
    const auto small = [&] { return static_cast<Key>(random()) >> (kBits - 12 + random() % 4); };
    EXPECT_EQ(way_of(small), GridWay::kBlocks);
    EXPECT_TRUE(by_magnitude);
  }
}

// What the sample says is wrong: all the places where it looks hold uniform keys, all others one
// value, or a cluster.
TYPED_TEST(WindowGridTest, KeysThatTheSampleMisses) {
  using Key = TypeParam;
  constexpr std::size_t kSize = 200'000;
  std::mt19937_64 random(8);
  for (const std::uint64_t stride : {25, 300}) {
    for (const Key spread : {Key{0}, Key{1}, Key{1000}, Key{100'000}}) {
      std::vector<Key> keys(kSize);
      for (Key& key : keys)
        key = static_cast<Key>(77'777'777 + (spread == 0 ? 0 : random() % spread));
      // The sizes of samples that are taken of such a window.
      for (const std::size_t size :
           {std::size_t{32}, std::size_t{256}, std::min<std::size_t>(4096, 2 * kSize / stride)}) {
        for (std::size_t i = 0; i < size; ++i) {
          keys[SampledAt(i, kSize / size)] = static_cast<Key>(random());
        }
      }
      for (const bool watch : {true, false}) {
        for (GridTuning tuning : {GridTuning{}, Eager()}) {
          tuning.watch = watch;
          SCOPED_TRACE(::testing::Message() << "spread " << spread << " watch " << watch);
          ASSERT_NO_FATAL_FAILURE(TestFixture::Check(keys, stride, tuning));
        }
      }
    }
  }
}

// The watch: where the first part of a window is uniform, the rest not.
TYPED_TEST(WindowGridTest, OrdersThatChangeWithinAWindow) {
  using Key = TypeParam;
  constexpr std::size_t kSize = 1 << 17;
  for (const int eighths : {1, 3, 4, 7}) {
    for (const bool uniform_first : {true, false}) {
      std::mt19937_64 random(static_cast<std::uint64_t>(eighths));
      std::vector<Key> keys(kSize);
      for (std::size_t i = 0; i < kSize; ++i) {
        const bool first = i < kSize / 8 * static_cast<std::size_t>(eighths);
        keys[i] = first == uniform_first ? static_cast<Key>(random())
                                         : static_cast<Key>(1'000'000 + random() % 5000);
      }
      for (const auto& tuning : {GridTuning{}, Eager()}) {
        for (const std::uint64_t stride : {17, 131, 1000}) {
          SCOPED_TRACE(eighths);
          ASSERT_NO_FATAL_FAILURE(TestFixture::Check(keys, stride, tuning));
        }
      }
    }
  }
}

TYPED_TEST(WindowGridTest, TheEndsOfTheKeySpace) {
  using Key = TypeParam;
  constexpr Key kMost = std::numeric_limits<Key>::max();
  std::mt19937_64 random(4);
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{2}, std::size_t{40}, std::size_t{5000}, std::size_t{1} << 17}) {
    std::vector<Key> keys(size);
    for (const Key width : {Key{0}, Key{1}, Key{100}, static_cast<Key>(kMost / 3), kMost}) {
      for (Key& key : keys) {
        const Key offset = width == kMost ? static_cast<Key>(random())
                                          : static_cast<Key>(random() % (width + Key{1}));
        key = random() % 2 == 0 ? offset : static_cast<Key>(kMost - offset);
      }
      for (const std::uint64_t stride : {std::uint64_t{1}, std::uint64_t{20}, std::uint64_t{900},
                                         std::numeric_limits<std::uint64_t>::max()}) {
        SCOPED_TRACE(::testing::Message() << size << " keys, width " << width);
        ASSERT_NO_FATAL_FAILURE(TestFixture::Check(keys, stride, Eager()));
        ASSERT_NO_FATAL_FAILURE(TestFixture::Check(keys, stride, GridTuning{}));
      }
    }
  }
}

// One grid for many windows: nothing of one is left in the next.
TYPED_TEST(WindowGridTest, OneGridForManyWindows) {
  using Key = TypeParam;
  WindowGrid<Key> grid(SortAll<Key>, Eager());
  GridMemory memory;
  const int cases = Cases(1000);
  for (int seed = 0; seed < cases; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed) + 1'000'000);
    auto window = RandomDigestWindow<Key>(random);
    std::shuffle(window.begin(), window.end(), random);
    const std::uint64_t stride = 1 + random() % 60;
    auto sorted = window;
    SortAll<Key>(sorted);
    const auto digest = grid.Digest(window, stride, memory);
    ASSERT_EQ(digest, DigestSorted<Key>(sorted, stride)) << "seed " << seed;
  }
}

// A stream whose windows are not worth counting: the looks become rare, and end when it changes.
TYPED_TEST(WindowGridTest, WaitsAfterWindowsThatDidNotPay) {
  using Key = TypeParam;
  int sorts = 0;
  WindowGrid<Key> grid([&](std::span<Key> keys) {
    ++sorts;
    SortAll<Key>(keys);
  });
  GridMemory memory;
  std::mt19937_64 random(1);
  const auto digest_of = [&](bool few) {
    std::vector<Key> keys(std::size_t{1} << 16);
    for (Key& key : keys) {
      key = static_cast<Key>(few ? random() % 300 * 7'654'321 : random());
    }
    sorts = 0;
    auto window = keys;
    const auto digest = grid.Digest(window, 50, memory);
    SortAll<Key>(keys);
    EXPECT_EQ(digest, DigestSorted<Key>(keys, 50));
  };
  std::vector<int> looks;  // windows at which a sample was sorted, too
  for (int i = 0; i < 50; ++i) {
    digest_of(true);
    EXPECT_EQ(grid.path(), DigestPath::kSorted);
    if (sorts > 1) looks.push_back(i);
  }
  EXPECT_EQ(looks, (std::vector<int>{0, 2, 6, 14, 30, 46}));
  int waited = 0;
  for (; waited < 16 && grid.path() == DigestPath::kSorted; ++waited) digest_of(false);
  EXPECT_EQ(waited, 13);
  for (int i = 0; i < 4; ++i) {
    digest_of(false);
    EXPECT_EQ(grid.path(), DigestPath::kCounted);
  }
  EXPECT_EQ(memory.last_wait, 0);
}

TYPED_TEST(WindowGridTest, RefusesWhatHasNoDigest) {
  using Key = TypeParam;
  WindowGrid<Key> grid(SortAll<Key>);
  std::vector<Key> few{3, 1, 2};
  EXPECT_THROW(grid.Digest(few, 0), std::invalid_argument);
  EXPECT_TRUE(grid.Digest({}, 3).keys.empty());
  EXPECT_EQ(grid.Digest({}, 3), DigestSorted<Key>({}, 3));
}

TYPED_TEST(WindowGridTest, RangeOfManyKeys) {
  using Key = TypeParam;
  std::mt19937_64 random(9);
  for (std::size_t size = 1; size < 300; ++size) {
    std::vector<Key> keys(size);
    for (Key& key : keys) key = static_cast<Key>(random());
    const auto range = internal::RangeOf(std::span<const Key>(keys));
    ASSERT_EQ(range.min, *std::min_element(keys.begin(), keys.end())) << size;
    ASSERT_EQ(range.max, *std::max_element(keys.begin(), keys.end())) << size;
  }
}

}  // namespace
}  // namespace tidemark
