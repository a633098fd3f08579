#include <unistd.h>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "client/client.h"
#include "tests/bench/service_bench_asker.h"
#include "tests/bench/service_bench_daemon.h"
#include "tests/bench/service_bench_sections.h"
#include "tests/bench/service_bench_tcp.h"

namespace tidemark::bench {
namespace {

constexpr std::size_t kFrame = 65536;
// Sender and asker stand for two other machines. Here they share the cores, and without this the
// asker would wait for the sender's turns, which says nothing of the daemon.
constexpr int kSenderNice = 5;

// Framed TCP as fast as the daemon takes it, until destroyed.
class FullIngest {
 public:
  FullIngest(std::uint16_t port, const std::string& stream)
      : sender_(port, stream), thread_([this] { Run(); }) {}
  ~FullIngest() {
    stop_ = true;
    thread_.join();
  }
  std::uint64_t sent() const { return sent_.load(); }

 private:
  void Run() {
    nice(kSenderNice);  // on Linux of the calling thread
    while (!stop_) {
      sender_.SendFrame(kFrame);
      sent_ = sender_.sent();
    }
    sender_.Flush();
  }

  Sender sender_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> sent_{0};
  std::thread thread_;
};

}  // namespace

Section Latency(const Options& options) {
  Section section("Query latency, 500 a second");
  const Daemon daemon(options.tidemarkd, options.daemon_flags);
  client::Client client({.server = daemon.grpc_address()});
  const std::string quiet = "quiet";
  const std::string loaded = "loaded";
  {
    Sender sender(daemon.tcp(), quiet);
    sender.SendFrame(100);
    sender.Flush();
    Sender other(daemon.tcp(), loaded);
    for (int i = 0; i < 64; ++i) other.SendFrame(kFrame);
    other.Flush();
  }
  AskPaced(client, quiet, 0.2, Asker::kOrdinary);  // connects, warms up

  std::vector<std::pair<std::string, Asker>> askers = {{"", Asker::kOrdinary}};
  if (MayGoFirst()) askers.emplace_back(", asker first", Asker::kFirst);
  const std::string of_quiet = "a stream of 100 values";
  const std::string of_loaded = "the stream that is fed";
  const auto ask_both = [&](const std::string& when) {
    for (const auto& [how, asker] : askers) {
      AddQueryTimes(section, of_quiet + how + ", " + when,
                    AskPaced(client, quiet, options.seconds, asker));
      AddQueryTimes(section, of_loaded + how + ", " + when,
                    AskPaced(client, loaded, options.seconds, asker));
    }
  };
  for (int round = 0; round < options.rounds; ++round) {
    ask_both("idle");
    const FullIngest ingest(daemon.tcp(), loaded);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const Clock::time_point start = Clock::now();
    const std::uint64_t before = ingest.sent();
    ask_both("ingest full");
    section.Add("ingest meanwhile", "M values/s",
                static_cast<double>(ingest.sent() - before) / SecondsSince(start) / 1e6);
    section.Add("values in the stream that is fed", "M",
                static_cast<double>(client.DescribeStream(loaded).count) / 1e6);
  }
  for (const auto& [how, asker] : askers) {
    for (const std::string& stream : {of_quiet + how, of_loaded + how}) {
      section.AddRatio(stream + ", p50: full / idle", stream + ", ingest full, p50",
                       stream + ", idle, p50", "");
      section.AddRatio(stream + ", p99: full / idle", stream + ", ingest full, p99",
                       stream + ", idle, p99", "at most 3");
    }
  }
  return section;
}

}  // namespace tidemark::bench
