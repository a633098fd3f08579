// The image of a stream, with its checksums as they came and made to fit: what is none is refused
// with a reason of one line; what is accepted makes a stream that answers, takes values in, and
// whose own image makes the same stream again.
//
// The first byte: the kind of stream (stream_kinds.h); its highest bit: make checksums fit.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "server/query/query_engine.h"
#include "tests/fuzz/image_checksums.h"
#include "tests/fuzz/small_pipeline.h"
#include "tests/fuzz/stream_kinds.h"

namespace {

using namespace tidemark::server;
using tidemark::fuzz::Require;
using tidemark::fuzz::SmallPipeline;

constexpr const char* kStream = "s";

void CheckAnswers() {
  const QueryEngine engine(SmallPipeline().pipeline);
  const Ask ask(std::chrono::steady_clock::now() + std::chrono::seconds(20));
  constexpr double kPhis[] = {0, 0.5, 1};
  if (const auto answer = engine.Quantiles(kStream, kPhis, ask); answer.ok()) {
    for (const QuantileRow& row : answer->rows) {
      Require(row.rank_low <= row.rank_high && row.rank_high <= answer->coverage.n);
    }
  }
  const auto check_rows = [](const auto& answer) {
    if (!answer.ok()) return;
    for (const auto& row : answer->rows) Require(row.count_low <= row.count_high);
  };
  check_rows(engine.HeavyHitters(kStream, 0.2, 0, ask));
  check_rows(engine.HierarchicalHeavyHitters(kStream, 0.2, ask));
  const std::vector<PairRange> ranges{AtMostShare{0.5}};
  check_rows(engine.Sums(kStream, ranges, ask.deadline));
}

void Check(const StreamSettings& settings, std::string_view bytes) {
  auto& streams = SmallPipeline().pipeline.streams();
  const auto stream = streams.RestoreImage(kStream, settings, 1, bytes);
  if (!stream.ok()) {
    Require(!stream.status().message().empty());
    Require(stream.status().message().find('\n') == std::string_view::npos);
    return;
  }
  const std::string image = (*stream)->Image().value();
  Require(streams.Delete(kStream).ok());
  const auto again = streams.RestoreImage(kStream, settings, 1, image);
  Require(again.ok() && (*again)->Image().value() == image);
  CheckAnswers();
  tidemark::fuzz::AppendValues(*again, 0);
  tidemark::fuzz::AppendValues(*again, INT64_MAX);
  CheckAnswers();
  Require((*again)->Image().ok());
  Require(streams.Delete(kStream).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto& kinds = tidemark::fuzz::StreamKinds();
  const StreamSettings& settings = kinds[(data[0] & 0x7F) % kinds.size()];
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & 0x80) != 0) tidemark::fuzz::FixImage(settings.type, bytes);
  Check(settings, bytes);
  return 0;
}
