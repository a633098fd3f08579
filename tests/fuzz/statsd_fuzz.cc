// StatsD text: no bytes crash parser or batcher; every line is either counted by kind, ignored as
// empty, or refused; a text gives the same values in one chunk as line by line; a name's canonical
// form does not depend on the order of its tags.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "server/ingest/statsd_batcher.h"
#include "tests/support/fake_sink.h"

namespace {

using namespace tidemark::server;

void Require(bool property) {
  if (!property) std::abort();
}

// Made once: registering metrics costs more than parsing.
Metrics& SharedMetrics() {
  static Metrics metrics("fuzz");
  return metrics;
}

double LinesCounted() {
  double lines = 0;
  for (std::size_t kind = 0; kind < kStatsdKinds; ++kind) {
    lines += SharedMetrics()
                 .StatsdLines(Source::kStatsdTcp, StatsdKindName(static_cast<StatsdKind>(kind)))
                 .Value();
  }
  return lines;
}

struct Outcome {
  FakeSink sink;
  double lines = 0;
};

std::unique_ptr<Outcome> Ingest(std::string_view text, bool line_by_line) {
  auto outcome = std::make_unique<Outcome>();
  GaugeTable gauges(16);
  StatsdLimits limits;
  limits.names_max = 8;
  limits.names_bytes_max = 256;
  limits.line_bytes_max = 1024;
  LimitedLog log([](IngestLogLevel, std::string_view message) {
    for (const char c : message) Require(c >= 32 && c < 127);
  });
  StatsdBatcher batcher(outcome->sink, SharedMetrics(), Source::kStatsdTcp, gauges, limits, log);
  const double before = LinesCounted();
  if (line_by_line) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
      batcher.Add(text.substr(0, end), 0);
      batcher.Flush(0);
      text.remove_prefix(end);
    }
  } else {
    batcher.Add(text, 0);
    batcher.Flush(0);
  }
  Require(batcher.names() <= limits.names_max);
  outcome->lines = LinesCounted() - before;
  return outcome;
}

void CheckLine(std::string_view text) {
  StatsdLine line;
  if (ParseStatsdLine(text, line) != StatsdError::kNone || line.groups == 0) return;
  Require(!line.name.empty() && line.groups <= StatsdLine::kGroupsMax);
  for (std::uint32_t i = 0; i < line.groups; ++i) {
    const StatsdGroup& group = line.group[i];
    Require(group.rate > 0 && group.rate <= 1);
    if (group.kind == StatsdKind::kSet) continue;
    std::size_t bytes = 0;
    ForEachNumber(group, [&](double, std::string_view written) {
      Require(!written.empty());
      bytes += written.size() + 1;
    });
    Require(bytes == group.values.size() + 1);
  }
  std::string identity;
  if (!StatsdIdentity(line.name, line.tags, identity)) return;
  const std::size_t comma = line.tags.find(',');
  if (comma == std::string_view::npos) return;
  std::string turned(line.tags.substr(comma + 1));
  turned += ',';
  turned += line.tags.substr(0, comma);
  std::string again;
  Require(StatsdIdentity(line.name, turned, again) && again == identity);
}

// Tags may be written in several ways, none of them ("|#,") too, each of which keeps its order
// alone within a chunk.
template <typename Values>
Values Ordered(Values values, bool sort) {
  if (sort) std::sort(values.begin(), values.end());
  return values;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (end > 0) CheckLine(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const auto chunk = Ingest(text, false);
  const auto lines = Ingest(text, true);
  Require(chunk->lines == lines->lines);
  Require(chunk->sink.taken() == lines->sink.taken());
  const auto names = chunk->sink.Names();
  Require(names == lines->sink.Names());
  for (const std::string& name : names) {
    const bool tagged = name.find('{') != std::string::npos || text.find('#') != text.npos;
    Require(Ordered(chunk->sink.Numbers(name), tagged) ==
            Ordered(lines->sink.Numbers(name), tagged));
    Require(Ordered(chunk->sink.Items(name), tagged) == Ordered(lines->sink.Items(name), tagged));
  }
  return 0;
}
