// The bytes of a stream's summaries are a function of its batches and their recorded times: the
// same whichever sorter ran, on how many threads, with queries in between or without. Sorters that
// fail or finish out of order: tests/server/pipeline.
//
// Sorters × workers × queries, for every way in which values become keys and windows: 64 and 32
// bits, floating and whole, and text (ids from a dictionary that forgets, windows closed early by
// their bytes). Suites named *Gl open a GL context, Mesa's software rasteriser will do; windows are
// kept small for its sake.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <deque>
#include <iostream>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/sort/cpu_sorter.h"
#include "gpu/sort/gl_sorters.h"
#include "gpu/sort/routed_sorter.h"
#include "server/query/query_engine.h"
#include "tests/server/query/sorters_to_watch.h"
#include "tests/support/pipeline_fixture.h"

namespace tidemark::server {
namespace {

// Small: a software rasteriser takes milliseconds for a request of four windows of 2^11.
constexpr CapacityLimits kWindows = {.min = 256, .max = 2048};
// A window of strings ends with 4 MiB of text: before 2048 items if they are longer than 2 KiB.
constexpr std::size_t kItemBytesMax = 4096;

QueryEngine::Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

// One batch: packed values, or text.
struct Batch {
  RecordedTime time = 0;
  std::string packed;
  std::vector<std::string_view> items;
};
struct Input {
  ValueType type = ValueType::kFloat64;
  std::vector<Batch> batches;
  std::deque<std::string> texts;  // behind the items
};

template <class T>
void Pack(T value, std::string& out) {
  const auto bytes = std::bit_cast<std::array<char, sizeof(T)>>(value);
  out.append(bytes.data(), bytes.size());
}

template <class T>
T NumberOf(int batch, std::mt19937_64& random) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>) {
    const T hard[] = {Limits::infinity(), -Limits::infinity(), Limits::denorm_min(), T{0}, -T{0},
                      Limits::quiet_NaN()};
    if (random() % 64 == 0) return hard[random() % std::size(hard)];
    return static_cast<T>(static_cast<std::int64_t>(random() % (batch % 2 == 0 ? 50 : 1'000'000))) -
           T{25};
  } else {
    if (random() % 64 == 0) return random() % 2 == 0 ? Limits::min() : Limits::max();
    return static_cast<T>(random() % (batch % 2 == 0 ? 50 : 1'000'000)) - T{25};
  }
}

// Few items that come often and many that come once, now and then with texts of 4,000 bytes.
std::string TextOf(int batch, std::mt19937_64& random) {
  std::string text = random() % 2 == 0 ? "often-" + std::to_string(random() % 40)
                                       : "once-" + std::to_string(random());
  if (batch % 10 >= 8) text.resize(4000, '.');
  return text;
}

