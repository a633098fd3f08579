// The arithmetic of sliding windows without keys: covers of every kind of stream, to lengths that
// no test with keys reaches, stay within the budget.
#include "summaries/sliding_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

#include "summaries/fraction.h"
#include "summaries/sliding_blocks.h"
#include "tests/summaries/cases.h"

namespace tidemark {
namespace {

SlidingOptions Options(double epsilon, std::uint64_t values, std::int64_t age = 0,
                       std::size_t block = 0) {
  SlidingOptions options;
  options.epsilon = epsilon;
  options.max_values = values;
  options.max_age_us = age;
  options.block_size = block;
  return options;
}

enum class Of { kQuantiles, kFrequencies, kTrees };

/// Blocks that hold nothing: how they are made and grow coarse is checked, and that is all.
struct NothingKind {
  struct Data {};
  using Chunk = SlidingChunk<Data>;
  std::shared_ptr<const SlidingRule> rule;
  Of of = Of::kQuantiles;

  std::vector<Data> Merge(int level, std::span<const Chunk> children) const {
    EXPECT_EQ(children.size() % 2, 0u);
    for (std::size_t i = 0; i < children.size(); ++i) {
      EXPECT_EQ(children[i].blocks, 1u);
      EXPECT_EQ(children[i].step, YoungStep(level));
      EXPECT_EQ(children[i].first, children[0].first + i);
    }
    EXPECT_EQ(children[0].first % 2, 0u);
    return std::vector<Data>(children.size() / 2);
  }
  std::uint64_t YoungStep(int level) const {
    return of == Of::kQuantiles ? rule->YoungShape(level).weight : rule->YoungDropped(level);
  }
  bool MayStep(int level, std::uint64_t step, std::uint64_t age) const {
    if (step > rule->BlockValues(level)) return false;
    return of == Of::kQuantiles     ? rule->MayWeigh(level, step, age)
           : of == Of::kFrequencies ? rule->MayDrop(level, step, age)
                                    : rule->MayDropFromTree(level, step, age);
  }
  Data Coarsen(int, const Chunk&, std::uint64_t) const { return {}; }
  Data Join(const Chunk&, const Chunk&) const { return {}; }
  std::size_t Size(const Data&) const { return 1; }
};

/// A cover of the values from `begin` on: every one once, and within the budget.
void CheckCover(const SlidingBlocks<NothingKind>& blocks, std::uint64_t begin) {
  const SlidingRule& rule = blocks.rule();
  const bool quantiles = blocks.kind().of == Of::kQuantiles;
  const std::uint64_t values = blocks.end() - begin;
  const SlidingCover cover = blocks.Cover(begin);
  std::uint64_t at = begin, width = 0;
  if (cover.cut_values > 0) {
    const std::uint64_t size = rule.BlockValues(cover.cut.level);
    ASSERT_EQ(cover.cut.number, begin / size);
    ASSERT_EQ(cover.cut_values, size - begin % size);
    ASSERT_EQ(cover.cut_as_came, values < rule.recent_values());
    at += cover.cut_values;
    if (!cover.cut_as_came) {
      const auto [chunk, place] = blocks.Find(cover.cut);
      ASSERT_EQ(chunk->first + place, cover.cut.number);
      width = quantiles ? cover.cut_values
                        : std::min(cover.cut_values, size - cover.cut_values) +
                              std::max(chunk->step, rule.YoungDropped(cover.cut.level));
    }
  }
  for (const BlockName& name : cover.whole) {
    const std::uint64_t size = rule.BlockValues(name.level);
    ASSERT_EQ(name.number * size, at);
    at += size;
    const auto [chunk, place] = blocks.Find(name);
    ASSERT_EQ(chunk->first + place, name.number);
    width += quantiles ? chunk->step - 1 + rule.YoungShape(name.level).slack : chunk->step;
  }
  ASSERT_EQ(at, blocks.end());
  if (static_cast<double>(values) < 32 / rule.epsilon())
    return;  // falls back to values as they came
  const std::uint64_t within = FloorFraction(rule.epsilon(), values);
  const std::uint64_t slack = rule.TimeSlack(values);
  if (quantiles) {
    const std::uint64_t all = width + slack;
    ASSERT_LE(all / 2 + all % 2, within);
    if (!cover.cut_as_came) {
      ASSERT_LE(cover.cut_values + slack, within);
    }
  } else {
    ASSERT_LE(width + slack, within);
  }
}

TEST(SlidingRule, CoversStayWithinTheBudget) {
  struct Plan {
    SlidingOptions options;
    std::uint64_t blocks;
  };
  const Plan plans[] = {
      {Options(0.2, 1'000'000, 0, 64), 60'000},    {Options(0.13, 300'000, 0, 64), 30'000},
      {Options(0.05, 10'000'000, 0, 64), 400'000}, {Options(0.01, 5'000'000, 0, 64), 150'000},
      {Options(0.01, 100'000'000), 100'000},       {Options(0.001, 3'000'000'000, 0, 512), 100'000},
      {Options(0.001, 50'000'000'000), 60'000},    {Options(0.01, 1000), 3000},
      {Options(0.05, 0, 1, 64), 300'000},          {Options(0.2, 0, 1, 64), 60'000},
      {Options(0.01, 2'000'000, 1, 256), 30'000},  {Options(0.003, 77'777'777, 0, 1024), 200'000},
  };
  for (const Plan& plan : plans) {
    for (const Of of : {Of::kQuantiles, Of::kFrequencies, Of::kTrees}) {
      const auto rule = std::make_shared<const SlidingRule>(plan.options);
      SCOPED_TRACE(::testing::Message()
                   << "epsilon " << rule->epsilon() << ", " << plan.options.max_values
                   << " values, kind " << static_cast<int>(of));
      SlidingBlocks<NothingKind> blocks(rule, {rule, of});
      std::mt19937_64 random(1);
      const std::uint64_t size = rule->block_size();
      const std::uint64_t most = rule->by_time() ? plan.blocks * size / 4 : plan.options.max_values;
      std::uint64_t expired = 0;
      const std::uint64_t every = plan.blocks / static_cast<std::uint64_t>(Cases(300, 30'000)) + 1;
      for (std::uint64_t i = 0; i < plan.blocks; ++i) {
        const std::uint64_t end = (i + 1) * size;
        // By time, the start of the widest window stands still or jumps.
        if (!rule->by_time()) {
          expired = end - std::min(end, most);
        } else if (random() % 5000 == 0) {
          expired = std::max(expired, end - std::min(end, random() % most));
        }
        blocks.Add({}, expired);
        if (random() % every != 0 && i + 1 < plan.blocks) continue;
        for (int j = 0; j < 30; ++j) {
          const std::uint64_t longest = end - expired;
          if (longest == 0) break;
          const std::uint64_t below = std::uint64_t{2} << (random() % 40);
          const std::uint64_t width = 1 + random() % std::min(longest, below);
          ASSERT_NO_FATAL_FAILURE(CheckCover(blocks, end - width))
              << "last " << width << " of " << end;
        }
        ASSERT_NO_FATAL_FAILURE(CheckCover(blocks, expired))
            << "all from " << expired << " of " << end;
      }
    }
  }
}

TEST(SlidingRule, ShapesHoldTheirShare) {
  for (const double epsilon : {0.2, 0.05, 0.01, 0.001, 1e-4}) {
    for (const std::int64_t age : {0, 1}) {
      const SlidingRule rule(Options(epsilon, 100'000'000, age));
      for (int level = 0; level < rule.levels(); ++level) {
        const BucketShape& shape = rule.YoungShape(level);
        ASSERT_EQ(shape.count(), rule.BlockValues(level));
        const auto gap = static_cast<double>(shape.weight - 1 + shape.slack);
        ASSERT_LE(gap, 0.32 * 2 * epsilon * static_cast<double>(shape.count()));
        ASSERT_LE(2 * rule.YoungDropped(level), rule.YoungDropped(level + 1));
      }
    }
  }
}

TEST(SlidingRule, CutsTheLargestBlockThatIsSmallEnough) {
  const SlidingRule rule(Options(0.01, 10'000'000, 0, 1024));
  EXPECT_EQ(rule.kappa(), 100u);
  EXPECT_EQ(rule.recent_values(), 102'400u);
  EXPECT_EQ(rule.CutLevel(0), -1);
  EXPECT_EQ(rule.CutLevel(102'399), -1);
  EXPECT_EQ(rule.CutLevel(102'400), 0);
  EXPECT_EQ(rule.CutLevel(204'799), 0);
  EXPECT_EQ(rule.CutLevel(204'800), 1);
  EXPECT_TRUE(rule.NeverCut(7));
  EXPECT_FALSE(rule.NeverCut(6));
  EXPECT_FALSE(SlidingRule(Options(0.01, 10'000'000, 5, 1024)).NeverCut(30));
}

TEST(SlidingRule, BlocksFollowFromEpsilonAndWidth) {
  EXPECT_EQ(DefaultBlockSize(0.01, 1'000'000), 2048u);
  EXPECT_EQ(DefaultBlockSize(0.01, 0), 2048u);
  EXPECT_EQ(DefaultBlockSize(0.01, 1000), 256u);
  EXPECT_EQ(DefaultBlockSize(0.001, 1'000'000), 16'384u);
  EXPECT_EQ(DefaultBlockSize(0.001, 1'000'000'000), 2048u);  // so that 2^22 values as they came do
  EXPECT_EQ(SlidingRule(Options(0.01, 1'000'000)).block_size(), 2048u);
}

TEST(SlidingRule, RefusesWhatCannotBe) {
  EXPECT_THROW(SlidingRule(Options(0, 1000)), std::invalid_argument);
  EXPECT_THROW(SlidingRule(Options(0.3, 1000)), std::invalid_argument);
  EXPECT_THROW(SlidingRule(Options(1e-7, 1000)), std::invalid_argument);
  EXPECT_THROW(SlidingRule(Options(0.01, 0)), std::invalid_argument);
  EXPECT_THROW(SlidingRule(Options(0.01, (std::uint64_t{1} << 48) + 1)), std::invalid_argument);
  EXPECT_THROW(SlidingRule(Options(0.01, 0, -1)), std::invalid_argument);
  EXPECT_THROW(SlidingRule(Options(0.01, 1000, 0, 100)), std::invalid_argument);
  EXPECT_THROW(SlidingRule(Options(0.01, 1000, 0, 32)), std::invalid_argument);
}

TEST(SlidingRule, RulesCanBeMadeForEverything) {
  for (double epsilon = 0.2; epsilon >= 1e-6; epsilon /= 1.7) {
    for (const std::uint64_t values :
         {std::uint64_t{1}, std::uint64_t{100'000}, std::uint64_t{1} << 48}) {
      for (const std::size_t block : {0, 64, 4096, 1 << 20}) {
        for (const std::int64_t age : {0, 1}) {
          const SlidingRule rule(Options(epsilon, values, age, block));
          EXPECT_GT(rule.KeysKept(values), 0u);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tidemark
