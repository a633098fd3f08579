// Views of several kinds of parts at once against an exact oracle. Those of buckets alone:
// quantile_summary_test.cc.
#include "summaries/quantile_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "summaries/ranked_samples.h"
#include "tests/summaries/cases.h"
#include "tests/summaries/distributions.h"
#include "tests/summaries/reference.h"
#include "tests/summaries/view_checks.h"

namespace tidemark {
namespace {

using testing::CheckView;
using testing::Epsilon;
using testing::Oracle;

/// Some of `keys`, with bounds around their ranks of Width() `width` at most.
template <class Key>
RankedSamples<Key> Loosened(std::vector<Key> keys, std::uint64_t width, std::mt19937_64& random) {
  std::sort(keys.begin(), keys.end());
  const std::uint64_t n = keys.size();
  RankedSamples<Key> ranked{.count = n};
  std::uint64_t rank = 1, low = 1, high = 1;
  while (true) {
    ranked.keys.push_back(keys[rank - 1]);
    ranked.low.push_back(low);
    ranked.high.push_back(high);
    if (rank == n) return ranked;
    // Behind `low`, the next upper bound is at most width + 1 further, the next lower one past low.
    const std::uint64_t reach = std::min(n, low + width + 1);
    rank += 1 + random() % (reach - rank);
    const std::uint64_t least = std::max(low, high) + 1;
    // The upper bound of the maximum is n, and so n - 1 is the most that is left for the others.
    const std::uint64_t most = rank == n ? n : std::min(reach, n - 1);
    if (least > most) rank = n;
    high = rank == n ? n : std::max(rank, least) + random() % (most - std::max(rank, least) + 1);
    low = rank == n ? n : rank - random() % std::min(rank - low, width / 4 + 1);
  }
}

template <class Key>
class Views : public ::testing::Test {};
using Keys = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Views, Keys);

TYPED_TEST(Views, BucketsRankedSamplesAndTheOpenWindowTogether) {
  using Key = TypeParam;
  const Epsilon epsilon{20};
  for (int seed = 0; seed < Cases(300, 20'000); ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const auto distribution =
        testing::kDistributions[random() % std::size(testing::kDistributions)];
    SCOPED_TRACE(::testing::Message() << "seed " << seed << ' ' << Name(distribution));
    const auto keys = testing::Generate<Key>(distribution, 200 + random() % 2000, random());
    QuantileSummary<Key> summary(epsilon.value());
    QuantileSnapshot<Key> snapshot;
    std::vector<Key> open;
    std::vector<std::shared_ptr<const RankedSamples<Key>>> ranked;
    std::uint64_t ranked_count = 0;
    testing::ForEachWindow(
        std::span<const Key>(keys), [&] { return std::size_t{1} << (random() % 9); },
        [&](std::span<const Key> window) {
          if (open.empty() && random() % 8 == 0) {
            open.assign(window.begin(), window.end());
          } else if (random() % 3 == 0 || !std::has_single_bit(window.size())) {
            ranked.push_back(std::make_shared<const RankedSamples<Key>>(
                Loosened<Key>({window.begin(), window.end()},
                              std::max<std::size_t>(window.size() / 10, 1) - 1, random)));
            ranked_count += window.size();
          } else {
            summary.AddWindow(window);
          }
        });
    snapshot = summary.Snapshot();
    snapshot.ranked = ranked;
    snapshot.count += ranked_count;
    const QuantileView<Key> view(snapshot, open);
    ASSERT_NO_FATAL_FAILURE(
        CheckView(view, Oracle<Key>(keys), epsilon, static_cast<std::uint64_t>(seed)));
  }
}

TYPED_TEST(Views, EqualSamplesLeaveNoDoubt) {
  using Key = TypeParam;
  // 1 5 5 5 5 9: the inner fives are known without being kept.
  const auto ranked = std::make_shared<const RankedSamples<Key>>(
      RankedSamples<Key>{6, {1, 5, 5, 9}, {1, 2, 5, 6}, {1, 2, 5, 6}});
  const QuantileView<Key> view(
      QuantileSnapshot<Key>{.epsilon = 0.1, .count = 6, .ranked = {ranked}});
  EXPECT_TRUE(view.exact());
  EXPECT_EQ(view.worst_gap(), 0u);
  EXPECT_EQ(view.Quantile(0.5).value, Key{5});
  EXPECT_EQ(view.Quantile(0.5).rank_low, 3u);
  EXPECT_EQ(view.Quantile(0.5).rank_high, 3u);
  const QuantileView<Key> unseen(
      QuantileSnapshot<Key>{.epsilon = 0.1, .count = 6, .ranked = {ranked}}, {}, 4);
  EXPECT_EQ(unseen.worst_gap(), 4u);
}

}  // namespace
}  // namespace tidemark
