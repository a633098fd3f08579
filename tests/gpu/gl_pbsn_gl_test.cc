// gl-pbsn against std::sort, to the bit, on whatever GL there is (Mesa's llvmpipe will do), which
// keys it refuses, and what it does when GL fails. pbsn_plan_test.cc tests the plan that it runs.
// Fails, rather than skips, where no GL context can be opened.
#include "gpu/sort/blend_keys.h"
#include "gpu/sort/gl_pbsn_sorter.h"
#include "gpu/sort/pbsn_plan.h"
#include "tests/gpu/gl_sorter_cases.h"

namespace tidemark::sort {
namespace {

using testing::Distributions;
using testing::ExpectMadeByName;
using testing::ExpectSortsLikeStdSort;
using testing::LongLadder;
using testing::MakeKeys;

class GlPbsnTest : public testing::GlSorterTest<GlPbsnSorter, GlTexelOptions> {};

// 64-bit keys that are less than kBlendRanks apart, at both ends of the range and in its middle.
std::vector<std::uint64_t> NearKeys(const std::string& distribution, std::size_t n,
                                    std::uint64_t seed) {
  const std::uint64_t base = seed % 3 == 0   ? 0
                             : seed % 3 == 1 ? std::uint64_t{0x8123456789abcdef}
                                             : ~std::uint64_t{0} - (kBlendRanks - 1);
  std::vector<std::uint64_t> keys;
  for (const std::uint32_t key : MakeKeys<std::uint32_t>(distribution, n, seed)) {
    keys.push_back(base + key % kBlendRanks);
  }
  return keys;
}

TEST_F(GlPbsnTest, Reports) {
  EXPECT_TRUE(sorter().gl().available);
  EXPECT_EQ(sorter().name(), "gl-pbsn");
  EXPECT_GE(sorter().window_max(), std::size_t{1} << 20);
}

TEST_F(GlPbsnTest, SortsTheLadder) {
  for (const std::size_t n : LongLadder(1 << 13)) {
    ExpectSortsLikeStdSort<std::uint32_t>(sorter(), {MakeKeys<std::uint32_t>("random", n, n)}, "");
    ExpectSortsLikeStdSort<std::uint64_t>(sorter(), {NearKeys("random", n, n)}, "");
  }
}

std::uint64_t Near(std::uint64_t key) { return 0xfedcba9876543210 + key % kBlendRanks; }

TEST_F(GlPbsnTest, SortsEveryLengthUpTo4097) {
  testing::ExpectSortsLengths<std::uint32_t>(sorter(), testing::EveryLength());
  testing::ExpectSortsLengths<std::uint64_t>(sorter(), testing::EveryLength(), Near);
}

TEST_F(GlPbsnTest, SortsAroundPowersOfTwo) {
  testing::ExpectSortsLengths<std::uint32_t>(sorter(), testing::AroundPowers(13, 16));
  testing::ExpectSortsLengths<std::uint64_t>(sorter(), testing::AroundPowers(13, 16), Near);
}

TEST_F(GlPbsnTest, SortsEveryDistribution) {
  for (const std::string& distribution : Distributions()) {
    for (const std::size_t n : {15, 64, 1000, 1024}) {
      ExpectSortsLikeStdSort<std::uint32_t>(sorter(), {MakeKeys<std::uint32_t>(distribution, n, 5)},
                                            distribution);
      for (std::uint64_t seed = 5; seed < 8; ++seed) {
        ExpectSortsLikeStdSort<std::uint64_t>(sorter(), {NearKeys(distribution, n, seed)},
                                              distribution);
      }
    }
  }
}

TEST_F(GlPbsnTest, SortsOneToFourChannelsOfDifferentLengthsAndKinds) {
  std::vector<std::vector<std::uint32_t>> narrow;
  const std::vector<std::size_t> lengths = {700, 0, 1, 2048};
  const std::vector<std::string> kinds = {"all max", "random", "random", "reversed"};
  for (std::size_t c = 0; c < kChannels; ++c) {
    narrow.push_back(MakeKeys<std::uint32_t>(kinds[c], lengths[c], c));
    ExpectSortsLikeStdSort(sorter(), narrow, "channels of different lengths");
  }
  ExpectSortsLikeStdSort<std::uint32_t>(sorter(), {}, "no channel");
  ExpectSortsLikeStdSort<std::uint32_t>(sorter(), {{}, {7}, {}, {}}, "nothing to sort");
}

// Four windows, each of which is cut in two: eight parts in two requests.
TEST_F(GlPbsnTest, CutsWindowsThatAreTooWide) {
  std::vector<std::vector<std::uint32_t>> windows;
  for (std::size_t c = 0; c < kChannels; ++c) {
    windows.push_back(MakeKeys<std::uint32_t>("random", 500 + c, c));
    windows[c][3] = 0;
    windows[c][7] = 0xffffffff;
    windows[c][8] = 0x7fffffff;
    windows[c][9] = 0x80000000;
  }
  const SortCounts before = sorter().counts();
  ExpectSortsLikeStdSort(sorter(), windows, "cut");
  SortCounts expected = before;
  for (int request = 0; request < 2; ++request) expected += PbsnCounts(9);
  EXPECT_EQ(sorter().counts(), expected);
  // One key alone on one side.
  ExpectSortsLikeStdSort<std::uint32_t>(sorter(), {{0, 0xffffffff}, {5, 0xffffffff, 0}}, "cut");
}

TEST_F(GlPbsnTest, DrawsWhatItsPlanSays) {
  for (const std::size_t n : {2, 3, 100, 1024, 4000}) {
    SortCounts expected = sorter().counts();
    ExpectSortsLikeStdSort<std::uint32_t>(
        sorter(), {MakeKeys<std::uint32_t>("low bits only", n, n)}, "counted");
    expected += PbsnCounts(static_cast<std::uint32_t>(std::bit_width(n - 1)));
    EXPECT_EQ(sorter().counts(), expected) << n;
  }
}

TEST_F(GlPbsnTest, SortsTheLargestDistanceThatItTakesAndRefusesTheNext) {
  const std::uint64_t base = 1000;
  std::vector<std::uint64_t> keys = {base + kBlendRanks - 1, base, base + kBlendHalf,
                                     base + kBlendHalf - 1};
  ExpectSortsLikeStdSort<std::uint64_t>(sorter(), {keys}, "the largest distance");
  keys.push_back(base + kBlendRanks);
  const std::vector<std::uint64_t> before = keys;
  std::vector<std::span<std::uint64_t>> channels = {keys};
  try {
    sorter().Sort(Channels<std::uint64_t>(channels));
    FAIL() << "no exception";
  } catch (const SorterRefusal& refusal) {
    EXPECT_STREQ(refusal.what(),
                 "gl-pbsn: keys of one window are 4261412864 apart; blending carries those that "
                 "are less than 4261412864 apart");
  }
  EXPECT_TRUE(keys == before);
  ExpectSortsLikeStdSort<std::uint32_t>(sorter(), {MakeKeys<std::uint32_t>("random", 100, 1)},
                                        "after a refusal");
}

TEST_F(GlPbsnTest, SortsSmallWindowsAfterLargeOnes) {
  for (const std::size_t n : {1 << 13, 5, 300, 1 << 12, 2}) {
    ExpectSortsLikeStdSort<std::uint32_t>(sorter(), {MakeKeys<std::uint32_t>("random", n, 1)}, "");
  }
}

TEST_F(GlPbsnTest, SortsFourLargeWindows) {
  std::vector<std::vector<std::uint32_t>> windows;
  for (std::size_t c = 0; c < kChannels; ++c) {
    windows.push_back(MakeKeys<std::uint32_t>(c == 0 ? "few distinct" : "low bits only",
                                              (std::size_t{1} << 14) - c, c));
  }
  ExpectSortsLikeStdSort(sorter(), windows, "2^14");
}

TEST_F(GlPbsnTest, SortsRandomRequests) { ExpectSortsRandomRequests(200, Near); }

TEST_F(GlPbsnTest, IsMadeByName) { ExpectMadeByName("gl-pbsn"); }

TEST_F(GlPbsnTest, SortsForManyThreadsAtOnce) { ExpectSortsForManyThreadsAtOnce(); }

TEST_F(GlPbsnTest, RefusesAWindowBeyondTheDevicesLimitAndGoesOn) {
  ExpectRefusesAWindowBeyondTheDevicesLimitAndGoesOn();
}

TEST_F(GlPbsnTest, KeepsTheKeysWhateverFails) {
  ExpectKeepsTheKeysWhateverFails("drawing the steps of the network");
}

TEST_F(GlPbsnTest, RefusesWhatThereIsNoMemoryFor) {
  ExpectRefusesWhatThereIsNoMemoryFor("gl-pbsn");
}

TEST_F(GlPbsnTest, KeepsTheKeysWhenTheDriverHangs) {
  ExpectKeepsTheKeysWhenTheDriverHangs("gl-pbsn");
}

}  // namespace
}  // namespace tidemark::sort
