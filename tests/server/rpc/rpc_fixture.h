// The services of server/rpc on a free port of this process, and ways to hold up what is behind
// them.
#ifndef TIDEMARK_TESTS_SERVER_RPC_RPC_FIXTURE_H_
#define TIDEMARK_TESTS_SERVER_RPC_RPC_FIXTURE_H_

#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "server/access/guard.h"
#include "server/rpc/executor.h"
#include "server/rpc/ingest_service.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/query_service.h"
#include "server/rpc/stream_service.h"
#include "server/rpc/subscription_service.h"
#include "tests/server/rpc/in_process_server.h"
#include "tests/support/pipeline_fixture.h"

namespace tidemark::server {

/// Closed until Open; whoever waits goes on then.
class Barrier {
 public:
  void Wait() const { opened_.wait(); }
  void Open() {
    if (!std::exchange(open_, true)) open_promise_.set_value();
  }

 private:
  bool open_ = false;
  std::promise<void> open_promise_;
  const std::shared_future<void> opened_ = open_promise_.get_future().share();
};

/// Sorts once its barrier is open: until then every full window is under way.
class HeldSorter final : public sort::WindowSorter {
 public:
  explicit HeldSorter(const Barrier& barrier) : barrier_(barrier) {}
  std::string_view name() const override { return "held"; }
  std::string_view Sort(sort::Channels<std::uint32_t> channels) override {
    return SortAll(channels);
  }
  std::string_view Sort(sort::Channels<std::uint64_t> channels) override {
    return SortAll(channels);
  }

  static sort::SorterSelection Selection(const Barrier& barrier) {
    sort::SorterSelection selection;
    selection.sorter = std::make_unique<HeldSorter>(barrier);
    selection.report.requested = selection.report.active = "held";
    return selection;
  }

 private:
  template <class Key>
  std::string_view SortAll(sort::Channels<Key> channels) {
    barrier_.Wait();
    for (const auto& channel : channels) std::sort(channel.begin(), channel.end());
    return name();
  }
  const Barrier& barrier_;
};

struct RpcOptions {
  PipelineOptions pipeline;
  IngestLimits ingest;
  int query_threads = 1;
  std::size_t query_queue_max = 1;
  std::uint64_t subscriptions_max = 10;
  bool hold_sorter = false;
  std::shared_ptr<const Policy> rules = nullptr;
  /// Of this machine, which is one peer; none: no limits.
  std::optional<PeerLimits> peers = std::nullopt;
  /// Of continuous answers.
  std::function<std::int64_t()> clock = [] { return std::int64_t{0}; };
};

/// One client connection to a server of its own. Times are 0.
struct RpcServer {
  explicit RpcServer(const RpcOptions& options = {})
      : behind(options.pipeline, options.hold_sorter ? HeldSorter::Selection(sorter_barrier)
                                                     : TestPipeline::CpuSorter()),
        engine(behind.pipeline),
        executor(options.query_threads, options.query_queue_max, behind.metrics),
        ingest(
            behind.pipeline, behind.metrics, options.ingest, [] { return RecordedTime{0}; },
            options.peers ? &guard : nullptr),
        calls(executor, behind.metrics, &guard),
        streams(behind.pipeline, calls),
        queries(engine, behind.pipeline, calls, executor, behind.metrics, options.subscriptions_max,
                options.clock),
        subscriptions(engine, behind.pipeline, calls),
        info(
            behind.pipeline, [](v1::GetInfoResponse&) {}, &guard) {
    guard.Set(options.rules);
    if (options.peers) {
      PeerLimits limits = *options.peers;
      limits.loopback_is_one_peer = true;
      peers.emplace(limits, behind.metrics);
      guard.HoldTo(&*peers);
    }
    google::protobuf::SetLogHandler(nullptr);  // as the daemon does
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.SetMaxReceiveMessageSize(16 << 20);
    builder.RegisterService(&ingest);
    builder.RegisterService(&streams);
    builder.RegisterService(&queries);
    builder.RegisterService(&subscriptions);
    builder.RegisterService(&info);
    server = builder.BuildAndStart();
    channel = grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                  grpc::InsecureChannelCredentials());
  }
  ~RpcServer() {
    sorter_barrier.Open();
    query_barrier.Open();
    server->Shutdown(std::chrono::system_clock::now());
    executor.Stop();
  }

  Metrics& metrics() { return behind.metrics; }
  double QueryErrors(std::string_view method, std::string_view code) {
    return metrics().QueryErrors(method, code).Value();
  }
  std::uint64_t QueriesTimed(std::string_view method) {
    return metrics().QuerySeconds(method).Collect().histogram.sample_count;
  }
  double Refused(std::string_view reason) {
    return metrics().Refused(Source::kGrpc, reason).Value();
  }

  /// Keeps every query thread busy until query_barrier opens. REQUIRES: one query thread.
  void HoldQueries() {
    std::promise<void> begun;
    while (!executor.Post([&] {
      begun.set_value();
      query_barrier.Wait();
    })) {
    }
    begun.get_future().wait();
  }

  Barrier sorter_barrier;
  Barrier query_barrier;
  TestPipeline behind;
  std::optional<PeerTable> peers;
  Guard guard{behind.metrics,
              [] { return std::int64_t{0}; }};  // of pushes only with limits of peers
  QueryEngine engine;
  Executor executor;
  IngestServiceImpl ingest;
  PostedCalls calls;
  StreamServiceImpl streams;
  QueryServiceImpl queries;
  SubscriptionServiceImpl subscriptions;
  InfoServiceImpl info;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
  std::shared_ptr<grpc::Channel> channel;
};

/// The delay of the google.rpc.RetryInfo in a status's details, read field by field as
/// google/rpc/status.proto and error_details.proto number them; nullopt if there is none.
inline std::optional<std::uint64_t> RetrySeconds(const grpc::Status& status) {
  using google::protobuf::UnknownField;
  using google::protobuf::UnknownFieldSet;
  const auto text = [](const std::string& bytes, int number) {
    UnknownFieldSet fields;
    if (!fields.ParseFromString(bytes)) return std::string();
    for (int i = 0; i < fields.field_count(); ++i) {
      const UnknownField& field = fields.field(i);
      if (field.number() == number && field.type() == UnknownField::TYPE_LENGTH_DELIMITED) {
        return field.length_delimited();
      }
    }
    return std::string();
  };
  const std::string any = text(status.error_details(), 3);  // Status.details
  if (text(any, 1) != "type.googleapis.com/google.rpc.RetryInfo") return std::nullopt;
  const std::string duration = text(text(any, 2), 1);  // RetryInfo.retry_delay
  UnknownFieldSet fields;
  if (!fields.ParseFromString(duration) || fields.field_count() == 0) return std::nullopt;
  return fields.field(0).varint();  // Duration.seconds
}

}  // namespace tidemark::server

#endif  // TIDEMARK_TESTS_SERVER_RPC_RPC_FIXTURE_H_
