// Exported files of every version that was ever written, kept as files: a stream is made of them
// for ever, gives the answers that are kept beside them, and goes on.
//
// golden/vVERSION-CASE.file holds a serialized tidemark.v1.SummaryFile, .answers what the stream
// that it makes answers. A new version of a file or of a layout in it, or a new kind of summary,
// adds cases, and
//   TIDEMARK_GOLDEN_WRITE=1 rpc_test --gtest_filter='SummaryFileGolden*'
// writes those that are not there yet. A file that is there is never written again.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "server/query/query_engine.h"
#include "server/rpc/summary_file.h"
#include "summaries/crc32c.h"
#include "summaries/key_codec.h"
#include "tests/support/golden_files.h"
#include "tests/support/pipeline_fixture.h"

namespace tidemark::server {
namespace {

namespace fs = std::filesystem;
using testing::Contents;
using testing::WriteIfAbsent;
using testing::WritesGolden;

constexpr std::size_t kValues = 3000;

QueryEngine::Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

PipelineOptions SmallWindows() {
  PipelineOptions options;
  options.window_limits = {.min = 64, .max = 64};
  return options;
}

struct Case {
  const char* name;
  StreamSettings settings;
};

std::vector<Case> Cases() {
  StreamSettings base;
  base.quantile_epsilon = base.tail_epsilon = 0.1;
  base.frequency_epsilon = 0.02;
  const auto with = [&](ValueType type, PayloadType payload, QuantileKind form) {
    StreamSettings settings = base;
    settings.type = type;
    settings.payload = payload;
    settings.quantile_form = form;
    return settings;
  };
  std::vector<Case> cases{
      {"float64-histogram",
       with(ValueType::kFloat64, PayloadType::kNone, QuantileKind::kHistogram)},
      {"float32-compact", with(ValueType::kFloat32, PayloadType::kNone, QuantileKind::kCompact)},
      {"int64-tail", with(ValueType::kInt64, PayloadType::kNone, QuantileKind::kTail)},
      {"uint64-y", with(ValueType::kUint64, PayloadType::kY, QuantileKind::kHistogram)},
      {"uint32-y", with(ValueType::kUint32, PayloadType::kY, QuantileKind::kCompact)},
      {"ipv4-weights", with(ValueType::kIpv4, PayloadType::kWeight, QuantileKind::kHistogram)},
      {"ipv6", with(ValueType::kIpv6, PayloadType::kNone, QuantileKind::kHistogram)},
      {"ipv6-weights", with(ValueType::kIpv6, PayloadType::kWeight, QuantileKind::kHistogram)},
      {"string-weights", with(ValueType::kString, PayloadType::kWeight, QuantileKind::kHistogram)},
      {"string", with(ValueType::kString, PayloadType::kNone, QuantileKind::kHistogram)},
      {"float64-sums", with(ValueType::kFloat64, PayloadType::kNone, QuantileKind::kHistogram)},
      {"int64-sums", with(ValueType::kInt64, PayloadType::kNone, QuantileKind::kHistogram)},
      {"uint32-sums", with(ValueType::kUint32, PayloadType::kNone, QuantileKind::kCompact)},
  };
  for (Case& c : cases) {
    if (c.settings.type == ValueType::kIpv4) c.settings.hierarchy.prefix_lengths = {8, 16, 24, 32};
    if (c.settings.type == ValueType::kIpv6)
      c.settings.hierarchy.prefix_lengths = {16, 48, 64, 128};
    if (c.name == std::string_view("string-weights")) c.settings.hierarchy.depth = 3;
    c.settings.sums = std::string_view(c.name).ends_with("-sums");
  }
  return cases;
}

// Few heavy and many light ones; the same on every machine, as no library draws them.
std::uint64_t Draw(std::mt19937_64& random) {
  const std::uint64_t range = 1 + random() % 200;
  return random() % range;
}
Ipv6Bytes DrawAddress(std::mt19937_64& random) {
  Ipv6Bytes address{{0x20, 0x01, 0x0d, 0xb8}};
  for (std::size_t at = 4; at < address.bytes.size() && random() % 4 == 0; at += 2) {
    address.bytes[at] = static_cast<std::uint8_t>(random() % 3);
  }
  address.bytes.back() = static_cast<std::uint8_t>(Draw(random) % 16);
  return address;
}

template <class T, class DrawOne>
void AppendDrawn(TestPipeline& test, const StreamHandle& stream, std::mt19937_64& random,
                 std::size_t count, DrawOne draw) {
  std::vector<T> values(count);
  for (T& value : values) value = draw(random);
  const PayloadType payload = stream->settings().payload;
  std::vector<std::uint64_t> payloads(payload == PayloadType::kNone ? 0 : count);
  for (auto& one : payloads) {
    const std::uint64_t drawn = random() % 1000;
    // Halves are exact: their sum does not hang on the machine's rounding.
    one = payload == PayloadType::kY
              ? std::bit_cast<std::uint64_t>(static_cast<double>(drawn) / 2 - 100)
              : drawn;
  }
  AppendResult result;
  if constexpr (std::is_same_v<T, std::string>) {
    const std::vector<std::string_view> items(values.begin(), values.end());
    result = test.pipeline.AppendStringPairs(stream, items, std::as_bytes(std::span(payloads)), 0);
  } else if (payload == PayloadType::kNone) {
    result = test.pipeline.AppendPacked(stream, std::as_bytes(std::span(values)), 0);
  } else {
    result = test.pipeline.AppendPairs(stream, std::as_bytes(std::span(values)),
                                       std::as_bytes(std::span(payloads)), 0);
  }
  ASSERT_TRUE(result.status.ok()) << result.status;
  ASSERT_EQ(result.accepted, count);
}

void AppendValues(TestPipeline& test, const StreamHandle& stream, std::uint64_t seed,
                  std::size_t count) {
  std::mt19937_64 random(seed);
  const auto number = [&]<class T>(T) {
    AppendDrawn<T>(test, stream, random, count,
                   [](auto& from) { return static_cast<T>(Draw(from)); });
  };
  switch (stream->settings().type) {
    case ValueType::kFloat64:
      return number(0.0);
    case ValueType::kFloat32:
      return number(0.0F);
    case ValueType::kInt64:
      return number(std::int64_t{});
    case ValueType::kUint64:
      return number(std::uint64_t{});
    case ValueType::kUint32:
      return number(std::uint32_t{});
    case ValueType::kIpv4:
      return AppendDrawn<std::uint32_t>(test, stream, random, count, [](auto& from) {
        return static_cast<std::uint32_t>(Draw(from) << (8 * (from() % 4)));
      });
    case ValueType::kIpv6:
      return AppendDrawn<Ipv6Bytes>(test, stream, random, count, DrawAddress);
    case ValueType::kString:
      return AppendDrawn<std::string>(test, stream, random, count, [](auto& from) {
        return "a" + std::to_string(Draw(from) % 7) + ".b" + std::to_string(Draw(from) % 40) + ".c";
      });
  }
}

void Print(std::ostream& out, const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    out << '"' << *text << '"';
  } else if (const auto* four = std::get_if<Ipv4>(&value)) {
    out << four->address;
  } else if (const auto* six = std::get_if<Ipv6>(&value)) {
    out << std::hex << static_cast<std::uint64_t>(six->address >> 64) << ':'
        << static_cast<std::uint64_t>(six->address) << std::dec;
  } else {
    std::visit(
        [&](const auto& number) {
          if constexpr (std::is_arithmetic_v<std::decay_t<decltype(number)>>) out << number;
        },
        value);
  }
}

void PrintItems(std::ostream& out, const char* what, const absl::StatusOr<ItemsAnswer>& items) {
  if (!items.ok()) return;
  for (const ItemRow& row : items->rows) {
    out << what << ' ';
    Print(out, row.value);
    out << ": [" << row.count_low << ", " << row.count_high << "]\n";
  }
}

// Whatever a stream of its kind answers.
std::string Describe(const QueryEngine& engine, const std::string& name, bool of_values) {
  std::ostringstream out;
  out.precision(17);
  const Ask ask(Soon());
  constexpr std::array kPhis{0.0, 0.01, 0.25, 0.5, 0.99, 1.0};
  if (const auto quantiles = engine.Quantiles(name, kPhis, ask); quantiles.ok()) {
    out << "n " << quantiles->coverage.n << " epsilon " << quantiles->coverage.epsilon << '\n';
    for (const QuantileRow& row : quantiles->rows) {
      out << "quantile " << row.phi << ": ";
      Print(out, row.value);
      out << " [" << row.rank_low << ", " << row.rank_high << "]\n";
    }
  }
  PrintItems(out, "item", engine.HeavyHitters(name, 0.05, 0, ask));
  PrintItems(out, "weight", engine.HeavyHitters(name, 0.05, 0, ask, true));
  if (const auto prefixes = engine.HierarchicalHeavyHitters(name, 0.08, ask); prefixes.ok()) {
    for (const PrefixRow& row : prefixes->rows) {
      out << "prefix ";
      Print(out, row.prefix);
      out << '/' << row.length << ": [" << row.count_low << ", " << row.count_high
          << "] discounted [" << row.discounted_low << ", " << row.discounted_high << "]\n";
    }
  }
  const std::vector<PairRange> ranges{AtMostShare{0.3}, AtMostShare{1}, BetweenShares{0.2, 0.9}};
  if (const auto sums = engine.Sums(name, ranges, Soon()); sums.ok()) {
    for (const SumRow& row : sums->rows) {
      out << "sum [" << row.sum_low << ", " << row.sum_high << "] of [" << row.count_low << ", "
          << row.count_high << "]\n";
    }
    // Of values that are summed themselves.
    const auto spread = engine.Spread(name, {.trim = 0.1}, ask);
    if (spread.ok() && of_values) {
      out << "mean [" << spread->mean_low << ", " << spread->mean_high << "]\n";
    }
  }
  return out.str();
}

std::string FileOf(const QueryEngine& engine, const std::string& name) {
  const auto state = engine.State(name, Soon());
  EXPECT_TRUE(state.ok()) << state.status();
  v1::SummaryFile file;
  if (state.ok()) WriteSummaryFile(name, *state, file);
  return file.SerializeAsString();
}

absl::StatusOr<StreamState> StateOf(const std::string& bytes) {
  v1::SummaryFile file;
  if (!file.ParseFromString(bytes)) return absl::InvalidArgumentError("no SummaryFile");
  return ReadSummaryFile(file);
}

// The answers of a stream made of `bytes`. It writes the same file, takes values in and merges.
std::string Read(const std::string& bytes, const std::string& stream_name) {
  const auto state = StateOf(bytes);
  EXPECT_TRUE(state.ok()) << state.status();
  if (!state.ok()) return "";
  TestPipeline test(SmallWindows());
  const QueryEngine engine(test.pipeline);
  const auto stream = test.pipeline.streams().Restore(stream_name, *state);
  EXPECT_TRUE(stream.ok()) << stream.status();
  if (!stream.ok()) return "";
  const bool of_values = (*stream)->settings().sums;
  std::string text = Describe(engine, stream_name, of_values);
  const auto again = StateOf(FileOf(engine, stream_name));
  EXPECT_TRUE(again.ok()) << again.status();
  if (again.ok()) {
    EXPECT_TRUE(test.pipeline.streams().Restore("again", *again).ok());
    EXPECT_EQ(Describe(engine, "again", of_values), text);
    StreamState both = *state;
    const absl::Status merged = MergeInto(both, *again);
    EXPECT_TRUE(merged.ok()) << merged;
  }
  const std::uint64_t before = (*stream)->Stats().count;
  AppendValues(test, *stream, 5, 500);
  EXPECT_EQ((*stream)->Stats().count, before + 500);
  return text;
}

fs::path Folder() { return fs::path(TIDEMARK_GOLDEN_DIR); }

TEST(SummaryFileGolden, EveryKindOfStreamIsKept) {
  const bool write = WritesGolden();
  TestPipeline test(SmallWindows());
  const QueryEngine engine(test.pipeline);
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const auto stream = test.pipeline.streams().Create(c.name, c.settings);
    ASSERT_TRUE(stream.ok()) << stream.status();
    ASSERT_NO_FATAL_FAILURE(AppendValues(test, *stream, 4, kValues));
    const std::string bytes = FileOf(engine, c.name);
    const fs::path path = Folder() / (std::string("v1-") + c.name + ".file");
    if (write) {
      WriteIfAbsent(path, bytes);
      WriteIfAbsent(fs::path(path).replace_extension(".answers"), Read(bytes, c.name));
    }
    ASSERT_TRUE(fs::exists(path)) << path << " was removed, or was never written";
  }
}