Input MakeInput(ValueType type, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Input input;
  input.type = type;
  RecordedTime now = 1'000'000;
  for (int i = 0; i < 60; ++i) {
    Batch batch;
    // Busy spells, quiet spells, and a clock that steps back now and then.
    now += i % 30 < 20 ? static_cast<RecordedTime>(random() % 2000)
                       : static_cast<RecordedTime>(random() % 300'000);
    if (i % 17 == 16) now -= 10'000'000;
    batch.time = now;
    const std::size_t count = random() % (i % 3 == 0 ? 6000 : 300);
    for (std::size_t k = 0; k < count; ++k) {
      switch (type) {
        case ValueType::kFloat64:
          Pack(NumberOf<double>(i, random), batch.packed);
          break;
        case ValueType::kFloat32:
          Pack(NumberOf<float>(i, random), batch.packed);
          break;
        case ValueType::kInt64:
          Pack(NumberOf<std::int64_t>(i, random), batch.packed);
          break;
        case ValueType::kUint64:
          Pack(NumberOf<std::uint64_t>(i, random), batch.packed);
          break;
        case ValueType::kUint32:
        case ValueType::kIpv4:
          Pack(NumberOf<std::uint32_t>(i, random), batch.packed);
          break;
        case ValueType::kIpv6:  // hosts of all weights in two networks, many near what is dropped
          Pack(0xB80D0120U + (random() % 2 << 32), batch.packed);
          Pack(random() % (1 + random() % 400), batch.packed);
          break;
        case ValueType::kString:
          batch.items.push_back(input.texts.emplace_back(TextOf(i, random)));
          break;
      }
    }
    input.batches.push_back(std::move(batch));
  }
  return input;
}

// Every kind of question; the answers are the business of query_grid_test.cc.
void AskEverything(const QueryEngine& engine, ValueType type, bool items) {
  if (HasRanks(type)) {
    const std::vector<double> inner = {0.1, 0.5, 0.99};
    EXPECT_TRUE(engine.Quantiles("s", inner, Soon()).ok());
    const auto ends = engine.Quantiles("s", std::vector<double>{0, 1}, Soon());
    ASSERT_TRUE(ends.ok()) << ends.status();
    for (const QuantileRow& row : ends->rows) {
      EXPECT_TRUE(engine.Ranks("s", std::span(&row.value, 1), Soon()).ok());
      EXPECT_TRUE(engine.BoundedHistogram("s", std::span(&row.value, 1), Soon()).ok());
      if (items) {
        EXPECT_TRUE(engine.Counts("s", std::span(&row.value, 1), Soon()).ok());
      }
    }
    EXPECT_TRUE(engine.EquiDepthHistogram("s", 10, Soon()).ok());
  }
  if (!items) return;
  const auto heavy = engine.HeavyHitters("s", 0.05, 0, Soon());
  ASSERT_TRUE(heavy.ok()) << heavy.status();
  for (const ItemRow& row : heavy->rows) {
    EXPECT_TRUE(engine.Counts("s", std::span(&row.value, 1), Soon()).ok());
  }
}

struct Outcome {
  std::string bytes;
  StreamStats stats;
  bool forgot = false;  // strings: an item of the first batch
};

using ChangeSettings = void (*)(StreamSettings&);

Outcome Feed(const Input& input, sort::WindowSorter& sorter, std::string_view active, int workers,
             bool queries, Lent::Seen& seen, ChangeSettings change = nullptr) {
  sort::SorterSelection selection;
  selection.sorter = std::make_unique<Lent>(sorter, seen);
  selection.report.requested = sorter.name();
  selection.report.active = active;
  TestPipeline test(
      {.window_limits = kWindows, .item_bytes_max = kItemBytesMax, .sort_workers = workers},
      std::move(selection));
  // Coarse, so that the summaries prune and forget with so few values.
  StreamSettings settings{.type = input.type, .quantile_epsilon = 0.01, .frequency_epsilon = 0.005};
  // Some types with sums of their values, which refuse infinities, and some without.
  settings.sums = input.type == ValueType::kFloat32 || input.type == ValueType::kInt64 ||
                  input.type == ValueType::kUint32;
  if (input.type == ValueType::kIpv6) settings.hierarchy.prefix_lengths = {16, 48, 128};
  if (change != nullptr) change(settings);
  const StreamHandle stream = test.pipeline.streams().Create("s", settings).value();
  const QueryEngine engine(test.pipeline);
  int number = 0;
  for (const Batch& batch : input.batches) {
    const AppendResult result =
        input.type == ValueType::kString
            ? test.pipeline.AppendStrings(stream, batch.items, batch.time)
            : test.pipeline.AppendPacked(stream, std::as_bytes(std::span(batch.packed)),
                                         batch.time);
    EXPECT_TRUE(result.status.ok()) << result.status;
    if (queries && ++number % 2 == 0) {
      AskEverything(engine, input.type, settings.frequencies);
      stream->TrimStorage();
      if (number % 6 == 0) test.pipeline.Trim();
    }
  }
  Outcome outcome;
  outcome.bytes = test.Bytes("s");
  outcome.stats = stream->Stats();
  if (input.type == ValueType::kString) {
    const auto& keyed = static_cast<const KeyedStream<std::uint64_t>&>(*stream);
    for (const std::string_view item : input.batches.front().items) {
      outcome.forgot = outcome.forgot || !keyed.FindItem(item);
    }
  }
  EXPECT_TRUE(test.sorter_errors.empty()) << test.sorter_errors.front();
  return outcome;
}

constexpr std::uint64_t kSeed = 79;

class Determinism : public testing::TestWithParam<ValueType> {
 protected:
  void SetUp() override {
    input_ = MakeInput(GetParam(), kSeed);
    StdSorter plain;
    expected_ = Feed(input_, plain, "std-sort", 1, false, seen_);
    ASSERT_GT(expected_.bytes.size(), 300u);
  }

  // With one worker and four, with and without queries.
  void ExpectSameBytes(sort::WindowSorter& sorter, std::string_view active) {
    for (const int workers : {1, 4}) {
      for (const bool queries : {false, true}) {
        SCOPED_TRACE(testing::Message() << sorter.name() << ", " << workers << " workers, "
                                        << (queries ? "queries in between" : "no queries"));
        Lent::Seen seen;
        const Outcome outcome = Feed(input_, sorter, active, workers, queries, seen);
        // Not EXPECT_EQ: it would print both.
        EXPECT_TRUE(outcome.bytes == expected_.bytes)
            << outcome.bytes.size() << " bytes differ from the reference's "
            << expected_.bytes.size();
        EXPECT_EQ(outcome.stats.count, expected_.stats.count);
        EXPECT_EQ(outcome.stats.refused, expected_.stats.refused);
        EXPECT_GT(seen.windows, 0) << "the sorter was not used";
        EXPECT_EQ(sorter.failures(), 0u) << sorter.last_failure();
      }
    }
  }

  Lent::Seen seen_;  // by the reference
  Input input_;
  Outcome expected_;
};

std::string TypeName(const testing::TestParamInfo<ValueType>& info) {
  return std::string(ValueTypeName(info.param));
}
const auto kGlTypes = testing::Values(ValueType::kFloat64, ValueType::kFloat32, ValueType::kInt64,
                                      ValueType::kUint64, ValueType::kUint32, ValueType::kString);
// No GL sorter takes the keys of ipv6.
const auto kTypes =
    testing::Values(ValueType::kFloat64, ValueType::kFloat32, ValueType::kInt64, ValueType::kUint64,
                    ValueType::kUint32, ValueType::kString, ValueType::kIpv6);

// What the other tests rest on: the input does what they are about, and other input other bytes.
TEST_P(Determinism, TheInputIsHardAndTheComparisonCanFail) {
  EXPECT_GT(seen_.windows, 30);
  EXPECT_FALSE(expected_.stats.exact);
  if (GetParam() == ValueType::kString) {
    EXPECT_GT(seen_.short_windows, 0) << "no window was closed by its bytes of text";
    EXPECT_TRUE(expected_.forgot) << "the dictionary kept every item";
  } else {
    EXPECT_EQ(seen_.short_windows, 0);
  }
  StdSorter plain;
  Lent::Seen seen;
  Input later = input_;
  later.batches[10].time += 1'000'000;
  EXPECT_FALSE(Feed(later, plain, "std-sort", 1, false, seen).bytes == expected_.bytes)
      << "the recorded times";
  Input shorter = input_;
  Batch& batch = shorter.batches[0];
  ASSERT_FALSE(batch.packed.empty() && batch.items.empty());
  if (batch.items.empty()) {
    batch.packed.resize(batch.packed.size() - PackedBytes(GetParam()));
  } else {
    batch.items.pop_back();
  }
  EXPECT_FALSE(Feed(shorter, plain, "std-sort", 1, false, seen).bytes == expected_.bytes)
      << "one value less";
}

TEST_P(Determinism, EveryCpuAlgorithm) {
  for (const sort::CpuAlgorithm& algorithm : sort::CpuAlgorithms()) {
    SCOPED_TRACE(algorithm.name);
    sort::CpuSorter sorter(sort::UseOnly(algorithm));
    ExpectSameBytes(sorter, "cpu");
  }
}

TEST_P(Determinism, CpuAsChosenByMeasurement) {
  sort::SorterOptions options;
  options.name = "cpu";
  options.measure_budget_ms = 0;
  const sort::SorterSelection cpu = sort::MakeSorter(options);
  ExpectSameBytes(*cpu.sorter, cpu.report.active);
}

// What a stream may keep so that its windows may come back as samples and runs.
const ChangeSettings kReducible[] = {[](StreamSettings& settings) { settings.sums = false; },
                                     [](StreamSettings& settings) {
                                       settings.sums = false;
                                       settings.frequencies =
                                           !HasRanks(settings.type);  // they have nothing else
                                     }};

// Whether windows came back reduced where that may be: whatever else, the bytes are the same.
void ExpectSameBytesReduced(const Input& input, sort::WindowSorter& sorter,
                            std::string_view active) {
  for (const ChangeSettings change : kReducible) {
    StdSorter plain;
    Lent::Seen of_plain;
    const Outcome expected = Feed(input, plain, "std-sort", 1, false, of_plain, change);
    EXPECT_EQ(of_plain.reduced, 0);
    for (const int workers : {1, 4}) {
      SCOPED_TRACE(testing::Message() << sorter.name() << ", " << workers << " workers");
      Lent::Seen seen;
      const Outcome outcome = Feed(input, sorter, active, workers, workers == 4, seen, change);
      EXPECT_TRUE(outcome.bytes == expected.bytes)
          << outcome.bytes.size() << " bytes differ from the reference's " << expected.bytes.size();
      EXPECT_EQ(outcome.stats.count, expected.stats.count);
      if (input.type == ValueType::kIpv6) {
        EXPECT_EQ(seen.reduced, 0);
      } else {
        EXPECT_GT(seen.reduced, 0)
            << "of " << seen.windows << " windows, " << seen.kept_whole << " kept whole";
      }
    }
  }
}

TEST_P(Determinism, ReducedWindows) {
  StdReducer reducer;
  ExpectSameBytesReduced(input_, reducer, "std-reduce");
}

// Summaries of more than samples and items take whole windows.
TEST_P(Determinism, WindowsOfWhichMoreIsNeededAreNotReduced) {
  const ChangeSettings more[] = {
      [](StreamSettings& settings) { settings.quantile_form = QuantileKind::kCompact; },
      [](StreamSettings& settings) { settings.sliding.values_max = 10'000; },
      [](StreamSettings& settings) { settings.hierarchy.depth = 3; },
      [](StreamSettings& settings) { settings.sums = true; }};
  for (std::size_t i = 0; i < std::size(more); ++i) {
    const bool string = GetParam() == ValueType::kString;
    if (i == 0 && !HasRanks(GetParam())) continue;
    if (i == 2 && !string) continue;
    if (i == 3 && !ValueSumType(GetParam())) continue;
    StdReducer reducer;
    StdSorter plain;
    Lent::Seen seen;
    const Outcome expected = Feed(input_, plain, "std-sort", 1, false, seen, more[i]);
    const Outcome outcome = Feed(input_, reducer, "std-reduce", 4, false, seen, more[i]);
    EXPECT_EQ(seen.reduced, 0) << "settings " << i;
    EXPECT_TRUE(outcome.bytes == expected.bytes) << "settings " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Determinism, kTypes, TypeName);

// One context for all types: it takes up to 140 ms to open.
class DeterminismGl : public Determinism {
 protected:
  static void SetUpTestSuite() {
    gl_ = sort::OpenGlBitonic({.allow_software = true});
    compute_ = sort::OpenGlCompute({.allow_software = true});
  }
  static void TearDownTestSuite() {
    gl_.sorter.reset();
    compute_.sorter.reset();
  }
  void SetUp() override {
    if (!gl_.sorter) {
      GTEST_SKIP() << "no GL context, so that the GL sorters are not tested here: "
                   << gl_.report.error;
    }
    Determinism::SetUp();
  }

  // RoutedSorter owns what it routes to.
  static std::unique_ptr<sort::WindowSorter> Gl(Lent::Seen& seen) {
    return std::make_unique<Lent>(*gl_.sorter, seen);
  }
  static std::unique_ptr<sort::WindowSorter> Cpu(Lent::Seen& seen) {
    static sort::CpuSorter cpu(sort::UseOnly(sort::CpuAlgorithms().front()));
    return std::make_unique<Lent>(cpu, seen);
  }

  static inline sort::GlSorterOrReason gl_;
  static inline sort::GlSorterOrReason compute_;
};

TEST_P(DeterminismGl, GlBitonic) { ExpectSameBytes(*gl_.sorter, "gl-bitonic"); }

class DeterminismGlCompute : public DeterminismGl {
 protected:
  void SetUp() override {
    DeterminismGl::SetUp();
    if (IsSkipped() || compute_.sorter) return;
    // An old OpenGL is no fault of ours; whatever else keeps it from running is one.
    ASSERT_NE(compute_.report.error.find("compute shaders need 4.3"), std::string::npos)
        << compute_.report.error;
    GTEST_SKIP() << compute_.report.error;
  }
};

TEST_P(DeterminismGlCompute, GlCompute) { ExpectSameBytes(*compute_.sorter, "gl-compute"); }

TEST_P(DeterminismGlCompute, GlComputeReduced) {
  ExpectSameBytesReduced(input_, *compute_.sorter, "gl-compute");
}

// As the daemon has it: gl-compute behind the sorter that sends what it refuses to the CPU.
TEST_P(DeterminismGlCompute, GlComputeReducedBehindARoute) {
  Lent::Seen on_cpu;
  Lent::Seen on_gl;
  sort::RouteTable table;
  table.always_gl = true;
  table.gl_window_max = 1024;
  sort::RoutedSorter routed("gl-compute", Cpu(on_cpu),
                            std::make_unique<Lent>(*compute_.sorter, on_gl), table, {});
  ExpectSameBytesReduced(input_, routed, "gl-compute");
  EXPECT_GT(on_cpu.windows, 0);
  EXPECT_GT(on_gl.reduced, 0);
  EXPECT_EQ(routed.failures(), 0u) << routed.last_failure();
}

// `auto` on a machine where GL wins from 2^10 keys on (class 1) and the CPU below: both sort
// windows of one stream.
TEST_P(DeterminismGl, AutoWithBothInUse) {
  Lent::Seen on_cpu;
  Lent::Seen on_gl;
  sort::RouteTable table;
  table.gl_window_max = kWindows.max;
  for (std::size_t width = 0; width < sort::kKeyWidths; ++width) {
    table.cpu_key_seconds[width].fill(1);
    table.gl_request_seconds[width].fill(0.5);
    table.gl_request_seconds[width][0] = std::numeric_limits<double>::infinity();
  }
  sort::RoutedSorter routed("auto", Cpu(on_cpu), Gl(on_gl), table, {});
  ExpectSameBytes(routed, "gl-bitonic");
  EXPECT_GT(on_cpu.windows, 0);
  EXPECT_GT(on_gl.windows, 0);
}

INSTANTIATE_TEST_SUITE_P(Types, DeterminismGl, kGlTypes, TypeName);
INSTANTIATE_TEST_SUITE_P(Types, DeterminismGlCompute, kGlTypes, TypeName);

// As the daemon makes it, the measurement at start included, which on a software rasteriser takes
// most of the time: once, for one type of each key width.
TEST(DeterminismAutoGl, MeasuredAtStart) {
  sort::SorterOptions options;
  options.name = "auto";
  options.allow_software_gl = true;
  options.measure_budget_ms = 0;
  const sort::SorterSelection chosen = sort::MakeSorter(options);
  if (!chosen.report.gl.available) {
    GTEST_SKIP() << "no GL context, so that auto has nothing to choose from: "
                 << chosen.report.gl.error;
  }
  std::cout << chosen.report.reason << '\n';
  for (const ValueType type : {ValueType::kFloat64, ValueType::kFloat32}) {
    const Input input = MakeInput(type, kSeed);
    Lent::Seen seen;
    StdSorter plain;
    const Outcome expected = Feed(input, plain, "std-sort", 1, false, seen);
    const Outcome outcome =
        Feed(input, *chosen.sorter, chosen.report.active, 4, /*queries=*/true, seen);
    EXPECT_TRUE(outcome.bytes == expected.bytes) << ValueTypeName(type);
  }
}

}  // namespace
}  // namespace tidemark::server
