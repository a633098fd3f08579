#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cstring>
#include <span>
#include <stdexcept>

#include "gpu/sort/sorter_factory.h"
#include "summaries/key_codec.h"
#include "tests/bench/service_bench_daemon.h"
#include "tests/bench/service_bench_sections.h"
#include "tests/bench/service_bench_statsd.h"
#include "tests/bench/service_bench_tcp.h"

namespace tidemark::bench {
namespace {

constexpr std::size_t kWindow = std::size_t{1} << 18;
constexpr double kMillion = 1e6;

// Keys a second of `threads` that each sort windows of 2^18 for as long as a measurement takes.
// Only the sorting is timed, not the copy that brings a fresh window.
double SortRate(sort::WindowSorter& sorter, int threads, const Options& options) {
  std::vector<std::uint32_t> keys;
  for (const float value : UniformValues()) keys.push_back(EncodeKey(value));
  std::vector<double> rates(static_cast<std::size_t>(threads));
  std::barrier together(threads);
  std::vector<std::thread> workers;
  for (double& rate : rates) {
    workers.emplace_back([&] {
      std::vector<std::uint32_t> window(kWindow);
      const std::span<std::uint32_t> channel[] = {window};
      double seconds = 0;
      double sorted = 0;
      std::size_t at = 0;
      together.arrive_and_wait();
      const Clock::time_point end =
          Clock::now() + std::chrono::duration_cast<Clock::duration>(options.duration());
      do {
        std::memcpy(window.data(), keys.data() + at, kWindow * sizeof(std::uint32_t));
        at = (at + kWindow) % keys.size();
        const Clock::time_point start = Clock::now();
        sorter.Sort(sort::Channels<std::uint32_t>(channel));
        seconds += SecondsSince(start);
        sorted += kWindow;
      } while (Clock::now() < end);
      rate = sorted / seconds;
    });
  }
  for (std::thread& worker : workers) worker.join();
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

struct TcpCase {
  std::size_t frame = 0;
  int connections = 0;
  bool one_stream = false;
  double digests = 0;  ///< not 0: compact quantiles of this epsilon, and nothing that needs order
  bool sums = false;   ///< values are added up, too

  std::string Name() const {
    std::string name = std::to_string(frame / 1024) + "k values a frame, " +
                       std::to_string(connections) +
                       (connections == 1 ? " connection" : " connections");
    if (one_stream) name += ", one stream";
    if (digests != 0) name += digests < 0.01 ? ", digests 0.1 %" : ", digests 1 %";
    if (sums) name += ", sums of values";
    return name;
  }
};

// Runs the senders side by side for as long as a measurement takes; returns values sent.
template <class Finish>
std::uint64_t RunSenders(std::vector<std::unique_ptr<Sender>>& senders, std::size_t frame,
                         const Options& options, Finish finish) {
  const Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(options.duration());
  std::vector<std::thread> threads;
  std::vector<std::string> errors(senders.size());
  for (std::size_t i = 0; i < senders.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        do {
          senders[i]->SendFrame(frame);
        } while (Clock::now() < end);
        finish(senders[i]);
      } catch (const std::exception& error) {
        errors[i] = error.what();
      }
    });
  }
  std::uint64_t sent = 0;
  for (std::size_t i = 0; i < senders.size(); ++i) {
    threads[i].join();
    if (!errors[i].empty()) throw std::runtime_error(errors[i]);
    sent += senders[i] ? senders[i]->sent() : 0;
  }
  return sent;
}

// Values a second from the first byte sent until every value is acknowledged and summarized.
double TcpRate(const Daemon& daemon, client::Client& client, const TcpCase& one,
               const Options& options, int round) {
  std::vector<std::string> streams;
  std::vector<std::unique_ptr<Sender>> senders;
  for (int i = 0; i < one.connections; ++i) {
    const int number = one.one_stream ? 0 : i;
    streams.push_back("tcp-" + std::to_string(round) + "-" + std::to_string(number));
    if (one.sums && (i == 0 || !one.one_stream)) {
      client.CreateStream(streams.back(), {.type = client::ValueType::kFloat32, .sums = true});
    }
    if (one.digests != 0 && (i == 0 || !one.one_stream)) {
      client::StreamConfig config;
      config.type = client::ValueType::kFloat32;
      config.quantile_form = client::QuantileForm::kCompact;
      config.quantile_epsilon = one.digests;
      config.no_frequencies = true;
      client.CreateStream(streams.back(), config);
    }
    senders.push_back(std::make_unique<Sender>(daemon.tcp(), streams.back()));
  }
  const Clock::time_point start = Clock::now();
  const std::uint64_t sent =
      RunSenders(senders, one.frame, options, [](std::unique_ptr<Sender>& s) { s->Flush(); });
  std::sort(streams.begin(), streams.end());
  streams.erase(std::unique(streams.begin(), streams.end()), streams.end());
  for (std::size_t i = 0; i < streams.size(); ++i) {
    WaitUntilSummarized(client, streams[i], one.one_stream ? sent : senders[i]->sent());
  }
  const double rate = static_cast<double>(sent) / SecondsSince(start);
  for (const std::string& stream : streams) client.DeleteStream(stream);
  return rate;
}

