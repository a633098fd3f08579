#include <bit>
#include <cstdint>
#include <random>
#include <stdexcept>

#include "client/client.h"
#include "client/tcp_producer.h"
#include "tests/bench/service_bench_daemon.h"
#include "tests/bench/service_bench_sections.h"
#include "tests/bench/service_bench_tcp.h"

namespace tidemark::bench {
namespace {

constexpr double kKilobyte = 1e3;
constexpr double kMegabyte = 1e6;
constexpr std::size_t kFrame = 65536;

void Check(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

// Positive numbers over 32 binades, 2^28 different ones: hardly any value repeats soon, which is
// the hard case for the summaries. (xorshift64*, top bits.)
class WideValues {
 public:
  void Fill(std::vector<float>& values) {
    for (float& value : values) {
      state_ ^= state_ >> 12;
      state_ ^= state_ << 25;
      state_ ^= state_ >> 27;
      const std::uint64_t random = state_ * 0x2545f4914f6cdd1dULL;
      value = std::bit_cast<float>((std::uint32_t{112} << 23) +
                                   static_cast<std::uint32_t>(random >> 36));
    }
  }

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15ULL;
};

void OneStream(Section& section, const Options& options) {
  const Daemon daemon(options.tidemarkd, options.daemon_flags);
  client::Client client({.server = daemon.grpc_address()});
  const std::string name = "growing";
  client::StreamConfig config;
  config.type = client::ValueType::kFloat32;
  config.quantile_epsilon = 0.001;
  client.CreateStream(name, config);
  section.Add("idle daemon: resident", "MB", daemon.ResidentBytes() / kMegabyte);

  auto producer = client::TcpProducer::Connect("127.0.0.1", daemon.tcp());
  Check(producer.status());
  const auto stream = (*producer)->Open(name, wire::WireType::kFloat32);
  Check(stream.status());
  WideValues source;
  std::vector<float> frame(kFrame);
  std::uint64_t sent = 0;
  std::uint64_t until = 1'000'000;
  const std::uint64_t most = options.smoke ? 1'000'000 : 1'000'000'000;
  for (int exponent = 6; until <= most; ++exponent, until *= 10) {
    while (sent < until) {
      frame.resize(std::min<std::uint64_t>(kFrame, until - sent));
      source.Fill(frame);
      Check((*producer)->SendBatch(*stream, std::span<const float>(frame)).status());
      sent += frame.size();
    }
    frame.resize(kFrame);
    Check((*producer)->Flush());
    WaitUntilSummarized(client, name, sent);
    const client::StreamInfo info = client.DescribeStream(name);
    const std::string at = "one stream of 10^" + std::to_string(exponent) + " values: ";
    section.Add(at + "quantile summary", "kB",
                static_cast<double>(info.quantile_bytes) / kKilobyte);
    section.Add(at + "frequency summary", "kB",
                static_cast<double>(info.frequency_bytes) / kKilobyte);
    section.Add(at + "resident", "MB", daemon.ResidentBytes() / kMegabyte);
  }
}

void QuietStreams(Section& section, const Options& options) {
  const Daemon daemon(options.tidemarkd, options.daemon_flags);
  const int streams = options.smoke ? 200 : 10'000;
  constexpr std::size_t kValues = 100;
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  std::vector<double> values(kValues);
  const double before = daemon.ResidentBytes();
  auto producer = client::TcpProducer::Connect("127.0.0.1", daemon.tcp());
  Check(producer.status());
  for (int i = 0; i < streams; ++i) {
    const auto stream = (*producer)->Open("sensor." + std::to_string(i), wire::WireType::kFloat64);
    Check(stream.status());
    for (double& value : values) value = normal(random);
    // In ten batches, as from a sensor, not in one.
    for (std::size_t at = 0; at < kValues; at += 10) {
      Check((*producer)
                ->SendBatch(*stream, std::span<const double>(values).subspan(at, 10))
                .status());
    }
  }
  Check((*producer)->Flush());
  if ((*producer)->accepted() != static_cast<std::uint64_t>(streams) * kValues) {
    throw std::runtime_error("values of quiet streams were lost");
  }
  const double after = daemon.ResidentBytes();
  section.Add(std::to_string(streams) + " quiet streams of 100 values: added", "MB",
              (after - before) / kMegabyte);
  section.Add(std::to_string(streams) + " quiet streams of 100 values: added, of one stream",
              "bytes", (after - before) / streams);
}

}  // namespace

Section Memory(const Options& options) {
  Section section("Memory");
  for (int round = 0; round < options.rounds; ++round) {
    OneStream(section, options);
    QuietStreams(section, options);
  }
  section.Note(
      "float32 at quantile epsilon 0.1 %, frequency epsilon as configured (0.01 %); aim: "
      "10,000 quiet streams add at most 40 MB");
  return section;
}

}  // namespace tidemark::bench
