// Adaptive bitonic sorting as data and on the CPU: the paper's table and figures, its formulas, and
// that every form sorts. No GL; gl_abisort_gl_test.cc runs the same plans there.
#include "gpu/sort/abisort_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>
#include <random>
#include <set>
#include <sstream>
#include <string>

#include "gpu/sort/abisort_streams.h"
#include "gpu/sort/stream_layout.h"
#include "tests/gpu/sort_cases.h"

namespace tidemark::sort {
namespace {

using testing::Distributions;
using testing::MakeKeys;

ABiSortShape Shape(std::uint32_t log2_keys, std::uint32_t log2_windows, bool overlapped,
                   bool small_kernels) {
  return {log2_keys, log2_windows, overlapped, small_kernels};
}

std::vector<ABiSortShape> Forms(std::uint32_t log2_keys, std::uint32_t log2_windows) {
  std::vector<ABiSortShape> forms = {Shape(log2_keys, log2_windows, false, false),
                                     Shape(log2_keys, log2_windows, true, false)};
  if (log2_keys >= kABiSortMergeLog2) {
    forms.push_back(Shape(log2_keys, log2_windows, false, true));
    forms.push_back(Shape(log2_keys, log2_windows, true, true));
  }
  return forms;
}

std::string Name(const ABiSortShape& shape) {
  std::ostringstream out;
  out << "2^" << shape.log2_windows << " windows of 2^" << shape.log2_keys
      << (shape.overlapped ? ", overlapped" : ", one by one")
      << (shape.small_kernels ? ", small kernels" : ", all adaptive");
  return out.str();
}

struct Outcome {
  std::vector<ABiSortStreams::Value> values;
  std::uint64_t comparisons = 0;
  std::uint64_t pairs_written = 0;
};

Outcome RunPlan(const std::vector<ABiSortOperation>& plan, const std::vector<std::uint64_t>& keys) {
  ABiSortStreams streams(keys);
  for (const ABiSortOperation& operation : plan) streams.Run(operation);
  return {streams.Values(), streams.comparisons(), streams.pairs_written()};
}

// Whether every window is ascending by key and id, and all ids are there.
::testing::AssertionResult Sorted(const ABiSortShape& shape, const Outcome& outcome,
                                  const std::vector<std::uint64_t>& keys) {
  const std::size_t n = std::size_t{1} << shape.log2_keys;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const ABiSortStreams::Value& value = outcome.values[i];
    if (value.id >= keys.size() || keys[value.id] != value.key || value.id / n != i / n) {
      return ::testing::AssertionFailure() << Name(shape) << ": place " << i << " holds id "
                                           << value.id << " which is not of this window";
    }
    if (i % n == 0) continue;
    const ABiSortStreams::Value& before = outcome.values[i - 1];
    if (before.key > value.key || (before.key == value.key && before.id >= value.id)) {
      return ::testing::AssertionFailure() << Name(shape) << ": not ascending at " << i;
    }
  }
  return ::testing::AssertionSuccess();
}

std::vector<ABiSortOperation> StepsOf(const std::vector<ABiSortOperation>& plan,
                                      std::uint32_t level) {
  std::vector<ABiSortOperation> steps;
  for (const ABiSortOperation& operation : plan) {
    if (operation.kernel == ABiSortKernel::kStep && operation.level == level) {
      steps.push_back(operation);
    }
  }
  return steps;
}

// The stream after an operation, as the paper's figures show it: the tree levels of the two nodes
// of every pair, 0 the root, s a spare.
void Draw(const ABiSortOperation& operation, std::vector<std::string>& stream) {
  for (const ABiSortBlock& block : operation.blocks) {
    for (std::uint32_t i = 0; i < block.pairs; ++i) {
      std::string& pair = stream[block.first + i];
      pair.clear();
      for (std::uint32_t node = 2 * i; node < 2 * i + 2; ++node) {
        // Phase 0 of stage k leaves the k upper levels in order, and the spare behind them.
        const std::uint32_t in_tree = node & ((2U << block.stage) - 1);
        const auto height = static_cast<std::uint32_t>(std::countr_one(in_tree));
        if (block.phase > 0) {
          pair += static_cast<char>('0' + block.stage + block.phase);
        } else if (height > block.stage) {
          pair += 's';
        } else {
          pair += static_cast<char>('0' + block.stage - height);
        }
      }
    }
  }
}

std::vector<std::string> Figure(const ABiSortShape& shape, std::uint32_t level,
                                std::size_t columns) {
  std::vector<std::string> stream(std::size_t{1} << (shape.log2_all() - 1), "..");
  std::vector<std::string> rows;
  for (const ABiSortOperation& step : StepsOf(ABiSortPlan(shape), level)) {
    Draw(step, stream);
    std::string row;
    for (std::size_t i = 0; i < columns; ++i) row += stream[i] + (i + 1 < columns ? " " : "");
    rows.push_back(row);
  }
  return rows;
}

TEST(ABiSortPlan, LaysOutTheStreamAsFigure4) {
  EXPECT_EQ(Figure(Shape(4, 0, false, false), 4, 8),
            (std::vector<std::string>{"0s .. .. .. .. .. .. ..", "0s 11 .. .. .. .. .. ..",
                                      "0s 11 .. 22 .. .. .. ..", "0s 11 .. 22 .. 33 .. ..",
                                      "10 1s .. 22 .. 33 .. ..", "10 1s 22 22 .. 33 .. ..",
                                      "10 1s 22 22 .. 33 33 33", "21 20 21 2s .. 33 33 33",
                                      "21 20 21 2s 33 33 33 33", "32 31 32 30 32 31 32 3s"}));
}

TEST(ABiSortPlan, LaysOutTwoTreesAsFigure5) {
  const std::vector<std::string> rows = Figure(Shape(5, 0, false, false), 4, 16);
  ASSERT_EQ(rows.size(), 10);
  EXPECT_EQ(rows[3], "0s 0s 11 11 .. .. 22 22 .. .. 33 33 .. .. .. ..");
  EXPECT_EQ(rows[6], "10 1s 10 1s 22 22 22 22 .. .. 33 33 33 33 33 33");
  EXPECT_EQ(rows[9], "32 31 32 30 32 31 32 3s 32 31 32 30 32 31 32 3s");
}

TEST(ABiSortPlan, OverlapsTheStagesAsFigure6) {
  EXPECT_EQ(Figure(Shape(5, 0, true, false), 4, 16),
            (std::vector<std::string>{"0s 0s .. .. .. .. .. .. .. .. .. .. .. .. .. ..",
                                      "0s 0s 11 11 .. .. .. .. .. .. .. .. .. .. .. ..",
                                      "10 1s 10 1s .. .. 22 22 .. .. .. .. .. .. .. ..",
                                      "10 1s 10 1s 22 22 22 22 .. .. 33 33 .. .. .. ..",
                                      "21 20 21 2s 21 20 21 2s .. .. 33 33 33 33 33 33",
                                      "21 20 21 2s 21 20 21 2s 33 33 33 33 33 33 33 33",
                                      "32 31 32 30 32 31 32 3s 32 31 32 30 32 31 32 3s"}));
}

TEST(ABiSortPlan, LeavesOutTheLastFourStagesAsFigure7) {
  const std::vector<std::string> rows = Figure(Shape(6, 0, true, true), 6, 20);
  ASSERT_EQ(rows.size(), 7);
  EXPECT_EQ(rows[0].substr(0, 11), "0s .. .. ..");
  EXPECT_EQ(rows[2].substr(0, 14), "10 1s .. 22 ..");
  EXPECT_EQ(rows[3].substr(0, 17), "10 1s 22 22 .. 33");
  EXPECT_EQ(rows[4].substr(0, 32), "10 1s 22 22 .. 33 33 33 .. 44 ..");
  EXPECT_EQ(rows[5].substr(0, 59), "10 1s 22 22 .. 33 33 33 .. 44 44 44 .. .. .. .. .. 55 .. ..");
  EXPECT_EQ(rows[6].substr(0, 59), "10 1s 22 22 .. 33 33 33 .. 44 44 44 .. .. .. .. .. 55 55 55");
}

TEST(ABiSortPlan, TakesTheStepsThatThePaperCounts) {
  for (std::uint32_t log2 = 1; log2 <= 20; ++log2) {
    const auto overlapped = ABiSortPlan(Shape(log2, 2, true, false));
    const auto one_by_one = ABiSortPlan(Shape(log2, 2, false, false));
    std::size_t all = 0;
    for (std::uint32_t level = 1; level <= log2; ++level) {
      EXPECT_EQ(StepsOf(overlapped, level).size(), 2 * level - 1);
      EXPECT_EQ(StepsOf(one_by_one, level).size(), level * (level + 1) / 2);
      all += 2 * level - 1;
    }
    // One kernel links the result of each level but the last, one loads.
    EXPECT_EQ(all, log2 * log2);
    EXPECT_EQ(overlapped.size(), all + log2);
    if (log2 < kABiSortMergeLog2) continue;
    const auto small = ABiSortPlan(Shape(log2, 2, true, true));
    for (std::uint32_t level = kABiSortMergeLog2 + 1; level <= log2; ++level) {
      EXPECT_EQ(StepsOf(small, level).size(), 2 * level - 5);
    }
    // Local sort and merge of 16; then steps, link, traversal and merge of every level.
    const std::size_t levels = log2 - kABiSortMergeLog2;
    EXPECT_EQ(small.size(), 2 + levels * (log2 + 5 - 5) + 3 * levels);
  }
}

// Sum over j = 5 … L of 2 j - 5 is (L - 4) L: what the test above adds up.
static_assert((2 * 5 - 5) + (2 * 6 - 5) + (2 * 7 - 5) == (7 - 4) * 7);

TEST(ABiSortPlan, EveryBlockIsARectangleInBothLayoutsAndNoTwoOfAStepOverlap) {
  for (const std::uint32_t log2 : {5U, 8U, 11U}) {
    const std::uint32_t width_log2 = StreamWidthLog2(log2);
    for (const ABiSortShape& shape : Forms(log2 - 2, 2)) {
      for (const ABiSortOperation& operation : ABiSortPlan(shape)) {
        std::set<std::uint32_t> written;
        for (const ABiSortBlock& block : operation.blocks) {
          ASSERT_EQ(block.first % block.pairs, 0U) << operation;
          for (const StreamLayout layout : {StreamLayout::kRowWise, StreamLayout::kZOrder}) {
            const StreamRectangle rectangle =
                RectangleOf(layout, width_log2, block.first, block.pairs);
            ASSERT_EQ(rectangle.width * rectangle.height, block.pairs) << operation;
            for (std::uint32_t i = 0; i < block.pairs; ++i) {
              const StreamPoint at = PointOf(layout, width_log2, block.first + i);
              ASSERT_TRUE(at.x - rectangle.at.x < rectangle.width &&
                          at.y - rectangle.at.y < rectangle.height)
                  << operation;
            }
            if (layout == StreamLayout::kZOrder) {
              ASSERT_TRUE(rectangle.width == rectangle.height ||
                          rectangle.width == 2 * rectangle.height);
            }
          }
          for (std::uint32_t i = 0; i < block.pairs; ++i) {
            ASSERT_TRUE(written.insert(block.first + i).second) << operation;
          }
        }
        ASSERT_TRUE(written.empty() || *written.rbegin() < 1U << (log2 - 1)) << operation;
      }
    }
  }
}

TEST(ABiSortPlan, PrintsAnOperationOnALine) {
  std::ostringstream out;
  for (const ABiSortOperation& operation : ABiSortPlan(Shape(2, 0, true, false))) {
    out << operation << '\n';
  }
  EXPECT_EQ(out.str(),
            "level 1 load\n"
            "level 1 step: stage 0 phase 0 at 0+2\n"
            "level 2 relink\n"
            "level 2 step: stage 0 phase 0 at 0+1\n"
            "level 2 step: stage 0 phase 1 at 1+1\n"
            "level 2 step: stage 1 phase 0 at 0+2\n");
}

TEST(StreamLayout, ZOrderHasThePropertiesOfThePaper) {
  for (std::uint32_t a = 0; a < 1024; ++a) {
    const StreamPoint at = PointOf(StreamLayout::kZOrder, 0, a);
    EXPECT_EQ(PointOf(StreamLayout::kZOrder, 0, 2 * a), (StreamPoint{2 * at.y, at.x}));
    const StreamPoint behind = PointOf(StreamLayout::kZOrder, 0, 1024 + a);
    const StreamPoint power = PointOf(StreamLayout::kZOrder, 0, 1024);
    EXPECT_EQ(behind, (StreamPoint{power.x + at.x, power.y + at.y}));
  }
  EXPECT_EQ(PointOf(StreamLayout::kRowWise, 3, 29), (StreamPoint{5, 3}));
}

TEST(ABiSort, SortsEveryInputOfZerosAndOnes) {
  for (std::uint32_t log2 = 1; log2 <= 4; ++log2) {
    const std::uint32_t n = 1U << log2;
    for (const ABiSortShape& shape : Forms(log2, 0)) {
      const auto plan = ABiSortPlan(shape);
      std::vector<std::uint64_t> keys(n);
      // At 16 keys, and one form that reaches no further, every fifth is enough.
      for (std::uint32_t input = 0; input < (1U << n); input += log2 == 4 ? 5 : 1) {
        for (std::uint32_t i = 0; i < n; ++i) keys[i] = (input >> i) & 1;
        ASSERT_TRUE(Sorted(shape, RunPlan(plan, keys), keys)) << "input " << input;
      }
    }
  }
}

TEST(ABiSort, SortsEveryPermutationOfEight) {
  for (const ABiSortShape& shape : Forms(3, 0)) {
    const auto plan = ABiSortPlan(shape);
    std::vector<std::uint64_t> keys(8);
    std::iota(keys.begin(), keys.end(), 1);
    do {
      ASSERT_TRUE(Sorted(shape, RunPlan(plan, keys), keys));
    } while (std::next_permutation(keys.begin(), keys.end()));
  }
}

// Every bitonic sequence of 32 that rotates two slopes: what the merges of a level are given.
TEST(ABiSort, SortsEveryRotationOfEveryPairOfSlopes) {
  const std::uint32_t n = 32;
  for (const ABiSortShape& shape : Forms(5, 0)) {
    const auto plan = ABiSortPlan(shape);
    for (std::uint32_t peak = 0; peak < n; ++peak) {
      for (std::uint32_t turn = 0; turn < n; ++turn) {
        std::vector<std::uint64_t> keys(n);
        for (std::uint32_t i = 0; i < n; ++i) {
          keys[(i + turn) % n] = i <= peak ? 2 * i : 2 * (n + peak - i) + 1;
        }
        ASSERT_TRUE(Sorted(shape, RunPlan(plan, keys), keys)) << peak << " turned by " << turn;
      }
    }
  }
}

TEST(ABiSort, SortsEveryDistributionSideBySide) {
  for (std::uint32_t log2 = 1; log2 <= 10; ++log2) {
    for (std::uint32_t log2_windows = 0; log2_windows <= 2; ++log2_windows) {
      for (const ABiSortShape& shape : Forms(log2, log2_windows)) {
        const auto plan = ABiSortPlan(shape);
        for (const std::string& distribution : Distributions()) {
          const auto keys = MakeKeys<std::uint64_t>(
              distribution, std::size_t{1} << shape.log2_all(), 100 * log2 + log2_windows);
          ASSERT_TRUE(Sorted(shape, RunPlan(plan, keys), keys)) << distribution;
        }
      }
    }
  }
}

TEST(ABiSort, SortsRandomKeysOfRandomRanges) {
  const bool extended = std::getenv("TIDEMARK_EXTENDED") != nullptr;
  for (std::uint64_t seed = 1; seed <= (extended ? 100000U : 3000U); ++seed) {
    std::mt19937_64 random(seed);
    const auto log2 = static_cast<std::uint32_t>(1 + random() % 7);
    const auto forms = Forms(log2, static_cast<std::uint32_t>(random() % 3));
    const ABiSortShape& shape = forms[random() % forms.size()];
    const std::uint64_t range = std::uint64_t{1} << random() % 64;
    std::vector<std::uint64_t> keys(std::size_t{1} << shape.log2_all());
    for (std::uint64_t& key : keys) key = random() % range;
    ASSERT_TRUE(Sorted(shape, RunPlan(ABiSortPlan(shape), keys), keys)) << "seed " << seed;
  }
}

// n = 2^log2 keys of one window, all adaptive: sum over the levels j of 2^(log2 - j) merges of
// 2^(j+1) - j - 2 comparisons each.
std::uint64_t AdaptiveComparisons(std::uint64_t log2) {
  const std::uint64_t n = std::uint64_t{1} << log2;
  return 2 * n * log2 - 4 * n + log2 + 4;
}

TEST(ABiSort, ComparesAsOftenAsThePaperSaysWhateverTheKeys) {
  for (std::uint32_t log2 = 1; log2 <= 10; ++log2) {
    const std::uint64_t n = std::uint64_t{1} << log2;
    std::uint64_t of_levels = 0;
    for (std::uint32_t level = 1; level <= log2; ++level) {
      of_levels += (n >> level) * ((std::uint64_t{2} << level) - level - 2);
    }
    ASSERT_EQ(of_levels, AdaptiveComparisons(log2));
    ASSERT_LT(of_levels, 2 * n * log2) << "fewer than 2 n log n";
    for (const ABiSortShape& shape : Forms(log2, 2)) {
      const auto plan = ABiSortPlan(shape);
      const SortCounts counts = CountsOf(plan);
      EXPECT_EQ(counts.passes, plan.size());
      if (!shape.small_kernels) {
        EXPECT_EQ(counts.comparisons, 4 * AdaptiveComparisons(log2)) << Name(shape);
      } else {
        std::uint64_t expected = n / 8 * 28;
        for (std::uint32_t level = 4; level <= log2; ++level) {
          expected += (n >> level) * ((std::uint64_t{2} << level) - level - 2 -
                                      26 * (std::uint64_t{1} << (level - 4))) +
                      n / 8 * 20;
        }
        EXPECT_EQ(counts.comparisons, 4 * expected) << Name(shape);
      }
      for (const char* distribution : {"random", "sorted", "all equal"}) {
        const Outcome outcome = RunPlan(plan, MakeKeys<std::uint64_t>(distribution, 4 * n, 1));
        EXPECT_EQ(outcome.comparisons, counts.comparisons) << Name(shape) << ' ' << distribution;
        if (!shape.small_kernels) {
          EXPECT_EQ(outcome.pairs_written, counts.comparisons) << "one pair a comparison";
        }
      }
    }
  }
  for (std::uint32_t log2 = 11; log2 <= 24; ++log2) {
    const SortCounts counts = CountsOf(ABiSortPlan(Shape(log2, 2, true, false)));
    EXPECT_EQ(counts.comparisons, 4 * AdaptiveComparisons(log2));
    const SortCounts small = CountsOf(ABiSortPlan(Shape(log2, 2, true, true)));
    EXPECT_LT(small.comparisons, (std::uint64_t{23} << (log2 - 3)) * log2 * 4) << "2.875 n log n";
    EXPECT_LT(small.passes, counts.passes);
    EXPECT_LT(small.bytes_moved, counts.bytes_moved);
  }
}

TEST(ABiSort, MovesTheBytesThatItsKernelsReadAndWrite) {
  // Four keys, all adaptive. A pair is 2 nodes of 16 bytes, p and q are 8. Load: 2 instances of 8 +
  // 32 bytes. Level 1: 2 of 32 + 40, not copied back. Relink: 2 of 64. Level 2: one of 32 + 40 and
  // one of 40 + 40, both copied back (64 each), and 2 of 32 + 40.
  const SortCounts counts = CountsOf(ABiSortPlan(Shape(2, 0, true, false)));
  EXPECT_EQ(counts.bytes_moved, 2U * 40 + 2 * 72 + 2 * 64 + (72 + 64) + (80 + 64) + 2 * 72);
  EXPECT_EQ(counts.copies, 2);
  EXPECT_EQ(counts.draw_calls, 8);
  // 16 keys, small kernels. Local sort: 2 instances of 32 + 64; merge: 2 of 128 + 64.
  EXPECT_EQ(CountsOf(ABiSortPlan(Shape(4, 0, true, true))).bytes_moved, 2U * 96 + 2 * 192);
}

// The sequential algorithm with pointers, both as Bilardi and Nicolau have it (§4.1, two cases) and
// simplified (§4.2), counting.
struct TreeNode {
  std::uint64_t value = 0;
  TreeNode* left = nullptr;
  TreeNode* right = nullptr;
};

class Sequential {
 public:
  explicit Sequential(bool simplified) : simplified_(simplified) {}

