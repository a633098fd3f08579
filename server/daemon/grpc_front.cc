#include "server/daemon/grpc_front.h"

#include <google/protobuf/stubs/logging.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <algorithm>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include "server/daemon/grpc_acceptor.h"
#include "server/daemon/grpc_credentials.h"
#include "server/daemon/grpc_log.h"
#include "server/daemon/peer_limits.h"
#include "server/ingest/io_threads.h"
#include "server/rpc/executor.h"
#include "server/rpc/ingest_service.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/query_service.h"
#include "server/rpc/stream_service.h"
#include "server/rpc/subscription_service.h"
#include "server/rpc/summary_service.h"
#include "server/telemetry/log.h"
#include "server/window/concat.h"

namespace tidemark::server {
namespace {

// A message that gRPC itself finds too large ends its call before the services see it, so that it
// is counted nowhere: gRPC's limit lies well above theirs. It bounds what one call can make the
// daemon hold.
std::uint64_t ReceiveBytesMax(const Config& config) {
  return std::max(4 * config.limits.max_batch_bytes + IngestServiceImpl::kMessageOverheadBytes,
                  std::uint64_t{2 * kRequestBytesMax});
}
// A query of a busy stream spends most of its time waiting for windows under way, which costs no
// processor: with one thread a core, 500 such queries a second wait for one another.
constexpr unsigned kQueryThreadsMin = 16;
// Queries that wait for an executor thread; each holds its request, at most kRequestBytesMax.
constexpr std::size_t kQueryQueueMax = 1024;
// A client may ping this often without being sent away; long subscriptions need it (the library's
// default is five minutes).
constexpr int kClientPingMs = 10'000;
// A dead peer of a long subscription is found out after this and kPingTimeoutMs.
constexpr int kServerPingMs = 60'000;
constexpr int kPingTimeoutMs = 20'000;
constexpr int kThreadsMax = 32;  // of calls that block one
// Of all headers of a call; a token has some hundred bytes.
constexpr int kMetadataBytesMax = 8 << 10;
// Calls that one connection may have under way, whatever its peer may: beyond, a client waits by
// itself and is told nothing, so that fewer would hang a program with many subscriptions.
constexpr std::uint64_t kStreamsMin = 1000;
// At shutdown: how often open calls are counted, and the time for the last answers to leave.
constexpr std::chrono::milliseconds kCallsPoll{5};
constexpr std::chrono::milliseconds kLastWrites{200};

RecordedTime SteadyNow() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

GrpcAcceptorOptions AcceptorOptionsOf(const Config& config, const Guard& guard, bool tls) {
  return {.host = config.listen.grpc->host,
          .port = config.listen.grpc->port,
          .connections_max = config.limits.max_connections,
          .guard = &guard,
          .unacknowledged_max = std::chrono::milliseconds(kPingTimeoutMs),
          .opening = tls ? Opening::kTls : Opening::kHttp2,
          .opening_timeout = std::chrono::seconds(config.tls.handshake_timeout_s),
          .handed_over_per_second =
              tls ? static_cast<std::uint32_t>(config.tls.grpc_handshakes_per_s) : 0};
}

void LogAcceptor(IngestLogLevel /*level*/, std::string_view message) {
  Log(LogLevel::kWarn, "gRPC", {{"detail", message}});
}

int MillisOf(std::uint64_t seconds) {
  return static_cast<int>(std::min<std::uint64_t>(seconds * 1000, std::numeric_limits<int>::max()));
}

// gRPC reads a message whole before a service sees the call, and so before it is known who calls:
// what connections and calls may hold there is bounded as a whole. No age of connections: those
// with calls would only be told to make another.
void LimitMemory(grpc::ServerBuilder& builder, const Config::Limits& limits) {
  grpc::ResourceQuota quota("tidemark");
  // Reflection is gRPC's own, asks nobody who calls, and takes a thread for each call.
  quota.SetMaxThreads(kThreadsMax);
  if (limits.max_grpc_bytes > 0) quota.Resize(limits.max_grpc_bytes);
  builder.SetResourceQuota(quota);  // which keeps it
  const std::uint64_t calls = std::max(kStreamsMin, PeerLimitsOf(limits).calls);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, static_cast<int>(calls));
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMetadataBytesMax);
  // gRPC would inflate a message whole before its limits, and before a service sees the call: a
  // thousand times its size, of anybody. Compressed messages are refused (UNIMPLEMENTED).
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  if (limits.idle_timeout_s > 0) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, MillisOf(limits.idle_timeout_s));
  }
}

}  // namespace

struct GrpcFront::Parts {
  Parts(const Config& config_in, Pipeline& pipeline, Metrics& metrics_in, const Guard& guard,
        const TlsHolder* tls_in, std::function<std::int64_t()> clock,
        std::function<void(v1::GetInfoResponse&)> fill_info)
      : config(config_in),
        metrics(metrics_in),
        tls(tls_in),
        engine(pipeline),
        executor(
            static_cast<int>(std::max(kQueryThreadsMin, 2 * std::thread::hardware_concurrency())),
            kQueryQueueMax, metrics),
        ingest(pipeline, metrics,
               {.calls_max = config_in.limits.max_connections,
                .batch_bytes_max = config_in.limits.max_batch_bytes},
               clock, &guard),
        streams(pipeline, calls),
        calls(executor, metrics, &guard),
        queries(engine, pipeline, calls, executor, metrics, config_in.limits.max_subscriptions,
                clock),
        summaries(engine, pipeline, calls),
        subscriptions(engine, pipeline, calls),
        info(pipeline, std::move(fill_info), &guard),
        acceptor(io.io(), AcceptorOptionsOf(config_in, guard, tls_in != nullptr), metrics,
                 SteadyNow, LogAcceptor) {}

