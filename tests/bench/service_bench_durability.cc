#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>

#include "client/client.h"
#include "tests/bench/raw_writing.h"
#include "tests/bench/service_bench_asker.h"
#include "tests/bench/service_bench_daemon.h"
#include "tests/bench/service_bench_sections.h"
#include "tests/bench/service_bench_tcp.h"
#include "tests/support/temporary_folder.h"

namespace tidemark::bench {
namespace {

constexpr std::array<const char*, 3> kModes = {"none", "snapshot", "log"};
constexpr std::size_t kFrame = 65536;
// A log acknowledges after its sync: so many frames may be under way meanwhile, 64 MiB.
constexpr std::size_t kFramesUnderWay = 256;
constexpr double kOffered = 50e6;  // values a second
constexpr std::uint64_t kRawBytes = std::uint64_t{1} << 30;
constexpr int kSenderNice = 5;  // as in the section on latency

// One second from snapshot to snapshot, a 300th of the default: a measurement has some in it.
std::vector<std::string> FlagsOf(const std::string& mode, const std::string& folder) {
  if (mode == "none") return {};
  return {"--data-dir", folder, "--durability", mode, "--snapshot-interval-s", "1"};
}

std::vector<std::string> Joined(std::vector<std::string> flags,
                                const std::vector<std::string>& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

Sender MakeSender(const Daemon& daemon, const std::string& stream) {
  return {daemon.tcp(), stream, client::TcpProducerOptions{.window_batches = kFramesUnderWay}};
}

// Values a second until all are acknowledged and summarized; `interval` from the beginning of one
// frame to that of the next, none if it is 0.
double Feed(const Daemon& daemon, client::Client& client, const std::string& stream,
            const Options& options, Clock::duration interval) {
  Sender sender = MakeSender(daemon, stream);
  const Clock::time_point start = Clock::now();
  const auto end = start + std::chrono::duration_cast<Clock::duration>(options.duration());
  Clock::time_point due = start;
  do {
    std::this_thread::sleep_until(due);
    due += interval;
    sender.SendFrame(kFrame);
  } while (Clock::now() < end);
  sender.Flush();
  WaitUntilSummarized(client, stream, sender.sent());
  return static_cast<double>(sender.sent()) / SecondsSince(start);
}

std::string Full(const std::string& mode) { return "framed TCP, full, " + mode; }
std::string Offered(const std::string& mode) { return "framed TCP, 50 M/s offered, " + mode; }
std::string Asked(const std::string& mode) { return "query beside 50 M/s, " + mode; }

}  // namespace

Section Durability(const Options& options) {
  Section section("What durability costs");
  const std::string below =
      options.folder.empty() ? std::filesystem::temp_directory_path().string() : options.folder;
  section.Note("data folders below " + below + "; a snapshot every second; frames of 64k float32");
  constexpr double kMillion = 1e6;
  const auto interval = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(static_cast<double>(kFrame) / kOffered));

  for (int round = 0; round < options.rounds; ++round) {
    // Each mode at each place in turn: the first finds another disk than the last.
    for (std::size_t i = 0; i < kModes.size(); ++i) {
      const std::string mode = kModes[(i + static_cast<std::size_t>(round)) % kModes.size()];
      const test::TemporaryFolder folder(below);
      const Daemon daemon(options.tidemarkd,
                          Joined(FlagsOf(mode, folder.path()), options.daemon_flags));
      client::Client client({.server = daemon.grpc_address()});
      if (mode == "log") {
        const double raw = RawWritingRate(below, options.smoke ? kRawBytes / 64 : kRawBytes);
        section.Add("raw O_DIRECT writing", "MB/s", raw / kMillion);
      }
      const double full = Feed(daemon, client, "full", options, {});
      section.Add(Full(mode), "M values/s", full / kMillion);
      if (mode == "log") {
        section.Add("values' bytes in the log", "MB/s",
                    full * static_cast<double>(sizeof(float)) / kMillion);
      }
      client.DeleteStream("full");

      {
        Sender sender(daemon.tcp(), "quiet");
        sender.SendFrame(100);
        sender.Flush();
      }
      AskPaced(client, "quiet", 0.2, Asker::kOrdinary);  // connects, warms up
      double rate = 0;
      std::string error;
      std::thread feeder([&] {
        nice(kSenderNice);  // on Linux of the calling thread
        try {
          rate = Feed(daemon, client, "offered", options, interval);
        } catch (const std::exception& failure) {
          error = failure.what();
        }
      });
      std::vector<Sample> times;
      try {
        times = AskPaced(client, "quiet", options.seconds, Asker::kOrdinary);
      } catch (...) {
        feeder.join();
        throw;
      }
      feeder.join();
      if (!error.empty()) throw std::runtime_error(error);
      section.Add(Offered(mode), "M values/s", rate / kMillion);
      AddQueryTimes(section, Asked(mode), times);
    }
  }
  section.AddRatio("full: snapshot / none", Full("snapshot"), Full("none"), "at least 0.95");
  section.AddRatio("full: log / none", Full("log"), Full("none"), "");
  section.AddRatio("full: log / raw writing", "values' bytes in the log", "raw O_DIRECT writing",
                   "at least 0.4");
  section.AddRatio("50 M/s offered: snapshot / none", Offered("snapshot"), Offered("none"), "");
  section.AddRatio("50 M/s offered: log / none", Offered("log"), Offered("none"), "at least 0.9");
  for (const std::string mode : {"snapshot", "log"}) {
    section.AddRatio("query p99: " + mode + " / none", Asked(mode) + ", p99",
                     Asked("none") + ", p99", "");
  }
  return section;
}

}  // namespace tidemark::bench
