// What a daemon with a log has after it was killed: everything that it acknowledged, in the order
// in which it came, and the same bytes at every start.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "client/retrying_tcp_producer.h"
#include "tests/e2e/test_daemon.h"
#include "tests/summaries/cases.h"
#include "tidemark/v1/ingest.grpc.pb.h"

namespace tidemark::test {
namespace {

constexpr std::uint32_t kSeed = 20'261'122;
constexpr std::size_t kProducers = 3;
constexpr std::size_t kBatchValues = 50;

class DurabilityTest : public testing::Test {
 protected:
  std::vector<std::string> Flags(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> flags = {"--data-dir", data_.path(),          "--durability",
                                      "log",        "--log-segment-bytes", "1048576"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  std::string LastSegment() const {
    std::string last;
    for (const auto& file : std::filesystem::directory_iterator(data_ / "store")) {
      last = std::max(last, file.path().string());
    }
    return last;
  }

  TemporaryFolder data_;
};

// Sends batches of whole numbers, counting up from `next`, until the connection breaks. What was
// not acknowledged is not sent again.
class Load {
 public:
  Load(const TestDaemon& daemon, std::string stream, std::uint64_t next)
      : sent_(next), producer_(daemon.Producer({.window_batches = 64})), thread_([this, stream] {
          const auto opened = producer_->Open(stream, wire::WireType::kUint64);
          ASSERT_TRUE(opened.ok()) << opened.status();
          std::vector<std::uint64_t> values(kBatchValues);
          while (true) {
            std::iota(values.begin(), values.end(), sent_);
            sent_ += kBatchValues;
            const auto id = producer_->SendBatch(*opened, std::as_bytes(std::span(values)));
            acknowledged_ = producer_->accepted();
            if (!id.ok()) return;
          }
        }) {}
  ~Load() { Join(); }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  std::uint64_t acknowledged() const { return acknowledged_; }
  /// One more than the last number. After Join.
  std::uint64_t sent() const { return sent_; }
  const std::vector<client::BatchError>& errors() const { return producer_->errors(); }

 private:
  std::uint64_t sent_;
  std::unique_ptr<client::TcpProducer> producer_;
  std::atomic<std::uint64_t> acknowledged_{0};
  std::thread thread_;
};

TEST_F(DurabilityTest, KilledUnderLoadItHasWhatItAcknowledged) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  std::vector<std::uint64_t> held(kProducers);
  const int rounds = Cases(6, 200);
  for (int round = 0; round <= rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    TestDaemon daemon(Flags({"--sync-interval-us", random() % 2 == 0 ? "0" : "5000"}));
    std::vector<std::unique_ptr<Load>> loads;
    for (std::size_t i = 0; i < kProducers; ++i) {
      const std::string stream = Numbered("s", i);
      if (round > 0) {
        // A prefix of what was sent, 0, 1, 2, ...: every rank is that of its number.
        const std::vector<client::Value> numbers{client::Value{held[i] / 3},
                                                 client::Value{held[i] - 1}};
        for (const client::RankAnswer& rank : daemon.client().Ranks(stream, numbers).answers) {
          const std::uint64_t expected = 1 + std::get<std::uint64_t>(rank.value.kind);
          EXPECT_LE(rank.rank_low, expected);
          EXPECT_GE(rank.rank_high, expected);
        }
      }
      loads.push_back(std::make_unique<Load>(daemon, stream, held[i]));
    }
    const std::uint64_t enough = 1 + random() % 40'000;
    EXPECT_TRUE(WaitUntil([&] {
      return std::all_of(loads.begin(), loads.end(),
                         [&](const auto& load) { return load->acknowledged() >= enough; });
    }));
    daemon.Kill();
    for (const auto& load : loads) load->Join();

    TestDaemon again(Flags());
    std::vector<std::string> exported;
    for (std::size_t i = 0; i < kProducers; ++i) {
      const std::string stream = Numbered("s", i);
      const std::uint64_t n = again.client().DescribeStream(stream).count;
      EXPECT_TRUE(loads[i]->errors().empty());
      EXPECT_GE(n, held[i] + loads[i]->acknowledged()) << "acknowledged and lost";
      EXPECT_LE(n, loads[i]->sent()) << "more than was ever sent";
      held[i] = n;
      exported.push_back(again.client().ExportStream(stream));
    }
    again.Kill();
    TestDaemon same(Flags());
    for (std::size_t i = 0; i < kProducers; ++i) {
      EXPECT_EQ(same.client().ExportStream(Numbered("s", i)), exported[i]);
    }
    if (HasFailure()) return;
  }
}

TEST_F(DurabilityTest, StreamsAndPushesAreThereAfterAnyEnd) {
  for (const bool killed : {true, false}) {
    TestDaemon daemon(Flags());
    client::StreamConfig config;
    config.type = client::ValueType::kString;
    const std::string suffix = killed ? "killed" : "stopped";
    daemon.client().CreateStream("created " + suffix, config);
    daemon.client().CreateStream("deleted " + suffix, config);
    daemon.client().DeleteStream("deleted " + suffix);
    client::Pusher pusher = daemon.client().Push("pushed " + suffix);
    pusher.Write(std::vector<double>(1000, 2.5));
    EXPECT_EQ(pusher.Finish().accepted, 1000u);
    if (killed) {
      daemon.Kill();
    } else {
      daemon.Stop();
    }
    TestDaemon again(Flags());
    EXPECT_EQ(again.client().DescribeStream("pushed " + suffix).count, 1000u);
    EXPECT_EQ(again.client().DescribeStream("created " + suffix).config.type,
              client::ValueType::kString);
    EXPECT_EQ(CodeOf([&] { again.client().DescribeStream("deleted " + suffix); }),
              client::Code::kNotFound);
  }
}

TEST_F(DurabilityTest, ImportsAndMergesAreThereAfterAKill) {
  for (const std::string mode : {"log", "snapshot"}) {
    SCOPED_TRACE(mode);
    const TemporaryFolder data;
    const std::vector<std::string> flags{"--data-dir", data.path(), "--durability", mode};
    const std::string file = data / "a.tidemark";
    const std::vector<std::string> made{"imported", "merged", "long"};
    std::vector<std::string> exported;
    {
      TestDaemon daemon(flags);
      client::Pusher numbers = daemon.client().Push("a");
      numbers.Write(std::vector<double>(10'000, 2.5));
      EXPECT_EQ(numbers.Finish().accepted, 10'000u);
      // Its summaries are more than a megabyte: several records.
      client::StreamConfig fine;
      fine.type = client::ValueType::kFloat64;
      fine.quantile_epsilon = 1e-6;
      daemon.client().CreateStream("fine", fine);
      std::vector<double> values(300'000);
      std::iota(values.begin(), values.end(), 0.25);
      client::Pusher many = daemon.client().Push("fine");
      many.Write(values);
      EXPECT_EQ(many.Finish().accepted, values.size());
      EXPECT_EQ(RunTidemark(daemon, {"export", "a", file}).status, 0);
      EXPECT_EQ(RunTidemark(daemon, {"import", made[0], file, file}).status, 0);
      EXPECT_EQ(RunTidemark(daemon, {"merge", made[1], "a", made[0]}).status, 0);
      EXPECT_EQ(RunTidemark(daemon, {"merge", made[2], "fine"}).status, 0);
      for (const std::string& name : made) {
        exported.push_back(daemon.client().ExportStream(name));
        EXPECT_EQ(CodeOf([&] { daemon.client().ImportStream(name, {exported[0]}); }),
                  client::Code::kAlreadyExists);
      }
      EXPECT_GT(exported[2].size(), std::size_t{2} << 20);
      if (mode == "log") {
        daemon.Kill();
      } else {
        daemon.Stop();
      }
    }
    TestDaemon again(flags);
    for (std::size_t i = 0; i < made.size(); ++i) {
      EXPECT_EQ(again.client().ExportStream(made[i]), exported[i]) << made[i];
    }
    EXPECT_EQ(again.client().DescribeStream("imported").count, 20'000u);
    EXPECT_EQ(again.client().DescribeStream("merged").count, 30'000u);
    // It goes on.
    client::Pusher more = again.client().Push("merged");
    more.Write(std::vector<double>(5, 3.5));
    EXPECT_EQ(more.Finish().accepted, 5u);
    EXPECT_EQ(again.client().DescribeStream("merged").count, 30'005u);
  }
}

TEST_F(DurabilityTest, SubscriptionsAreThereAfterAKill) {
  const auto names = [](TestDaemon& daemon) {
    std::string all;
    for (const client::Subscription& one : daemon.client().ListSubscriptions()) {
      all += one.name + " of " + one.query.stream + "; ";
    }
    return all;
  };
  for (const std::string mode : {"log", "snapshot"}) {
    SCOPED_TRACE(mode);
    const TemporaryFolder data;
    const std::vector<std::string> flags{"--data-dir", data.path(), "--durability", mode};
    {
      TestDaemon daemon(flags);
      for (const char* stream : {"a", "b"}) {
        client::Pusher pusher = daemon.client().Push(stream);
        pusher.Write(std::vector<double>(1000, 2.5));
        EXPECT_EQ(pusher.Finish().accepted, 1000u);
      }
      const auto run = [&](const std::vector<std::string>& arguments) {
        return RunTidemark(daemon, arguments).status;
      };
      EXPECT_EQ(run({"subscribe", "median", "a", "--quantile", "0.5", "--every", "20ms"}), 0);
      EXPECT_EQ(run({"subscribe", "often", "a", "--top", "0.1", "--min-change", "0.01"}), 0);
      EXPECT_EQ(run({"subscribe", "deleted", "a", "--top", "0.1"}), 0);
      EXPECT_EQ(run({"subscribe", "with its stream", "b", "--quantile", "0.5"}), 0);
      EXPECT_EQ(run({"subscribe", "refused", "c", "--quantile", "0.5"}), 1);
      EXPECT_EQ(run({"unsubscribe", "deleted"}), 0);
      EXPECT_EQ(run({"delete", "b"}), 0);
      EXPECT_EQ(names(daemon), "median of a; often of a; ");
      if (mode == "log") {
        daemon.Kill();
      } else {
        daemon.Stop();
      }
    }
    TestDaemon again(flags);
    EXPECT_EQ(names(again), "median of a; often of a; ");
    client::Watch watch = again.client().WatchSubscription("median");
    for (int i = 0; i < 3; ++i) {
      const auto answer = watch.Next();
      ASSERT_TRUE(answer.has_value());
      EXPECT_EQ(std::get<client::QuantilesAnswer>(answer->answer).n, 1000u);
    }
    const Completed listed = RunTidemark(again, {"subscriptions", "--json"});
    const nlohmann::json json = nlohmann::json::parse(listed.out).at("subscriptions");
    EXPECT_EQ(json.at(0).at("interval_us"), 20'000);
    EXPECT_EQ(json.at(1).at("min_change"), 0.01);
    EXPECT_EQ(RunTidemark(again, {"watch", "a", "--subscription", "median"}).status, 2);
    const Completed gone = RunTidemark(again, {"watch", "--subscription", "deleted"});
    EXPECT_EQ(gone.status, 1);
    EXPECT_NE(gone.err.find("there is no subscription \"deleted\""), std::string::npos) << gone.err;
    EXPECT_EQ(again.Metric("tidemark_named_subscriptions"), 2);
  }
}

TEST_F(DurabilityTest, AcknowledgedOverGrpcIsThereAfterAKill) {
  constexpr std::uint64_t kBatches = 1000;  // several times what may wait for its acknowledgement
  std::uint64_t acknowledged = 0;
  {
    TestDaemon daemon(Flags());
    const auto stub = v1::IngestService::NewStub(
        grpc::CreateChannel(daemon.address("grpc"), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    const auto call = stub->PushAcknowledged(&context);
    std::thread writer([&] {
      v1::PushAcknowledgedRequest request;
      request.mutable_batch()->set_stream("g");
      request.mutable_batch()->mutable_float64()->add_values(1.5);
      for (std::uint64_t id = 1; id <= kBatches; ++id) {
        request.set_batch_id(id);
        if (!call->Write(request)) return;
      }
    });
    v1::PushAcknowledgedResponse response;
    while (acknowledged < kBatches && call->Read(&response)) {
      EXPECT_EQ(response.batch_id(), ++acknowledged);
      EXPECT_EQ(response.code(), 0) << response.message();
    }
    writer.join();
    daemon.Kill();
    context.TryCancel();
    call->Finish();
  }
  EXPECT_EQ(acknowledged, kBatches);
  TestDaemon again(Flags());
  EXPECT_EQ(again.client().DescribeStream("g").count, kBatches);
}

// Sends whole numbers, each once, whatever happens to the daemon, until it is told to end.
class RetryingLoad {
 public:
  virtual ~RetryingLoad() = default;
  /// Sends batches until `ends` is true, and returns when all are acknowledged: how many numbers.
  virtual std::uint64_t Run(const std::atomic<bool>& ends) = 0;
  std::uint64_t acknowledged() const { return acknowledged_; }

 protected:
  std::atomic<std::uint64_t> acknowledged_{0};
};

class RetryingTcpLoad final : public RetryingLoad {
 public:
  RetryingTcpLoad(std::uint16_t port, std::string stream)
      : producer_("127.0.0.1", port), stream_(std::move(stream)) {}
  std::uint64_t Run(const std::atomic<bool>& ends) override {
    const auto opened = producer_.Open(stream_, wire::WireType::kUint64);
    EXPECT_TRUE(opened.ok()) << opened.status();
    std::vector<std::uint64_t> values(kBatchValues);
    std::uint64_t sent = 0;
    while (opened.ok() && !ends) {
      std::iota(values.begin(), values.end(), sent);
      const absl::Status status = producer_.Send(*opened, std::as_bytes(std::span(values)));
      EXPECT_TRUE(status.ok()) << status;
      if (!status.ok()) break;
      sent += kBatchValues;
      acknowledged_ = producer_.accepted();
    }
    const absl::Status status = producer_.Flush();
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(producer_.errors().empty());
    EXPECT_EQ(producer_.accepted(), sent);
    return sent;
  }

 private:
  client::RetryingTcpProducer producer_;
  const std::string stream_;
};

class RetryingGrpcLoad final : public RetryingLoad {
 public:
  RetryingGrpcLoad(std::string server, std::string stream)
      : client_({.server = std::move(server)}), stream_(std::move(stream)) {}
  std::uint64_t Run(const std::atomic<bool>& ends) override {
    client::AcknowledgedPushOptions options;
    options.retry_for = kPatience;
    options.on_acknowledgement = [this](const client::Acknowledgement& answer) {
      EXPECT_EQ(answer.code, client::Code::kOk) << answer.message;
      acknowledged_ += answer.accepted;
    };
    client::AcknowledgedPusher pusher = client_.PushAcknowledged(stream_, options);
    std::vector<std::uint64_t> values(kBatchValues);
    std::uint64_t sent = 0;
    while (!ends) {
      std::iota(values.begin(), values.end(), sent);
      pusher.Write(values);
      sent += kBatchValues;
    }
    EXPECT_EQ(pusher.Finish().accepted, sent);
    return sent;
  }

 private:
  client::Client client_;
  const std::string stream_;
};

TEST_F(DurabilityTest, KilledUnderRetryingProducersItCountsEachValueOnce) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  // Ports that stay the same, so that producers find the daemon again.
  const std::uint16_t grpc_port = LastingPort();
  const std::uint16_t tcp_port = LastingPort();
  const std::string grpc_address = "127.0.0.1:" + std::to_string(grpc_port);
  const std::vector<std::string> flags =
      Flags({"--grpc", grpc_address, "--tcp", "127.0.0.1:" + std::to_string(tcp_port),
             "--sync-interval-us", "1000"});
  auto daemon = std::make_unique<TestDaemon>(flags);
  std::vector<std::unique_ptr<RetryingLoad>> loads;
  for (std::size_t i = 0; i < kProducers; ++i) {
    loads.push_back(std::make_unique<RetryingTcpLoad>(tcp_port, Numbered("tcp", i)));
    loads.push_back(std::make_unique<RetryingGrpcLoad>(grpc_address, Numbered("grpc", i)));
  }
  std::atomic<bool> ends{false};
  std::vector<std::uint64_t> sent(loads.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    threads.emplace_back([&, i] { sent[i] = loads[i]->Run(ends); });
  }
  const int rounds = Cases(8, 1'000);
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    std::vector<std::uint64_t> enough;
    for (const auto& load : loads) enough.push_back(load->acknowledged() + 1 + random() % 3'000);
    EXPECT_TRUE(WaitUntil([&] {
      for (std::size_t i = 0; i < loads.size(); ++i) {
        if (loads[i]->acknowledged() < enough[i]) return false;
      }
      return true;
    })) << "round "
        << round;
    daemon->Kill();
    daemon = std::make_unique<TestDaemon>(flags);
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();
  const auto check = [&] {
    // gRPC shares connections to one address: this one may be to a daemon that was killed.
    EXPECT_TRUE(WaitUntil(
        [&] { return CodeOf([&] { daemon->client().ListStreams(); }) == client::Code::kOk; }));
    for (std::size_t i = 0; i < loads.size(); ++i) {
      const std::string stream = Numbered(i % 2 == 0 ? "tcp" : "grpc", i / 2);
      EXPECT_EQ(daemon->client().DescribeStream(stream).count, sent[i]) << stream;
      // 0, 1, 2, ..., each once: every rank is that of its number.
      for (const std::uint64_t number : {sent[i] / 3, sent[i] / 2, sent[i] - 1}) {
        const client::RankAnswer rank =
            daemon->client().Ranks(stream, {client::Value{number}}).answers.at(0);
        EXPECT_LE(rank.rank_low, number + 1);
        EXPECT_GE(rank.rank_high, number + 1);
      }
    }
  };
  check();
  daemon->Kill();
  daemon = std::make_unique<TestDaemon>(flags);
  check();
}

TEST_F(DurabilityTest, SnapshotsCutTheLogAndLoseNothing) {
  const std::vector<std::string> flags = Flags({"--snapshot-interval-s", "1"});
  const std::string first_segment = data_ / "store/log-00000000000000000001";
  std::uint64_t acknowledged = 0;
  std::uint64_t sent = 0;
  {
    TestDaemon daemon(flags);
    Load load(daemon, "s", 0);
    EXPECT_TRUE(WaitUntil([&] { return std::filesystem::exists(first_segment); }));
    // Two snapshots stay, and the log behind the older one.
    EXPECT_TRUE(WaitUntil([&] {
      return daemon.Metric("tidemark_snapshots_total{result=\"ok\"}") >= 3 &&
             !std::filesystem::exists(first_segment);
    }));
    EXPECT_GT(daemon.Metric("tidemark_log_syncs_total"), 0);
    EXPECT_EQ(daemon.Metric("tidemark_log_failures_total"), 0);
    daemon.Kill();
    load.Join();
    acknowledged = load.acknowledged();
    sent = load.sent();
  }
  std::string exported;
  const auto check = [&] {
    TestDaemon again(flags);
    const std::uint64_t n = again.client().DescribeStream("s").count;
    EXPECT_GE(n, acknowledged);
    EXPECT_LE(n, sent);
    const std::string bytes = again.client().ExportStream("s");
    if (exported.empty()) exported = bytes;
    EXPECT_EQ(bytes, exported);
    const auto log = again.Log();
    const auto loaded = std::find_if(log.begin(), log.end(), [](const nlohmann::json& line) {
      return line["message"] == "streams loaded";
    });
    EXPECT_NE(loaded, log.end());
    again.Kill();
    return loaded == log.end() ? 0 : (*loaded)["snapshot"].get<std::uint64_t>();
  };
  const std::uint64_t newest = check();
  EXPECT_GE(newest, 3u);
  EXPECT_EQ(check(), newest);
  // Damaged: the one before it, and the log behind that.
  std::string path;
  for (const auto& file : std::filesystem::directory_iterator(data_ / "store")) {
    const std::string name = file.path().string();
    if (name.find("/snapshot-") != std::string::npos) path = std::max(path, name);
  }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(200);
  file.put('\x5a');
  file.close();
  EXPECT_EQ(check(), newest - 1);
}

TEST_F(DurabilityTest, SnapshotsAloneSurviveAStop) {
  const auto flags = [&](const std::string& mode) {
    return std::vector<std::string>{"--data-dir", data_.path(), "--durability", mode};
  };
  std::string exported;
  {
    TestDaemon daemon(flags("snapshot"));
    client::Pusher pusher = daemon.client().Push("s");
    pusher.Write(std::vector<double>(1000, 2.5));
    EXPECT_EQ(pusher.Finish().accepted, 1000u);
    exported = daemon.client().ExportStream("s");
    daemon.Stop();
  }
  {
    TestDaemon daemon(flags("snapshot"));
    EXPECT_EQ(daemon.client().ExportStream("s"), exported);
    daemon.Stop();
  }
  // On to a log, from which there is no way back but by an empty folder.
  for (int start = 0; start < 2; ++start) {
    TestDaemon daemon(flags("log"));
    EXPECT_EQ(daemon.client().DescribeStream("s").count, 1000u + static_cast<unsigned>(start));
    client::Pusher pusher = daemon.client().Push("s");
    pusher.Write(std::vector<double>{1});
    EXPECT_EQ(pusher.Finish().accepted, 1u);
    daemon.Kill();
  }
  const Completed back =
      RunProgram({.program = TIDEMARKD_PROGRAM, .arguments = DaemonFlags(flags("snapshot"))});
  EXPECT_EQ(back.status, 1);
  EXPECT_NE(back.err.find("holds a log"), std::string::npos) << back.err;
}

// Who stops a daemon is told that a restart would not have what was there.
TEST_F(DurabilityTest, AnEndWithoutItsSnapshotIsNoGoodEnd) {
  TestDaemon daemon({"--data-dir", data_.path(), "--durability", "snapshot"});
  std::filesystem::remove_all(data_ / "store");
  daemon.Stop(1);
  EXPECT_NE(daemon.process().err().find("no snapshot"), std::string::npos);
}

TEST_F(DurabilityTest, TwoDaemonsDoNotShareAFolder) {
  TestDaemon daemon(Flags());
  const Completed second =
      RunProgram({.program = TIDEMARKD_PROGRAM, .arguments = DaemonFlags(Flags())});
  EXPECT_EQ(second.status, 1);
  EXPECT_NE(second.err.find("in use by another process"), std::string::npos) << second.err;
}

TEST_F(DurabilityTest, DamageEndsTheStartAndIsNamed) {
  {
    TestDaemon daemon(Flags());
    for (int i = 0; i < 3; ++i) {
      client::Pusher pusher = daemon.client().Push("a");
      pusher.Write(std::vector<double>(100, 1.0));
      EXPECT_EQ(pusher.Finish().accepted, 100u);
    }
  }
  const std::string segment = LastSegment();
  std::fstream file(segment, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(300);
  file.put('\x5a');
  file.close();
  const Completed start =
      RunProgram({.program = TIDEMARKD_PROGRAM, .arguments = DaemonFlags(Flags())});
  EXPECT_EQ(start.status, 1);
  EXPECT_NE(start.err.find(segment), std::string::npos) << start.err;
}

}  // namespace
}  // namespace tidemark::test
