// What an operator sees of the real daemon: health, metrics, logs, reload, shutdown under load.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/test_daemon.h"
#include "tests/summaries/cases.h"
#include "tests/support/raw_socket.h"
#include "wire/frame.h"

namespace tidemark::test {
namespace {

using nlohmann::json;

grpc::ByteBuffer Buffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}
std::string Text(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!buffer.Dump(&slices).ok()) return text;
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

// One message to a method and one back, as bytes: health and reflection need no generated code.
struct Reply {
  bool read = false;
  std::string message;
};
Reply CallOnce(const std::string& address, const std::string& method, const std::string& request) {
  const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  grpc::CompletionQueue queue;
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto call = stub.PrepareCall(&context, method, &queue);
  void* const tag = &context;  // one operation at a time
  Reply reply;
  call->StartCall(tag);
  if (next()) {
    call->Write(Buffer(request), tag);
    if (next()) {
      grpc::ByteBuffer message;
      call->Read(&message, tag);
      reply.read = next();
      if (reply.read) reply.message = Text(message);
    }
  }
  context.TryCancel();
  grpc::Status status;
  call->Finish(&status, tag);
  next();
  queue.Shutdown();
  return reply;
}

std::uint64_t Push(client::Client& client, const std::string& stream, std::size_t n) {
  const std::vector<double> values(n, 1.5);
  client::Pusher pusher = client.Push(stream);
  pusher.Write(values);
  return pusher.Finish().accepted;
}

TEST(Operations, HealthAndReflection) {
  TestDaemon daemon;
  EXPECT_EQ(daemon.Get("/-/healthy").code, 200);
  EXPECT_EQ(daemon.Get("/-/ready").code, 200);
  EXPECT_EQ(daemon.Get("/").code, 200);
  EXPECT_EQ(daemon.Get("/nothing").code, 404);
  EXPECT_EQ(Http(daemon.port("http"), "/-/reload").code, 405);
  // HealthCheckRequest{} -> HealthCheckResponse{status: SERVING}.
  const Reply health = CallOnce(daemon.address("grpc"), "/grpc.health.v1.Health/Check", "");
  EXPECT_TRUE(health.read);
  EXPECT_EQ(health.message, "\x08\x01");
  // ServerReflectionRequest{list_services: ""}.
  const Reply services = CallOnce(daemon.address("grpc"),
                                  "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                                  std::string("\x3a\x00", 2));
  EXPECT_TRUE(services.read);
  for (const char* service :
       {"tidemark.v1.IngestService", "tidemark.v1.QueryService", "tidemark.v1.StreamService",
        "tidemark.v1.InfoService", "grpc.health.v1.Health"}) {
    EXPECT_NE(services.message.find(service), std::string::npos) << service;
  }
}

TEST(Operations, MetricsPassPromtool) {
  TestDaemon daemon;
  EXPECT_EQ(Push(daemon.client(), "s", 100'000), 100'000u);
  daemon.client().Quantiles("s", {0.5});
  daemon.client().HeavyHitters("s", 0.5);
  EXPECT_THROW(daemon.client().Quantiles("nowhere", {0.5}), client::Error);
  const HttpReply metrics = daemon.Get("/metrics");
  ASSERT_EQ(metrics.code, 200);
  const std::string promtool = FindProgram("promtool");
  if (!promtool.empty()) {
    const Completed check =
        RunProgram({.program = promtool, .arguments = {"check", "metrics"}, .input = metrics.body});
    EXPECT_EQ(check.status, 0) << check.out << check.err;
    EXPECT_EQ(check.out + check.err, "") << "promtool has something to say";
  } else {
    std::cout << "no promtool in PATH: the metrics were not linted\n";
  }
  EXPECT_EQ(daemon.Metric(R"(tidemark_ingest_values_total{source="grpc"})"), 100'000);
  EXPECT_EQ(daemon.Metric("tidemark_streams"), 1);
  EXPECT_GE(daemon.Metric("tidemark_windows_sorted_total"), 1);
  EXPECT_GE(daemon.Metric("tidemark_query_seconds_count"), 2);
  EXPECT_GE(daemon.Metric("tidemark_sort_seconds_count"), 1);
  EXPECT_GE(daemon.Metric("tidemark_merge_seconds_count"), 1);
  EXPECT_GT(daemon.Metric("tidemark_summaries_bytes"), 0);
  // Of every queue both, in one unit, or the alert on their ratio could never fire.
  for (const char* series : {"tidemark_queue_depth{", "tidemark_queue_limit{"}) {
    std::set<std::string> queues;
    for (std::size_t at = 0; (at = metrics.body.find(series, at)) != std::string::npos; ++at) {
      const std::size_t open = metrics.body.find('"', at) + 1;
      queues.insert(metrics.body.substr(open, metrics.body.find('"', open) - open));
    }
    EXPECT_EQ(queues, (std::set<std::string>{"query", "sort_keys"})) << series;
  }
  EXPECT_EQ(daemon.Metric("tidemark_sorter_info"), 1);
}

// Debian's Prometheus, with the scrape configuration that anybody would write.
TEST(Operations, PrometheusScrapesTheRunningDaemon) {
  const std::string program = FindProgram("prometheus");
  if (program.empty())
    GTEST_SKIP() << "no prometheus in PATH: it is in Debian's package prometheus";
  TestDaemon daemon;
  EXPECT_EQ(Push(daemon.client(), "s", 12'345), 12'345u);
  const TemporaryFolder folder;
  const std::uint16_t port = FreePort();
  const std::string configuration = folder.Write(
      "prometheus.yml",
      "global:\n  scrape_interval: 1s\nscrape_configs:\n- job_name: tidemark\n  static_configs:\n"
      "  - targets: ['" +
          daemon.address("http") + "']\n");
  Process prometheus(
      {.program = program,
       .arguments = {"--config.file=" + configuration, "--storage.tsdb.path=" + (folder / "data"),
                     "--web.listen-address=127.0.0.1:" + std::to_string(port),
                     "--log.level=warn"}});
  std::string last;
  const bool scraped = WaitUntil([&] {
    last = Http(port, "/api/v1/query?query=tidemark_ingest_values_total%7Bsource%3D%22grpc%22%7D")
               .body;
    // The body may be chunked: the object begins at the first brace and ends at the last.
    const std::size_t begin = last.find('{');
    if (begin == std::string::npos) return false;
    const json answer =
        json::parse(last.substr(begin, last.rfind('}') - begin + 1), nullptr, false);
    if (answer.is_discarded() || answer.value("status", "") != "success") return false;
    const json& result = answer["data"]["result"];
    return result.size() == 1 && result[0]["value"][1] == "12345";
  });
  EXPECT_TRUE(scraped) << last << prometheus.err();
  prometheus.Signal(SIGTERM);
  EXPECT_TRUE(prometheus.Wait().has_value());
  EXPECT_TRUE(prometheus.NothingLeft());
}

TEST(Operations, ReloadTakesTheGoodAndRefusesTheBad) {
  const TemporaryFolder folder;
  const std::string path =
      folder.Write("t.toml", "[streams]\nquantile_epsilon = 0.02\n[log]\nlevel = \"info\"\n");
  TestDaemon daemon({"--config", path});
  const auto reloads = [&](const std::string& result) {
    return daemon.Metric("tidemark_config_reloads_total{result=\"" + result + "\"}");
  };
  EXPECT_EQ(daemon.client().CreateStream("a").config.quantile_epsilon, 0.02);
  folder.Write("t.toml", "[streams]\nquantile_epsilon = 0.03\n");
  daemon.process().Signal(SIGHUP);
  ASSERT_TRUE(WaitUntil([&] {
    for (const json& line : daemon.Log()) {
      if (line["message"] == "configuration reloaded") return true;
    }
    return false;
  }));
  EXPECT_EQ(daemon.client().CreateStream("b").config.quantile_epsilon, 0.03);
  EXPECT_EQ(daemon.client().DescribeStream("a").config.quantile_epsilon, 0.02);

  folder.Write("t.toml", "[streams]\nquantile_epsilom = 0.04\n");
  daemon.process().Signal(SIGHUP);
  ASSERT_TRUE(WaitUntil([&] {
    for (const json& line : daemon.Log()) {
      if (line["level"] == "error" && line.dump().find("quantile_epsilom") != std::string::npos) {
        return true;
      }
    }
    return false;
  }));
  EXPECT_EQ(daemon.client().CreateStream("c").config.quantile_epsilon, 0.03);
  const HttpReply refused = Http(daemon.port("http"), "/-/reload", "POST");
  EXPECT_EQ(refused.code, 500);
  EXPECT_NE(refused.body.find(path + ":2"), std::string::npos) << refused.body;
  folder.Write("t.toml", "[streams]\nquantile_epsilon = 0.05\n");
  EXPECT_EQ(Http(daemon.port("http"), "/-/reload", "POST").code, 200);
  EXPECT_EQ(daemon.client().CreateStream("d").config.quantile_epsilon, 0.05);
  const double good = reloads("ok") + reloads("success");
  EXPECT_EQ(good, 2);
  EXPECT_EQ(daemon.Metric("tidemark_config_reloads_total"), 4);
}

// Whatever is wrong with the file, under load, by signal and by HTTP: nothing of it is taken.
TEST(Operations, AnyFaultOfAReloadKeepsTheOldConfiguration) {
  const TemporaryFolder folder;
  const std::string good = "[streams]\nquantile_epsilon = 0.02\n";
  const std::string path = folder.Write("t.toml", good);
  TestDaemon daemon({"--config", path});
  const std::vector<std::string> faults = {
      "[streams]\nquantile_epsilon = 0.03\n[limits]\nmax_streems = 5\n",
      "[streams]\nquantile_epsilon = 0.03\n[limits]\nmax_streams = \"many\"\n",
      "[streams]\nquantile_epsilon = 7\n",
      "[streams]\nquantile_epsilon = 0.03\ntype = \"float65\"\n",
      "[streams]\nquantile_epsilon = 0.03\n[log]\nlevel = \"loud\"\n",
      "[streams\nquantile_epsilon = 0.03\n",
      "[streams]\nquantile_epsilon = 0.03\n\xff\xfe\n",
      std::string("[streams]\nquantile_epsilon = 0.03\n\0", 35),
      "[[[[[[[[",
  };
  std::uint64_t pushed = 0, refused = 0;
  const auto expect_kept = [&](const std::string& what, bool by_signal) {
    SCOPED_TRACE(what);
    ++refused;
    if (by_signal) {
      daemon.process().Signal(SIGHUP);
    } else {
      EXPECT_EQ(Http(daemon.port("http"), "/-/reload", "POST").code, 500);
    }
    Push(daemon.client(), "load", 1'000);
    pushed += 1'000;
    EXPECT_TRUE(WaitUntil([&] {
      return daemon.Metric("tidemark_config_reloads_total{result=\"failed\"}") >=
             static_cast<double>(refused);
    }));
    const std::string name = Numbered("after", refused);
    EXPECT_EQ(daemon.client().CreateStream(name).config.quantile_epsilon, 0.02);
  };
  for (int round = 0; round < Cases(2, 50); ++round) {
    for (const std::string& fault : faults) {
      folder.Write("t.toml", fault);
      expect_kept(fault, (refused + static_cast<std::uint64_t>(round)) % 2 == 0);
    }
    std::filesystem::remove(path);
    expect_kept("no file", true);
    std::filesystem::create_directory(path);
    expect_kept("a folder", round % 2 == 0);
    std::filesystem::remove(path);
  }
  EXPECT_EQ(daemon.Metric("tidemark_config_reloads_total"), static_cast<double>(refused));
  EXPECT_EQ(daemon.client().DescribeStream("load").count, pushed);
  folder.Write("t.toml", "[streams]\nquantile_epsilon = 0.03\n");
  EXPECT_EQ(Http(daemon.port("http"), "/-/reload", "POST").code, 200);
  EXPECT_EQ(daemon.client().CreateStream("last").config.quantile_epsilon, 0.03);
}

TEST(Operations, LogsAreJsonLineByLine) {
  TestDaemon daemon({"--log-level", "debug"});
  Push(daemon.client(), "quote\" \xf0\x9f\x8c\x8a", 10);
  SendUdp(daemon.port("statsd"), "not a line\n");
  daemon.Stop();
  const std::vector<json> log = daemon.Log();  // throws where a line is no JSON
  ASSERT_GE(log.size(), 4u);
  for (const json& line : log) {
    EXPECT_TRUE(line.contains("time") && line.contains("level") && line.contains("message"))
        << line;
  }
  EXPECT_EQ(log.back()["message"], "stopped");
  EXPECT_EQ(log.back()["values"], 10);
  std::map<std::string, std::string> listening;
  for (const json& line : log) {
    if (line["message"] == "listening") listening[line["protocol"]] = line["address"];
  }
  for (const char* name : {"grpc", "tcp", "http", "statsd"}) {
    EXPECT_EQ(listening[name], daemon.address(name));
  }
}

TEST(Operations, TextLogsOnRequest) {
  TestDaemon daemon({"--log-format", "text"});
  daemon.Stop();
  EXPECT_NE(daemon.process().err().find(" listening protocol=grpc address="), std::string::npos);
}

TEST(Operations, SigintEndsItToo) {
  TestDaemon daemon;
  daemon.process().Signal(SIGINT);
  EXPECT_EQ(daemon.process().Wait(), 0);
}

struct Sent {
  std::uint64_t acknowledged = 0;
  std::uint64_t sent = 0;
};

std::uint64_t StoppedValues(const TestDaemon& daemon) {
  const json last = daemon.Log().back();
  EXPECT_EQ(last["message"], "stopped");
  return last.value("values", std::uint64_t{0});
}

// A push with nothing to do is told, and holds nothing up: the daemon would wait for it half of its
// ten seconds.
TEST(Operations, AnIdlePushDoesNotDelayTheEnd) {
  TestDaemon daemon;
  client::AcknowledgedPusher acknowledged = daemon.client().PushAcknowledged("s");
  acknowledged.Write(std::vector<double>{1, 2, 3});
  EXPECT_EQ(acknowledged.Flush().accepted, 3u);
  client::Pusher plain = daemon.client().Push("t");
  plain.Write(std::vector<double>{4});
  EXPECT_TRUE(WaitUntil(
      [&] { return daemon.Metric(R"(tidemark_ingest_values_total{source="grpc"})") == 4; }));
  const auto begun = std::chrono::steady_clock::now();
  daemon.Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(4));
  EXPECT_EQ(CodeOf([&] { acknowledged.Finish(); }), client::Code::kUnavailable);
  EXPECT_EQ(CodeOf([&] { plain.Finish(); }), client::Code::kUnavailable);
  EXPECT_EQ(StoppedValues(daemon), 4u);
}

// Whoever renews certificates or rotates logs does not know that the daemon is shutting down.
TEST(Operations, AHangUpDuringShutdownChangesNothing) {
  TestDaemon daemon;
  daemon.client().Info();  // a connection, for whose end gRPC waits
  daemon.process().Signal(SIGTERM);
  EXPECT_TRUE(WaitUntil([&] { return !std::filesystem::exists(daemon.ports_file()); }));
  daemon.process().Signal(SIGHUP);
  EXPECT_EQ(daemon.process().Wait(), 0);
}

// A peer that reads no answers holds the drain up for seconds.
TEST(Operations, ASecondSignalEndsItAtOnce) {
  TestDaemon daemon;
  RawSocket socket(daemon.port("tcp"), 2048);
  std::string bytes, batches;
  wire::AppendPreamble(bytes);
  wire::AppendOpen(bytes, 1, wire::WireType::kFloat64, "s");
  for (int i = 0; i < 1000; ++i) wire::AppendBatch(batches, 1, 0, wire::WireType::kDefault, {});
  pollfd room{socket.fd(), POLLOUT, 0};
  do {  // until nobody takes anything
    if (bytes.empty()) bytes = batches;
    bytes.erase(0, socket.SendSome(bytes));
  } while (poll(&room, 1, 300) == 1);
  daemon.process().Signal(SIGTERM);
  EXPECT_TRUE(WaitUntil([&] { return !std::filesystem::exists(daemon.ports_file()); }));
  daemon.Stop(128 + SIGTERM);
}

// Certificates and tokens are to be replaced whatever the disk does.
TEST(Operations, AReloadDoesNotAskTheDataFolder) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("t.toml", "");
  std::filesystem::create_directory(folder / "data");
  TestDaemon daemon({"--config", path, "--data-dir", folder / "data"});
  std::filesystem::remove_all(folder / "data");
  folder.Write("t.toml", "[streams]\nquantile_epsilon = 0.03\n");
  EXPECT_EQ(Http(daemon.port("http"), "/-/reload", "POST").code, 200);
  EXPECT_EQ(daemon.client().CreateStream("s").config.quantile_epsilon, 0.03);
}

// Producers that never stop by themselves, and a SIGTERM in the middle of it.
TEST(Operations, ShutdownCountsEveryAcknowledgedValueOfFramedTcp) {
  TestDaemon daemon;
  const std::vector<double> values(4096, 2.5);
  constexpr std::size_t kProducers = 3;
  constexpr std::uint64_t kAcknowledged = 12 * 4096;  // of each, before the daemon is told to stop
  std::vector<Sent> sent(kProducers);
  std::vector<std::thread> threads;
  std::atomic<int> busy{0};
  for (std::size_t p = 0; p < kProducers; ++p) {
    threads.emplace_back([&, p] {
      const auto producer = daemon.Producer();
      const auto stream = producer->Open(Numbered("s", p));
      bool counted = false;
      while (producer->SendBatch(*stream, values).ok()) {
        if (counted || producer->accepted() < kAcknowledged) continue;
        counted = true;
        ++busy;
      }
      EXPECT_FALSE(producer->Flush().ok());
      sent[p].acknowledged = producer->accepted();
    });
  }
  EXPECT_TRUE(WaitUntil([&] { return busy == kProducers; }));
  daemon.Stop();
  for (std::thread& thread : threads) thread.join();
  std::uint64_t acknowledged = 0;
  for (const Sent& one : sent) acknowledged += one.acknowledged;
  EXPECT_GE(acknowledged, kProducers * kAcknowledged);
  EXPECT_EQ(StoppedValues(daemon), acknowledged);
}

TEST(Operations, ShutdownCountsEveryAcknowledgedValueOfGrpc) {
  TestDaemon daemon({"--shutdown-deadline-s", "4"});
  constexpr std::size_t kProducers = 2;
  constexpr std::size_t kBatch = 4096;
  std::vector<Sent> sent(kProducers);
  std::vector<std::thread> threads;
  std::atomic<int> busy{0};
  for (std::size_t p = 0; p < kProducers; ++p) {
    threads.emplace_back([&, p] {
      const std::vector<double> values(kBatch, 2.5);
      client::AcknowledgedPusher pusher = daemon.client().PushAcknowledged(
          Numbered("s", p),
          {.on_acknowledgement = [&, p](const client::Acknowledgement& acknowledgement) {
            sent[p].acknowledged += acknowledgement.accepted;
          }});
      try {
        while (true) {
          sent[p].sent += kBatch;
          pusher.Write(values);
          if (sent[p].sent == 50 * kBatch) ++busy;
        }
      } catch (const client::Error& error) {
        EXPECT_TRUE(error.code() == client::Code::kUnavailable ||
                    error.code() == client::Code::kCancelled)
            << error.what();
      }
    });
  }
  EXPECT_TRUE(WaitUntil([&] { return busy == kProducers; }));
  daemon.Stop();
  for (std::thread& thread : threads) thread.join();
  std::uint64_t acknowledged = 0, all = 0;
  for (const Sent& one : sent) {
    acknowledged += one.acknowledged;
    all += one.sent;
  }
  const std::uint64_t counted = StoppedValues(daemon);
  EXPECT_GE(acknowledged, kProducers * kBatch);
  EXPECT_GE(counted, acknowledged) << "an acknowledged value was not counted";
  EXPECT_LE(counted, all);
}

}  // namespace
}  // namespace tidemark::test