  const Config& config;
  Metrics& metrics;
  const TlsHolder* const tls;
  QueryEngine engine;
  Executor executor;
  IngestServiceImpl ingest;
  StreamServiceImpl streams;
  PostedCalls calls;
  QueryServiceImpl queries;
  SummaryServiceImpl summaries;
  SubscriptionServiceImpl subscriptions;
  InfoServiceImpl info;
  // Not one of ingest: who asks is not to wait behind who sends, and gRPC starts threads of its own
  // on it, which inherit its role.
  IoThreads io{1, "grpc-accept", ThreadRole::kAnswers};
  GrpcAcceptor acceptor;
  std::shared_ptr<grpc::ServerCredentials> credentials;  // asked for each connection of the server
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections;  // gRPC's end
  std::unique_ptr<grpc::Server> server;
};

GrpcFront::GrpcFront(const Config& config, Pipeline& pipeline, Metrics& metrics, const Guard& guard,
                     const TlsHolder* tls, std::function<std::int64_t()> clock,
                     std::function<void(v1::GetInfoResponse&)> fill_info)
    : parts_(std::make_unique<Parts>(config, pipeline, metrics, guard, tls, std::move(clock),
                                     std::move(fill_info))) {}

GrpcFront::~GrpcFront() { Stop(std::chrono::milliseconds(0)); }

absl::Status GrpcFront::Start() {
  if (absl::Status status = parts_->acceptor.Listen(); !status.ok()) return status;

  // The library prints a line for every text that is not UTF-8, in no format of ours and as often
  // as somebody sends one. Such messages are refused, answered and counted.
  google::protobuf::SetLogHandler(nullptr);
  TakeGrpcLog(parts_->tls != nullptr ? &parts_->metrics.TlsFailed("grpc") : nullptr);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kClientPingMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kServerPingMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  // Of TLS and HTTP/2 from the first bytes on (first_bytes.h), which half a connection would
  // otherwise keep up for two minutes.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             static_cast<int>(parts_->config.tls.handshake_timeout_s * 1000));
  LimitMemory(builder, parts_->config.limits);
  builder.SetMaxReceiveMessageSize(static_cast<int>(ReceiveBytesMax(parts_->config)));
  parts_->credentials =
      parts_->tls != nullptr ? GrpcTlsCredentials(*parts_->tls) : grpc::InsecureServerCredentials();
  parts_->connections = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, parts_->credentials);
  builder.RegisterService(&parts_->ingest);
  builder.RegisterService(&parts_->streams);
  builder.RegisterService(&parts_->queries);
  builder.RegisterService(&parts_->summaries);
  builder.RegisterService(&parts_->subscriptions);
  builder.RegisterService(&parts_->info);
  parts_->server = builder.BuildAndStart();
  if (!parts_->server) return absl::UnavailableError("cannot start the gRPC server");
  SetServing(false);
  parts_->acceptor.Start([&gate = *parts_->connections](int listener, int connection) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters accepted;
    accepted.listener_fd = listener;
    accepted.fd = connection;
    gate.HandleNewConnection(&accepted);
  });
  return absl::OkStatus();
}

std::uint16_t GrpcFront::port() const { return parts_->acceptor.port(); }

void GrpcFront::SetServing(bool serving) {
  if (!parts_->server) return;  // it could not listen
  parts_->server->GetHealthCheckService()->SetServingStatus(serving);
}

void GrpcFront::EndPushes() { parts_->ingest.EndCalls(); }

void GrpcFront::Stop(std::chrono::milliseconds deadline) {
  // First: what is handed to a server that has shut down is lost, and its descriptor with it.
  parts_->acceptor.Stop();
  if (parts_->server) {
    // Not by the clock that may be set meanwhile.
    const auto end = std::chrono::steady_clock::now() + deadline;
    const auto left = [&] { return end - std::chrono::steady_clock::now(); };
    EndPushes();
    parts_->queries.EndSubscriptions();
    while (left().count() > 0 && (parts_->ingest.calls() > 0 || parts_->calls.running() > 0)) {
      std::this_thread::sleep_for(kCallsPoll);
    }
    // Shutdown waits for connections too, not only for calls, and a client that has nothing to do
    // may take seconds to close its own (gRPC's C++ clients look every 5 s).
    parts_->server->Shutdown(std::chrono::system_clock::now() +
                             std::min<std::chrono::steady_clock::duration>(left(), kLastWrites));
    parts_->server.reset();
    parts_->acceptor.Look();  // nobody is connected any more, say the last metrics
    TakeGrpcLog(nullptr);
  }
  parts_->executor.Stop();
}

}  // namespace tidemark::server