  void Merge(TreeNode& root, TreeNode& spare, std::uint32_t log2) {
    Split(root, spare, log2);
    if (log2 == 1) return;
    Merge(*root.left, root, log2 - 1);
    Merge(*root.right, spare, log2 - 1);
  }

  std::uint64_t comparisons = 0;
  std::uint64_t exchanges = 0;
  std::uint64_t exchanges_of_a_split_max = 0;

 private:
  void Split(TreeNode& root, TreeNode& spare, std::uint32_t log2) {
    const std::uint64_t before = exchanges;
    ++comparisons;
    const bool second_case = root.value > spare.value;
    if (second_case) Swap(root.value, spare.value);
    if (second_case && simplified_) Swap(root.left, root.right);
    TreeNode* p = root.left;
    TreeNode* q = root.right;
    for (std::uint32_t phase = 1; phase < log2; ++phase) {
      ++comparisons;
      const bool exchange = p->value > q->value;
      const bool mirrored = second_case && !simplified_;
      if (exchange) {
        Swap(p->value, q->value);
        mirrored ? Swap(p->right, q->right) : Swap(p->left, q->left);
      }
      const bool go_left = exchange == mirrored;
      p = go_left ? p->left : p->right;
      q = go_left ? q->left : q->right;
    }
    exchanges_of_a_split_max = std::max(exchanges_of_a_split_max, exchanges - before);
  }

