// gl-abisort against std::sort, to the bit, on whatever GL there is (Mesa's llvmpipe will do), and
// what it does when GL fails. abisort_plan_test.cc tests the plan that it runs. Fails, rather than
// skips, where no GL context can be opened.
#include "gpu/sort/abisort_plan.h"
#include "gpu/sort/gl_abisort_sorter.h"
#include "tests/gpu/gl_sorter_cases.h"

namespace tidemark::sort {
namespace {

using testing::ExpectMadeByName;
using testing::ExpectSortsLikeStdSort;
using testing::MakeKeys;

class GlABiSortTest : public testing::GlSorterTest<GlABiSortSorter, GlABiSortOptions> {};

TEST_F(GlABiSortTest, Reports) {
  EXPECT_TRUE(sorter().gl().available);
  EXPECT_EQ(sorter().name(), "gl-abisort");
  EXPECT_GE(sorter().window_max(), std::size_t{1} << 20);
}

TEST_F(GlABiSortTest, SortsTheLadder) { ExpectSortsTheLadder(); }

TEST_F(GlABiSortTest, SortsEveryLengthUpTo4097) { ExpectSortsEveryLength(); }

TEST_F(GlABiSortTest, SortsAroundPowersOfTwo) { ExpectSortsAroundPowersOfTwo(); }

TEST_F(GlABiSortTest, SortsEveryDistribution) { ExpectSortsEveryDistribution(); }

TEST_F(GlABiSortTest, SortsOneToFourChannelsOfDifferentLengthsAndKinds) {
  ExpectSortsOneToFourChannelsOfDifferentLengthsAndKinds();
}

TEST_F(GlABiSortTest, SortsSmallWindowsAfterLargeOnesAndWideAfterNarrow) {
  auto fresh = std::make_unique<GlABiSortSorter>(Software());
  for (const std::size_t n : {1 << 12, 5, 300, 1 << 13, 2}) {
    ExpectSortsLikeStdSort<std::uint32_t>(*fresh, {MakeKeys<std::uint32_t>("random", n, 1)}, "");
    ExpectSortsLikeStdSort<std::uint64_t>(*fresh, {MakeKeys<std::uint64_t>("random", n / 2, 1)},
                                          "");
  }
}

TEST_F(GlABiSortTest, SortsFourLargeWindows) {
  std::vector<std::vector<std::uint32_t>> narrow;
  std::vector<std::vector<std::uint64_t>> wide;
  for (std::size_t c = 0; c < kChannels; ++c) {
    narrow.push_back(MakeKeys<std::uint32_t>("random", std::size_t{1} << 15, c));
    wide.push_back(MakeKeys<std::uint64_t>("few distinct", (std::size_t{1} << 13) + 1 + c, c));
  }
  ExpectSortsLikeStdSort(sorter(), narrow, "2^15");
  ExpectSortsLikeStdSort(sorter(), wide, "2^13 and a little");
}

// Row by row or in Z-order, stages one by one or overlapped, with and without the small kernels.
TEST_F(GlABiSortTest, EveryFormSortsAndDrawsWhatItsPlanSays) {
  for (const StreamLayout layout : {StreamLayout::kRowWise, StreamLayout::kZOrder}) {
    for (const bool overlapped : {false, true}) {
      for (const bool small_kernels : {false, true}) {
        GlABiSortOptions options = Software();
        options.form = {layout, overlapped, small_kernels};
        GlABiSortSorter form(options);
        const std::string what = std::string(layout == StreamLayout::kZOrder ? "Z" : "rows") +
                                 (overlapped ? " overlapped" : "") +
                                 (small_kernels ? " small" : "");
        for (const std::size_t n : {2, 16, 17, 33, 200, 1000, 2048}) {
          const std::uint32_t log2 = std::max(4U, static_cast<unsigned>(std::bit_width(n - 1)));
          for (std::uint32_t log2_windows = 0; log2_windows <= 2; ++log2_windows) {
            std::vector<std::vector<std::uint32_t>> narrow;
            std::vector<std::vector<std::uint64_t>> wide;
            for (std::size_t c = 0; c < std::size_t{1} << log2_windows; ++c) {
              narrow.push_back(MakeKeys<std::uint32_t>("sawtooth", n - c % 2, c));
              wide.push_back(MakeKeys<std::uint64_t>(c == 0 ? "low bits only" : "random", n, c));
            }
            SortCounts expected = form.counts();
            const SortCounts plan =
                CountsOf(ABiSortPlan({log2, log2_windows, overlapped, small_kernels}));
            ExpectSortsLikeStdSort(form, narrow, what);
            ExpectSortsLikeStdSort(form, wide, what);
            expected += plan;
            expected += plan;
            EXPECT_EQ(form.counts(), expected) << what << ' ' << n;
          }
        }
      }
    }
  }
}

TEST_F(GlABiSortTest, ComparesFewerThanTwoNLogNTimesWhereAllIsAdaptive) {
  GlABiSortOptions options = Software();
  options.form.small_kernels = false;
  GlABiSortSorter adaptive(options);
  ExpectSortsLikeStdSort<std::uint32_t>(adaptive, {MakeKeys<std::uint32_t>("random", 4096, 1)}, "");
  EXPECT_EQ(adaptive.counts().comparisons, 2 * 4096 * 12 - 4 * 4096 + 12 + 4);
  EXPECT_EQ(adaptive.counts().passes, 12 * 12 + 12);
}

TEST_F(GlABiSortTest, SortsRandomRequests) {
  ExpectSortsRandomRequests(200, [](std::uint64_t key) { return key; });
}

TEST_F(GlABiSortTest, IsMadeByName) { ExpectMadeByName("gl-abisort"); }

TEST_F(GlABiSortTest, SortsForManyThreadsAtOnce) { ExpectSortsForManyThreadsAtOnce(); }

TEST_F(GlABiSortTest, RefusesAWindowBeyondTheDevicesLimitAndGoesOn) {
  ExpectRefusesAWindowBeyondTheDevicesLimitAndGoesOn();
}

TEST_F(GlABiSortTest, KeepsTheKeysWhateverFails) {
  ExpectKeepsTheKeysWhateverFails("drawing the stream operations");
}

TEST_F(GlABiSortTest, RefusesWhatThereIsNoMemoryFor) {
  ExpectRefusesWhatThereIsNoMemoryFor("gl-abisort");
}

TEST_F(GlABiSortTest, KeepsTheKeysWhenTheDriverHangs) {
  ExpectKeepsTheKeysWhenTheDriverHangs("gl-abisort");
}

}  // namespace
}  // namespace tidemark::sort
