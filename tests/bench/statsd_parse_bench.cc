// How fast StatsD text becomes batches, on one core, without sockets.
//
//   statsd_parse_bench            about 10 s
//   statsd_parse_bench --smoke    one small round: does it run, does every line arrive
//
// Lines of about 27 bytes, 100 names, numbers with two decimals, in chunks as the servers see them.
// Prints Markdown: medians over the rounds with least and greatest; the stages are timed one after
// the other in each round. `copy` (memcpy of the same text) anchors the machine. Exit status 1: a
// line was lost.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "server/ingest/statsd_batcher.h"

namespace tidemark::server {

/// Only its name is needed.
class Stream {};

namespace {

/// Counts, and keeps nothing.
class CountingSink final : public IngestSink {
 public:
  absl::StatusOr<StreamHandle> Open(std::string_view, std::optional<ElementType>) override {
    return std::make_shared<Stream>();
  }
  ElementType TypeOf(const StreamHandle&) const override { return ValueType::kFloat64; }
  std::string_view NameOf(const StreamHandle&) const override { return {}; }
  AppendResult AppendPairs(const StreamHandle&, std::span<const std::byte>,
                           std::span<const std::byte>, const BatchStamp&) override {
    return {};
  }
  AppendResult AppendStringPairs(const StreamHandle&, std::span<const std::string_view>,
                                 std::span<const std::byte>, const BatchStamp&) override {
    return {};
  }
  AppendResult AppendPacked(const StreamHandle&, std::span<const std::byte>,
                            const BatchStamp&) override {
    return {};
  }
  AppendResult AppendNumbers(const StreamHandle&, std::span<const double> numbers,
                             const BatchStamp&) override {
    values += numbers.size();
    ++appends;
    return {absl::OkStatus(), numbers.size(), 0};
  }
  AppendResult AppendStrings(const StreamHandle&, std::span<const std::string_view>,
                             const BatchStamp&) override {
    return {};
  }
  bool saturated() const override { return false; }
  void WhenReady(std::function<void()> resume) override { resume(); }

  std::uint64_t values = 0;
  std::uint64_t appends = 0;
};

std::string MakeText(std::size_t lines) {
  std::mt19937_64 random(27);
  std::string text;
  char line[64];
  for (std::size_t i = 0; i < lines; ++i) {
    std::snprintf(line, sizeof line, "service.api.latency%02d:%llu.%02llu|ms\n",
                  static_cast<int>(random() % 100), static_cast<unsigned long long>(random() % 10),
                  static_cast<unsigned long long>(random() % 100));
    text += line;
  }
  return text;
}

double Seconds(std::chrono::steady_clock::time_point from) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
}

std::string CpuName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

void Print(const char* stage, std::vector<double> rates, double text_bytes_per_line) {
  std::sort(rates.begin(), rates.end());
  const double median = rates[rates.size() / 2];
  std::printf("| %s | %.1f | %.1f | %.1f | %.0f |\n", stage, median / 1e6, rates.front() / 1e6,
              rates.back() / 1e6, median * text_bytes_per_line / 1e6);
}

int Main(bool smoke) {
  const std::size_t lines = smoke ? 20'000 : 1'000'000;
  const int rounds = smoke ? 1 : 11;
  const std::string text = MakeText(lines);
  Metrics metrics("bench");
  GaugeTable gauges(16);
  const StatsdLimits limits;
  LimitedLog log{LogFn()};
  std::vector<double> copy_rates;
  std::vector<double> parse_rates;
  std::vector<double> tcp_rates;
  std::vector<double> udp_rates;
  std::vector<char> copy(text.size());
  const auto count = static_cast<double>(lines);
  std::uint64_t lost = 0;
  double sum = 0;

  for (int round = 0; round < rounds; ++round) {
    auto start = std::chrono::steady_clock::now();
    std::memcpy(copy.data(), text.data(), text.size());
    copy_rates.push_back(count / Seconds(start));

    start = std::chrono::steady_clock::now();
    StatsdLine line;
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      if (ParseStatsdLine(rest.substr(0, end), line) != StatsdError::kNone) ++lost;
      sum += line.group[0].first;
      rest.remove_prefix(end + 1);
    }
    parse_rates.push_back(count / Seconds(start));

    // Chunks of one TCP read, and of one recvmmsg of 64 datagrams of 1,432 bytes.
    for (auto* rates : {&tcp_rates, &udp_rates}) {
      const std::size_t chunk_bytes = rates == &tcp_rates ? 512 << 10 : 64 * 1432;
      CountingSink sink;
      StatsdBatcher batcher(sink, metrics, Source::kStatsdTcp, gauges, limits, log);
      start = std::chrono::steady_clock::now();
      for (std::size_t begin = 0; begin < text.size();) {
        std::size_t end = std::min(begin + chunk_bytes, text.size());
        end = text.rfind('\n', end - 1) + 1;
        batcher.Add(std::string_view(text).substr(begin, end - begin), 0);
        batcher.Flush(0);
        begin = end;
      }
      rates->push_back(count / Seconds(start));
      lost += lines - sink.values;
    }
  }
  const double bytes_per_line = static_cast<double>(text.size()) / count;
  std::printf("%s, one core, %zu lines of %.1f bytes, %d rounds, checksum %.2f\n\n",
              CpuName().c_str(), lines, bytes_per_line, rounds, sum);
  std::printf(
      "| stage | million lines/s, median | least | greatest | MB/s |\n|---|---|---|---|---|\n");
  Print("copy", copy_rates, bytes_per_line);
  Print("parse", parse_rates, bytes_per_line);
  Print("parse and batch, chunks of 512 KiB", tcp_rates, bytes_per_line);
  Print("parse and batch, chunks of 64 datagrams", udp_rates, bytes_per_line);
  if (lost > 0) std::printf("\n%llu lines were lost\n", static_cast<unsigned long long>(lost));
  return lost > 0 ? 1 : 0;
}

}  // namespace
}  // namespace tidemark::server

int main(int argc, char** argv) {
  const bool smoke = argc == 2 && std::string_view(argv[1]) == "--smoke";
  if (argc > 1 && !smoke) {
    std::fprintf(stderr, "usage: %s [--smoke]\n", argv[0]);
    return 2;
  }
  return tidemark::server::Main(smoke);
}