  template <class T>
  void Swap(T& a, T& b) {
    ++exchanges;
    std::swap(a, b);
  }

  const bool simplified_;
};

TEST(ABiSort, TheSequentialMergeOfThePaperComparesTheSameNumberOfTimes) {
  for (const bool simplified : {false, true}) {
    for (std::uint32_t log2 = 1; log2 <= 7; ++log2) {
      const std::uint32_t n = 1U << log2;
      for (std::uint32_t turn = 0; turn < n; ++turn) {
        std::vector<TreeNode> nodes(n);
        for (std::uint32_t i = 0; i < n; ++i) {
          nodes[(i + turn) % n].value = i < n / 3 ? 2 * i : 2 * (n + n / 3 - i) + 1;
          const std::uint32_t half = ((i + 1) & ~i) / 2;
          if (half == 0 || i == n - 1) continue;
          nodes[i].left = &nodes[i - half];
          nodes[i].right = &nodes[i + half];
        }
        Sequential merge(simplified);
        merge.Merge(nodes[n / 2 - 1], nodes[n - 1], log2);
        ASSERT_EQ(merge.comparisons, 2 * n - log2 - 2);
        ASSERT_LE(merge.exchanges_of_a_split_max, 2 * log2);
        std::vector<std::uint64_t> in_order;
        const auto walk = [&](const auto& self, const TreeNode* node) -> void {
          if (node == nullptr) return;
          self(self, node->left);
          in_order.push_back(node->value);
          self(self, node->right);
        };
        walk(walk, &nodes[n / 2 - 1]);
        in_order.push_back(nodes[n - 1].value);
        ASSERT_EQ(in_order.size(), n);
        ASSERT_TRUE(std::is_sorted(in_order.begin(), in_order.end()))
            << "n " << n << " turned by " << turn << " simplified " << simplified;
      }
    }
  }
}

}  // namespace
}  // namespace tidemark::sort
