// The passes of gl-compute without a GPU: their number, their steps, and, by the 0-1 principle,
// that they sort. gl_compute_gl_test.cc runs them in a shader.
#include "gpu/sort/compute_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>

namespace tidemark::sort {
namespace {

constexpr ComputeLimits kPromised = {std::size_t{32} << 10, 1024};  // by OpenGL 4.3

// Small enough that windows of 16 keys go through every kind of pass and round.
std::vector<ComputeShape> SmallShapes() {
  std::vector<ComputeShape> shapes;
  for (std::uint32_t b = 1; b <= 4; ++b) {
    for (std::uint32_t r = 1; r <= b; ++r) {
      for (std::uint32_t c = 0; c < b; ++c) shapes.push_back({1, b, r, c});
    }
  }
  return shapes;
}

std::string Name(const ComputeShape& shape) {
  std::ostringstream out;
  out << "b " << shape.block_log2 << " r " << shape.registers_log2 << " c " << shape.columns_log2;
  return out.str();
}

// 64 inputs of zeros and ones at once: bit v of word i is key i of input v.
void MinMaxBits(std::uint64_t& a, std::uint64_t& b) {
  const std::uint64_t smaller = a & b;
  b |= a;
  a = smaller;
}

void SortBits(const ComputePlan& plan, std::vector<std::uint64_t>& keys) {
  RunPlan<std::uint64_t>(plan, keys, ~std::uint64_t{0}, MinMaxBits);
}

// Sorted and with as many ones as before, in all 64 inputs.
bool SortedBits(const std::vector<std::uint64_t>& keys) {
  for (std::size_t i = 0; i + 1 < keys.size(); ++i) {
    if ((keys[i] & ~keys[i + 1]) != 0) return false;
  }
  return true;
}

std::vector<int> Ones(const std::vector<std::uint64_t>& keys) {
  std::vector<int> ones(64);
  for (std::size_t v = 0; v < 64; ++v) {
    for (const std::uint64_t key : keys) ones[v] += static_cast<int>(key >> v & 1);
  }
  return ones;
}

// Every input of zeros and ones of this length, 64 at a time; false at the first that is not
// sorted.
bool SortsAllBits(const ComputePlan& plan, std::uint32_t length) {
  for (std::uint64_t first = 0; first < (std::uint64_t{1} << length); first += 64) {
    std::vector<std::uint64_t> keys(length);
    for (std::uint64_t v = 0; v < 64; ++v) {
      for (std::uint32_t i = 0; i < length; ++i) keys[i] |= ((first + v) >> i & 1) << v;
    }
    const std::vector<int> ones = Ones(keys);
    SortBits(plan, keys);
    if (!SortedBits(keys) || Ones(keys) != ones) return false;
  }
  return true;
}

std::vector<NetworkStep> Steps(const ComputePlan& plan) {
  std::vector<NetworkStep> steps;
  for (const ComputePass& pass : plan.passes) {
    for (const ComputeRound& round : pass.rounds) {
      steps.insert(steps.end(), round.steps.begin(), round.steps.end());
    }
  }
  return steps;
}

TEST(ComputePlan, HasFewPasses) {
  const auto passes = [](ElementKind kind, std::uint32_t log2_keys) {
    return MakeComputePlan(ChooseShape(kind, kPromised), log2_keys).passes.size();
  };
  EXPECT_LE(passes({32, false}, 20), 15);
  EXPECT_LE(passes({32, false}, 24), 26);
  EXPECT_EQ(passes({32, false}, 13), 1);
  EXPECT_EQ(passes({64, false}, 20), 17);
  EXPECT_EQ(passes({32, true}, 20), 18);
  EXPECT_EQ(passes({64, true}, 20), 21);
  for (const std::uint32_t bits : {32, 64}) {
    for (const bool payload : {false, true}) {
      const ComputeShape shape = ChooseShape({bits, payload}, kPromised);
      for (std::uint32_t k = 1; k <= kMaxLog2Keys; ++k) {
        std::size_t expected = 1;
        for (std::uint32_t s = shape.block_log2 + 1; s <= k; ++s) {
          const std::uint32_t rows = shape.block_log2 - shape.columns_log2;
          expected += 1 + (s - shape.block_log2 + rows - 1) / rows;
        }
        EXPECT_EQ(MakeComputePlan(shape, k).passes.size(), expected) << Name(shape) << " k " << k;
      }
    }
  }
}

TEST(ComputePlan, ChoosesTheLargestBlockThatFits) {
  EXPECT_EQ(ChooseShape({32, false}, kPromised), (ComputeShape{1, 13, 4, 5}));
  EXPECT_EQ(ChooseShape({64, false}, kPromised), (ComputeShape{2, 12, 3, 4}));
  EXPECT_EQ(ChooseShape({32, true}, kPromised), (ComputeShape{2, 12, 3, 5}));
  EXPECT_EQ(ChooseShape({64, true}, kPromised), (ComputeShape{3, 11, 3, 4}));
  EXPECT_EQ(ChooseShape({32, false}, {std::size_t{48} << 10, 1024}).block_log2, 13);
  EXPECT_EQ(ChooseShape({64, true}, {std::size_t{48} << 10, 1024}).block_log2, 12);
  EXPECT_EQ(ChooseShape({32, false}, {std::size_t{64} << 10, 1024}).block_log2, 14);
  EXPECT_EQ(ChooseShape({32, false}, {std::size_t{1} << 30, 1U << 20}).block_log2, kBlockLog2Max);
  EXPECT_EQ(ChooseShape({32, false}, {std::size_t{32} << 10, 128}).block_log2, 11);
}

TEST(ComputePlan, StaysWithinTheLimits) {
  for (const std::uint32_t bits : {32, 64}) {
    for (const bool payload : {false, true}) {
      for (std::size_t shared = 1024; shared <= std::size_t{96} << 10; shared += 1000) {
        for (const std::uint32_t invocations : {32, 100, 1024, 1536, 2048}) {
          const ComputeShape shape = ChooseShape({bits, payload}, {shared, invocations});
          ASSERT_LE(shape.SharedBytes(), shared);
          ASSERT_LE(shape.Invocations(), invocations);
          ASSERT_LT(shape.columns_log2, shape.block_log2);
          for (const ComputePass& pass : MakeComputePlan(shape, 24).passes) {
            ASSERT_LE(pass.rounds.size(), kRoundsMax);
            ASSERT_GE(pass.column_bits, shape.columns_log2);
          }
        }
      }
    }
  }
}

TEST(ComputePlan, SaysWhatALimitThatIsTooSmallShouldBe) {
  const auto message = [](ElementKind kind, ComputeLimits limits) -> std::string {
    try {
      ChooseShape(kind, limits);
      return "no exception";
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
  };
  EXPECT_EQ(message({32, false}, {255, 1024}),
            "sorting 32-bit keys in compute shaders needs 256 bytes of shared memory and 4 "
            "invocations a workgroup; the device allows 255 and 1024");
  EXPECT_EQ(message({64, true}, {1 << 15, 0}),
            "sorting 64-bit keys with payloads in compute shaders needs 384 bytes of shared memory "
            "and 4 invocations a workgroup; the device allows 32768 and 0");
  EXPECT_EQ(message({64, false}, {0, 1024}).substr(0, 20), "sorting 64-bit keys ");
}

TEST(ComputePlan, HasEachStepOfTheScheduleOnceAndInOrder) {
  for (const ComputeShape& shape : SmallShapes()) {
    for (std::uint32_t k = shape.registers_log2; k <= 12; ++k) {
      EXPECT_EQ(Steps(MakeComputePlan(shape, k)), BitonicSchedule(k)) << Name(shape) << " k " << k;
    }
  }
  for (const std::uint32_t bits : {32, 64}) {
    for (const bool payload : {false, true}) {
      const ComputeShape shape = ChooseShape({bits, payload}, kPromised);
      for (std::uint32_t k = shape.registers_log2; k <= kMaxLog2Keys; ++k) {
        ASSERT_EQ(Steps(MakeComputePlan(shape, k)), BitonicSchedule(k)) << Name(shape);
      }
    }
  }
}

// What is said of a pass is what it does: it exchanges the pairs of its steps, each once, with the
// lower index as the smaller one.
TEST(ComputePlan, ExchangesThePairsOfItsSteps) {
  using Pairs = std::multiset<std::pair<std::uint32_t, std::uint32_t>>;
  std::vector<ComputeShape> shapes = SmallShapes();
  shapes.push_back({1, 7, 3, 2});
  for (const ComputeShape& shape : shapes) {
    const std::uint32_t k = shape.block_log2 == 7 ? 11 : 6;
    for (const ComputePass& pass : MakeComputePlan(shape, k).passes) {
      Pairs expected, seen;
      for (const ComputeRound& round : pass.rounds) {
        for (const NetworkStep& step : round.steps) {
          for (std::uint32_t i = 0; i < (1U << k); ++i) {
            if (step.KeepsSmaller(i)) expected.insert({i, step.Partner(i)});
          }
        }
      }
      std::vector<std::uint32_t> indices(1U << k);
      for (std::uint32_t i = 0; i < indices.size(); ++i) indices[i] = i;
      RunPlan<std::uint32_t>(ComputePlan{shape, k, {pass}}, indices, 0,
                             [&](const std::uint32_t& a, const std::uint32_t& b) {
                               seen.insert({a, b});
                             });
      ASSERT_TRUE(seen == expected) << Name(shape);
    }
  }
}

TEST(ComputePlan, SortsEveryInputOfZerosAndOnesUpTo16Keys) {
  std::map<std::string, int> kinds;
  for (const ComputeShape& shape : SmallShapes()) {
    for (std::uint32_t length = 0; length <= 16; ++length) {
      const ComputePlan plan = MakeComputePlan(shape, Log2Keys(length));
      ASSERT_TRUE(SortsAllBits(plan, length)) << Name(shape) << " length " << length;
      for (const ComputePass& pass : plan.passes) {
        ++kinds[pass.row_bits == 0 ? "block"
                : pass.mirrored    ? "strided mirrored"
                                   : "strided plain"];
        for (const ComputeRound& round : pass.rounds) {
          ++kinds[round.whole_stages                          ? "round of whole stages"
                  : round.steps.size() < shape.registers_log2 ? "round that is not full"
                  : round.mirrored                            ? "round mirrored"
                                                              : "round plain"];
        }
      }
    }
  }
  EXPECT_EQ(kinds.size(), 7);  // each kind occurred
  for (const auto& [kind, count] : kinds) std::cout << kind << ": " << count << '\n';
}

// Windows of any length, the shapes of real devices included.
TEST(ComputePlan, SortsRandomInputsOfZerosAndOnes) {
  std::vector<ComputeShape> shapes = SmallShapes();
  for (const std::size_t shared : {512, 1024, 4096, 32768}) {
    for (const std::uint32_t bits : {32, 64}) {
      for (const bool payload : {false, true}) {
        shapes.push_back(ChooseShape({bits, payload}, {shared, 1024}));
      }
    }
  }
  for (const ComputeShape& shape : shapes) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      std::mt19937_64 random(seed);
      const std::uint32_t k = 5 + static_cast<std::uint32_t>(random() % 9);
      const auto length = static_cast<std::uint32_t>((1U << (k - 1)) + random() % (1U << (k - 1)));
      std::vector<std::uint64_t> keys(length);
      for (std::uint64_t& key : keys) {
        key = random();  // input v has about (v % 8 + 1) / 9 ones
        for (std::uint64_t v = 0; v < 64; ++v) {
          key = (key & ~(std::uint64_t{1} << v)) | std::uint64_t{random() % 9 <= v % 8} << v;
        }
      }
      const std::vector<int> ones = Ones(keys);
      SortBits(MakeComputePlan(shape, Log2Keys(length)), keys);
      ASSERT_TRUE(SortedBits(keys)) << Name(shape) << " length " << length << " seed " << seed;
      ASSERT_EQ(Ones(keys), ones) << Name(shape) << " length " << length << " seed " << seed;
    }
  }
}

template <class Element>
void ExpectSorts(const ComputeShape& shape, std::vector<Element> keys, const Element& largest) {
  std::vector<Element> expected = keys;
  std::sort(expected.begin(), expected.end());
  RunPlan<Element>(MakeComputePlan(shape, Log2Keys(keys.size())), keys, largest);
  EXPECT_TRUE(keys == expected) << Name(shape) << " length " << keys.size();
}

// Keys of every width with and without a payload; largest keys in the window, too, which must not
// be taken for padding.
TEST(ComputePlan, SortsEveryKindOfElement) {
  constexpr std::uint32_t kMax32 = ~std::uint32_t{0};
  constexpr std::uint64_t kMax64 = ~std::uint64_t{0};
  std::mt19937_64 random(3);
  const auto pick = [&](std::uint64_t max) { return random() % 8 == 0 ? max : random() & max; };
  for (const std::size_t shared : {1024, 32768}) {
    for (const std::size_t length : {2, 1000, 5000, 16384, 16385}) {
      std::vector<std::uint32_t> k32;
      std::vector<std::uint64_t> k64;
      std::vector<std::pair<std::uint32_t, std::uint32_t>> p32;
      std::vector<std::pair<std::uint64_t, std::uint32_t>> p64;
      for (std::size_t i = 0; i < length; ++i) {
        k32.push_back(static_cast<std::uint32_t>(pick(kMax32)));
        k64.push_back(pick(kMax64));
        p32.emplace_back(static_cast<std::uint32_t>(pick(kMax32) | 0xfffffff0), i);
        p64.emplace_back(pick(kMax64) | 0xfffffffffffffff0, random() % 3 == 0 ? kMax32 : i);
      }
      ExpectSorts(ChooseShape({32, false}, {shared, 1024}), k32, kMax32);
      ExpectSorts(ChooseShape({64, false}, {shared, 1024}), k64, kMax64);
      ExpectSorts(ChooseShape({32, true}, {shared, 1024}), p32, {kMax32, kMax32});
      ExpectSorts(ChooseShape({64, true}, {shared, 1024}), p64, {kMax64, kMax32});
    }
  }
}

// The tests can be seen to bite: without any one of its rounds, or with a mirrored pass or round
// taken for a plain one, the plan does not sort.
TEST(ComputePlan, SortsNoLongerWhenBroken) {
  const ComputePlan plan = MakeComputePlan({1, 2, 1, 0}, 4);
  ASSERT_TRUE(SortsAllBits(plan, 16));
  for (std::size_t p = 0; p < plan.passes.size(); ++p) {
    for (std::size_t r = 0; r < plan.passes[p].rounds.size(); ++r) {
      ComputePlan broken = plan;
      broken.passes[p].rounds.erase(broken.passes[p].rounds.begin() +
                                    static_cast<std::ptrdiff_t>(r));
      EXPECT_FALSE(SortsAllBits(broken, 16)) << "pass " << p << " round " << r << '\n' << plan;
      if (!plan.passes[p].rounds[r].mirrored) continue;
      broken = plan;
      broken.passes[p].rounds[r].mirrored = false;
      EXPECT_FALSE(SortsAllBits(broken, 16)) << "pass " << p << " round " << r << '\n' << plan;
    }
    if (!plan.passes[p].mirrored) continue;
    ComputePlan broken = plan;
    broken.passes[p].mirrored = false;
    EXPECT_FALSE(SortsAllBits(broken, 16)) << "pass " << p << '\n' << plan;
  }
}

// Groups are as few as hold keys, and their local arrays are apart and make up the window.
TEST(ComputePlan, StartsGroupsForWhatThereIs) {
  for (const ComputeShape& shape : {ComputeShape{1, 3, 1, 1}, ComputeShape{1, 4, 2, 2}}) {
    for (std::uint32_t length = 1; length <= 200; ++length) {
      for (const ComputePass& pass : MakeComputePlan(shape, Log2Keys(length)).passes) {
        std::set<std::uint32_t> indices;
        const std::uint32_t groups = pass.Groups(length);
        for (std::uint32_t group = 0; group < groups; ++group) {
          for (std::uint32_t l = 0; l < (1U << shape.block_log2); ++l) {
            ASSERT_TRUE(indices.insert(pass.IndexOf(group, l)).second);
          }
        }
        ASSERT_EQ(*indices.rbegin(), indices.size() - 1);
        ASSERT_GE(indices.size(), length);
        ASSERT_LT(indices.size(), length + (std::size_t{1} << (pass.row_shift + pass.row_bits)));
      }
    }
  }
}

TEST(ComputePlan, PutsARoundsKeysIntoDifferentBanks) {
  constexpr std::uint32_t kBanks = 32;
  std::set<std::uint32_t> places;
  for (std::uint32_t l = 0; l < (1U << kBlockLog2Max); ++l) places.insert(SharedPlace(l));
  EXPECT_EQ(places.size(), 1U << kBlockLog2Max);
  EXPECT_EQ(*places.rbegin(), (1U << kBlockLog2Max) - 1);
  for (std::uint32_t r = 1; r <= 4; ++r) {
    for (std::uint32_t first_bit = 0; first_bit + r <= 12; ++first_bit) {
      for (const bool mirrored : {false, true}) {
        for (std::uint32_t j = 0; j < (1U << r); ++j) {
          ComputeRound round;
          round.first_bit = first_bit;
          round.mirrored = mirrored;
          std::set<std::uint32_t> banks;
          for (std::uint32_t invocation = 64; invocation < 64 + kBanks; ++invocation) {
            banks.insert(SharedPlace(LocalOf(round, r, invocation, j)) % kBanks);
          }
          ASSERT_EQ(banks.size(), kBanks) << "r " << r << " first bit " << first_bit << " j " << j;
        }
      }
    }
  }
}

TEST(ComputePlan, PrintsAPassOnALine) {
  std::ostringstream out;
  out << MakeComputePlan({1, 3, 2, 1}, 6);
  EXPECT_EQ(out.str(),
            "pass 1: block of 2^3 keys: stage 1 step 1 to stage 3 step 3 (6 steps, 3 rounds)\n"
            "pass 2: strided, 2 rows of 2^2 keys: stage 4 step 1 (1 step, 1 round)\n"
            "pass 3: block of 2^3 keys: stage 4 step 2 to stage 4 step 4 (3 steps, 2 rounds)\n"
            "pass 4: strided, 4 rows of 2^1 keys: stage 5 step 1 to stage 5 step 2 (2 steps, 1 "
            "round)\n"
            "pass 5: block of 2^3 keys: stage 5 step 3 to stage 5 step 5 (3 steps, 2 rounds)\n"
            "pass 6: strided, 4 rows of 2^1 keys: stage 6 step 1 to stage 6 step 2 (2 steps, 1 "
            "round)\n"
            "pass 7: strided, 2 rows of 2^2 keys: stage 6 step 3 (1 step, 1 round)\n"
            "pass 8: block of 2^3 keys: stage 6 step 4 to stage 6 step 6 (3 steps, 2 rounds)\n");
}

}  // namespace
}  // namespace tidemark::sort