TEST(SummaryFileGolden, EveryFileMakesAStreamThatAnswersTheSame) {
  std::size_t read = 0;
  for (const auto& entry : fs::directory_iterator(Folder())) {
    if (entry.path().extension() != ".file") continue;
    SCOPED_TRACE(entry.path().filename());
    EXPECT_EQ(Read(Contents(entry.path()), "stream"),
              Contents(fs::path(entry.path()).replace_extension(".answers")));
    ++read;
  }
  EXPECT_GE(read, Cases().size());
}

// A file may hold summaries of different values, each of them whole. What they say together is then
// worth nothing, but it stays an interval.
TEST(SummaryFileGolden, SummariesOfDifferentValuesMakeNoInvertedInterval) {
  TestPipeline test(SmallWindows());
  const QueryEngine engine(test.pipeline);
  StreamSettings settings;
  settings.type = ValueType::kUint32;
  settings.quantile_epsilon = 0.1;
  settings.frequencies = false;
  settings.sums = true;
  std::array<v1::StreamSummary, 2> summaries;
  for (std::size_t i = 0; i < summaries.size(); ++i) {
    const std::string name = i == 0 ? "low" : "high";
    const auto stream = test.pipeline.streams().Create(name, settings);
    ASSERT_TRUE(stream.ok()) << stream.status();
    std::vector<std::uint32_t> values(kValues);
    for (std::size_t v = 0; v < kValues; ++v) {
      values[v] = static_cast<std::uint32_t>(100'000 * i + v);
    }
    ASSERT_TRUE(
        test.pipeline.AppendPacked(*stream, std::as_bytes(std::span(values)), 0).status.ok());
    v1::SummaryFile file;
    ASSERT_TRUE(file.ParseFromString(FileOf(engine, name)));
    ASSERT_TRUE(summaries[i].ParseFromString(file.summary()));
  }
  for (const bool swapped : {false, true}) {
    v1::StreamSummary mixed = summaries[swapped ? 1 : 0];
    mixed.set_sums(summaries[swapped ? 0 : 1].sums());
    v1::SummaryFile file;
    file.set_version(kSummaryFileVersion);
    file.set_summary(mixed.SerializeAsString());
    file.set_crc32c(Crc32c(file.summary()));
    const auto state = StateOf(file.SerializeAsString());
    ASSERT_TRUE(state.ok()) << state.status();
    const std::string name = swapped ? "mixed" : "swapped";
    ASSERT_TRUE(test.pipeline.streams().Restore(name, *state).ok());
    for (const double trim : {0.0, 0.1, 0.4}) {
      const auto spread = engine.Spread(name, {.trim = trim}, Soon());
      ASSERT_TRUE(spread.ok()) << spread.status();
      EXPECT_LE(spread->mean_low, spread->mean_high) << trim;
    }
  }
}

}  // namespace
}  // namespace tidemark::server
