// What an export file holds, a StreamSummary, with the checksums of its frames as they came and
// made to fit: what is none is refused with a reason of one line; what is accepted is written as a
// file that is accepted and written the same, is merged with itself, and makes a stream that
// answers and takes values in.
#include <google/protobuf/stubs/logging.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "server/query/query_engine.h"
#include "server/rpc/summary_file.h"
#include "summaries/crc32c.h"
#include "tests/fuzz/small_pipeline.h"
#include "tests/support/fix_checksum.h"

namespace {

using namespace tidemark::server;
using tidemark::fuzz::Require;
using tidemark::fuzz::SmallPipeline;
namespace v1 = tidemark::v1;

constexpr const char* kStream = "s";

v1::SummaryFile FileOf(std::string bytes) {
  v1::SummaryFile file;
  file.set_version(kSummaryFileVersion);
  file.set_crc32c(tidemark::Crc32c(bytes));
  *file.mutable_summary() = std::move(bytes);
  return file;
}

// Bounds are in order, and below n.
template <class Rows>
void CheckRows(const absl::StatusOr<Rows>& answer) {
  if (!answer.ok()) return;
  for (const auto& row : answer->rows) Require(row.count_low <= row.count_high);
}

void CheckAnswers() {
  const QueryEngine engine(SmallPipeline().pipeline);
  const Ask ask(std::chrono::steady_clock::now() + std::chrono::seconds(20));
  constexpr double kPhis[] = {0, 0.001, 0.5, 1};
  if (const auto answer = engine.Quantiles(kStream, kPhis, ask); answer.ok()) {
    for (const QuantileRow& row : answer->rows) {
      Require(row.rank_low <= row.rank_high && row.rank_high <= answer->coverage.n);
    }
  }
  for (const double support : {0.9, 0.1}) {
    CheckRows(engine.HeavyHitters(kStream, support, 0, ask));
    CheckRows(engine.HeavyHitters(kStream, support, 0, ask, true));
    CheckRows(engine.HierarchicalHeavyHitters(kStream, support, ask));
  }
  const std::vector<PairRange> ranges{AtMostShare{0.5}, BetweenShares{0.2, 0.7}};
  CheckRows(engine.Sums(kStream, ranges, ask.deadline));
  for (const double trim : {0.0, 0.1}) {
    if (const auto spread = engine.Spread(kStream, {.trim = trim}, ask); spread.ok()) {
      Require(spread->mean_low <= spread->mean_high && spread->range_low <= spread->range_high);
      Require(spread->distinct_low <= spread->distinct_high);
    }
  }
  if (const auto moved = engine.Compare(kStream, ask, kStream, ask, 0.1); moved.ok()) {
    Require(moved->distance_low <= moved->distance_high);
  }
}

// 32 bytes are a whole number of values of every type; a stream of pairs refuses them.
void AppendValues(const StreamHandle& stream) {
  constexpr std::string_view kItems[] = {"a.b", "a.c", "d", "a.b"};
  constexpr std::uint64_t kValues[] = {1, 2, 1, 3};
  const std::uint64_t before = stream->Stats().count;
  auto& pipeline = SmallPipeline().pipeline;
  const AppendResult result =
      stream->settings().type == ValueType::kString
          ? pipeline.AppendStrings(stream, kItems, 0)
          : pipeline.AppendPacked(stream, std::as_bytes(std::span(kValues)), 0);
  Require(stream->Stats().count == before + result.accepted);
}

void CheckStream(const StreamState& state) {
  auto& streams = SmallPipeline().pipeline.streams();
  const auto stream = streams.Restore(kStream, state);
  if (!stream.ok()) {
    Require(!stream.status().message().empty());
    return;
  }
  CheckAnswers();
  AppendValues(*stream);
  CheckAnswers();
  Require(streams.Delete(kStream).ok());
}

void Check(const std::string& bytes) {
  const absl::StatusOr<StreamState> state = ReadSummaryFile(FileOf(bytes));
  if (!state.ok()) {
    Require(!state.status().message().empty());
    Require(state.status().message().find('\n') == std::string_view::npos);
    return;
  }
  v1::SummaryFile once, twice;
  WriteSummaryFile(kStream, *state, once);
  const absl::StatusOr<StreamState> again = ReadSummaryFile(once);
  Require(again.ok());
  WriteSummaryFile(kStream, *again, twice);
  Require(once.SerializeAsString() == twice.SerializeAsString());
  StreamState both = *state;
  const absl::Status merged = MergeInto(both, *again);
  Require(merged.ok() || !merged.message().empty());
  CheckStream(*state);
  if (merged.ok()) CheckStream(both);
}

// Those of all frames; false if they did already, or if it is no StreamSummary.
bool FixChecksums(std::string& bytes) {
  v1::StreamSummary summary;
  if (!summary.ParseFromString(bytes)) return false;
  bool changed = false;
  for (std::string* frame :
       {summary.mutable_quantiles(), summary.mutable_frequencies(), summary.mutable_weights(),
        summary.mutable_hierarchy(), summary.mutable_sums(), summary.mutable_text_levels()}) {
    changed |= tidemark::testing::FixChecksum(*frame);
  }
  bytes = summary.SerializeAsString();
  return changed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A line for every text that is no UTF-8 would be all that one sees.
  static const auto quiet = google::protobuf::SetLogHandler(nullptr);
  static_cast<void>(quiet);
  std::string bytes(reinterpret_cast<const char*>(data), size);
  Check(bytes);
  if (FixChecksums(bytes)) Check(bytes);
  return 0;
}