// The same senders into a reader that only counts, in this process.
double CeilingRate(CountingReader& reader, const TcpCase& one, const Options& options) {
  std::vector<std::unique_ptr<Sender>> senders;
  for (int i = 0; i < one.connections; ++i) {
    senders.push_back(std::make_unique<Sender>(
        reader.port(), "s",
        client::TcpProducerOptions{.window_batches = std::size_t{1} << 40, .errors_max = 0}));
  }
  std::atomic<std::uint64_t> sent{0};
  const Clock::time_point start = Clock::now();
  RunSenders(senders, one.frame, options, [&](std::unique_ptr<Sender>& sender) {
    sent += sender->sent();
    sender.reset();  // closes: the reader sees the end
  });
  reader.WaitForEnd(one.connections);
  return static_cast<double>(sent) / SecondsSince(start);
}

double GrpcRate(client::Client& client, const Options& options) {
  const std::string stream = "grpc";
  client::Pusher pusher = client.Push(stream);
  const std::span<const float> all = UniformValues();
  std::size_t at = 0;
  std::uint64_t sent = 0;
  const Clock::time_point start = Clock::now();
  do {
    pusher.Write(all.subspan(at, client::kBatchValues));
    at = (at + client::kBatchValues) % all.size();
    sent += client::kBatchValues;
  } while (SecondsSince(start) < options.seconds);
  const client::PushSummary summary = pusher.Finish();
  if (summary.accepted != sent) throw std::runtime_error("gRPC lost values");
  WaitUntilSummarized(client, stream, sent);
  const double rate = static_cast<double>(sent) / SecondsSince(start);
  client.DeleteStream(stream);
  return rate;
}

// Lines a second from the first byte until the daemon has counted the last line's value.
double StatsdTcpRate(const Daemon& daemon, const Options& options) {
  constexpr std::string_view kTaken = "tidemark_ingest_values_total{source=\"statsd_tcp\"";
  const std::string lines = StatsdLines(kStatsdLinesPrepared);
  const double before = daemon.Metric(kTaken);
  const int socket = ConnectLoopback(SOCK_STREAM, daemon.statsd());
  double sent = 0;
  const Clock::time_point start = Clock::now();
  do {
    SendAll(socket, lines);
    sent += static_cast<double>(kStatsdLinesPrepared);
  } while (SecondsSince(start) < options.seconds);
  close(socket);
  while (daemon.Metric(kTaken) - before < sent) {
    if (SecondsSince(start) > options.seconds + 30) throw std::runtime_error("StatsD lost lines");
  }
  return sent / SecondsSince(start);
}

}  // namespace

Section Throughput(const Options& options) {
  Section section("Values in");
  sort::SorterOptions sorter_options;
  sorter_options.name = "auto";
  const sort::SorterSelection sorter = sort::MakeSorter(sorter_options);
  section.Note("sorter: " + sorter.report.active + " (" + sorter.report.reason + ")");

  const Daemon daemon(options.tidemarkd, options.daemon_flags);
  client::Client client({.server = daemon.grpc_address()});
  CountingReader reader;
  std::vector<TcpCase> cases;
  for (const int connections : {1, 4}) {
    for (const std::size_t frame : {4096u, 16384u, 65536u}) cases.push_back({frame, connections});
  }
  cases.push_back({16384, 4, true});
  for (const double epsilon : {0.001, 0.01}) cases.push_back({65536, 1, false, epsilon});
  cases.push_back({65536, 1, false, 0, true});

  const auto measure = [&](const std::string& name, std::string_view unit, auto rate) {
    if (options.Wants(name)) section.Add(name, unit, rate() / kMillion);
  };
  constexpr const char* kUnit = "M values/s";
  for (int round = 0; round < options.rounds; ++round) {
    measure("sort alone, 1 thread", kUnit, [&] { return SortRate(*sorter.sorter, 1, options); });
    for (const TcpCase& one : cases) {
      measure("framed TCP, " + one.Name(), kUnit,
              [&] { return TcpRate(daemon, client, one, options, round); });
    }
    measure("gRPC, 16k values a batch", kUnit, [&] { return GrpcRate(client, options); });
    measure("StatsD over TCP", "M lines/s", [&] { return StatsdTcpRate(daemon, options); });
    measure("sort alone, 2 threads", kUnit, [&] { return SortRate(*sorter.sorter, 2, options); });
    for (const TcpCase& one : cases) {
      if (one.one_stream || one.digests != 0 || one.sums) continue;
      measure("count only, " + one.Name(), kUnit,
              [&] { return CeilingRate(reader, one, options); });
    }
  }
  for (const TcpCase& one : cases) {
    section.AddRatio("framed TCP / sort alone, 1 thread: " + one.Name(),
                     "framed TCP, " + one.Name(), "sort alone, 1 thread", "0.8");
  }
  const std::string best = "framed TCP, " + TcpCase{65536, 1}.Name();
  const std::string same = "framed TCP, " + TcpCase{16384, 1}.Name();
  for (const double epsilon : {0.001, 0.01}) {
    const std::string digests = TcpCase{65536, 1, false, epsilon}.Name();
    section.AddRatio("framed TCP: " + digests + " / as by default", "framed TCP, " + digests, best,
                     "");
  }
  section.AddRatio("framed TCP: sums of values / as by default",
                   "framed TCP, " + TcpCase{65536, 1, false, 0, true}.Name(), best, "");
  section.AddRatio("framed TCP / sort alone, 2 threads: " + TcpCase{65536, 1}.Name(), best,
                   "sort alone, 2 threads", "");
  section.AddRatio("framed TCP / count only: " + TcpCase{65536, 1}.Name(), best,
                   "count only, " + TcpCase{65536, 1}.Name(), "");
  section.AddRatio("gRPC / framed TCP of 16k, 1 connection", "gRPC, 16k values a batch", same,
                   "0.4");
  return section;
}

}  // namespace tidemark::bench
