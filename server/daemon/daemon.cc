#include "server/daemon/daemon.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "gpu/sort/route_choice.h"
#include "gpu/sort/sorter_factory.h"
#include "server/daemon/access_settings.h"
#include "server/daemon/grpc_front.h"
#include "server/daemon/peer_limits.h"
#include "server/daemon/process_memory.h"
#include "server/daemon/progress_check.h"
#include "server/daemon/stored_log.h"
#include "server/http/http_server.h"
#include "server/ingest/io_threads.h"
#include "server/ingest/statsd_server.h"
#include "server/ingest/tcp_server.h"
#include "server/pipeline/pipeline.h"
#include "server/sort/sorter_rates.h"
#include "server/store/file_system.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"
#include "server/window/concat.h"
#include "tidemark/v1/info.pb.h"
#include "wire/frame.h"

namespace tidemark::server {
namespace {

constexpr std::uint64_t kIoThreadsMax = 4;  // a fifth reader finds nothing left to read

RecordedTime Now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

RecordedTime SteadyNow() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int Cores() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

StreamSettings DefaultsOf(const Config& config) {
  return {.type = ParseValueType(config.streams.type).value_or(ValueType::kFloat64),
          .quantile_epsilon = config.streams.quantile_epsilon,
          .frequency_epsilon = config.streams.frequency_epsilon,
          .quantile_form =
              ParseQuantileKind(config.streams.quantile_form).value_or(QuantileKind::kHistogram),
          .tail_epsilon = config.streams.tail_epsilon,
          .frequencies = config.streams.frequencies,
          .sums = config.streams.sums,
          .sliding = {.epsilon = config.streams.sliding_epsilon}};
}

PipelineOptions PipelineOptionsOf(const Config& config) {
  PipelineOptions options;
  options.window_limits = {.min = static_cast<std::uint32_t>(config.window.min_capacity),
                           .max = static_cast<std::uint32_t>(config.window.max_capacity)};
  options.stream_defaults = DefaultsOf(config);
  options.registry_limits = {.streams_max = config.limits.max_streams,
                             .name_bytes_max = config.limits.max_name_bytes,
                             .subscriptions_max = config.limits.max_named_subscriptions};
  options.item_bytes_max = config.limits.max_item_bytes;
  options.text_bytes_max = config.limits.max_text_bytes;
  options.memory_bytes_max = config.limits.max_memory_bytes;
  options.memory_used = ResidentBytes;
  // Rounded up; the tick behind a batch, which only sees that it came, is not counted.
  const auto tick = static_cast<std::uint64_t>(Daemon::kTick.count());
  options.idle_trims_max =
      static_cast<std::uint32_t>((config.limits.stream_ttl_s + tick - 1) / tick);
  options.producers_max = config.limits.max_producers;
  options.sort_workers = config.sort.workers == 0 ? Cores() : static_cast<int>(config.sort.workers);
  if (config.sort.workers == 0) {
    options.sort_workers_for_gl = static_cast<int>(sort::RouteTable{}.gl_requests);
  }
  options.pending_keys_max = config.ingest.max_pending_keys;
  return options;
}

void LogSorterError(const std::string& error) {
  Log(LogLevel::kError, "a sorter failed; the CPU sorted the windows instead", {{"error", error}});
}

// What an earlier start measured, where there is a folder that keeps it.
std::optional<sort::MeasuredRates> KeptRatesOf(const Config& config) {
  if (config.daemon.data_dir.empty() || config.sort.measure_again) return std::nullopt;
  KeptRates kept =
      ReadSorterRates(store::PosixFileSystem(), config.daemon.data_dir, TIDEMARK_VERSION);
  if (!kept.refused.empty()) {
    Log(LogLevel::kWarn, "sorters are measured anew", {{"reason", kept.refused}});
  }
  return std::move(kept.rates);
}

void KeepRates(const Config& config, const sort::SorterReport& report) {
  if (!report.not_cached.empty()) {
    Log(LogLevel::kInfo, "sorters are measured anew", {{"reason", report.not_cached}});
  }
  if (config.daemon.data_dir.empty() || report.cached || !report.worth_keeping) return;
  const absl::Status status = WriteSorterRates(store::PosixFileSystem(), config.daemon.data_dir,
                                               sort::RatesOf(report), TIDEMARK_VERSION);
  if (!status.ok()) {
    Log(LogLevel::kWarn, "the next start will measure the sorters again",
        {{"error", std::string(status.message())}});
  }
}

sort::SorterSelection SorterOf(const Config& config, Metrics& metrics) {
  sort::SorterOptions options;
  options.name = config.sort.sorter;
  options.allow_software_gl = config.sort.allow_software_gl;
  options.measure_budget_ms = static_cast<int>(config.sort.measure_budget_ms);
  options.gl_time_limit = std::chrono::milliseconds(config.sort.gl_timeout_ms);
  options.known = KeptRatesOf(config);
  options.now_us = Now();
  options.on_failure = [&metrics](const std::string& error) {
    metrics.sorter_failures().Increment();
    LogSorterError(error);
  };
  sort::SorterSelection selection = sort::MakeSorter(options);
  Log(selection.report.gl.error.empty() || selection.report.requested == "auto" ? LogLevel::kInfo
                                                                                : LogLevel::kWarn,
      "sorter chosen",
      {{"requested", selection.report.requested},
       {"active", selection.report.active},
       {"reason", selection.report.reason},
       {"cached", selection.report.cached}});
  KeepRates(config, selection.report);
  return selection;
}

void LogIngest(IngestLogLevel level, std::string_view message) {
  const LogLevel as = level == IngestLogLevel::kInfo      ? LogLevel::kInfo
                      : level == IngestLogLevel::kWarning ? LogLevel::kWarn
                                                          : LogLevel::kError;
  Log(as, "ingest", {{"detail", message}});
}

void LogWarnings(const AccessSettings& access) {
  for (const std::string& one : access.warnings) {
    Log(LogLevel::kWarn, "a secret may be read by others", {{"detail", one}});
  }
}

ListenOptions ListenAt(const HostPort& address, const Config& config) {
  ListenOptions options;
  options.host = address.host;
  options.port = address.port;
  options.connections_max = config.limits.max_connections;
  options.idle_timeout = std::chrono::seconds(config.limits.idle_timeout_s);
  options.handshake_timeout = std::chrono::seconds(config.tls.handshake_timeout_s);
  return options;
}

}  // namespace

struct Daemon::Parts {
  Parts(const Config& config_in, ConfigSource source_in)
      : config(config_in),
        source(std::move(source_in)),
        metrics(TIDEMARK_VERSION),
        peers(PeerLimitsOf(config.limits), metrics),
        guard(metrics, Now),
        pipeline(PipelineOptionsOf(config), SorterOf(config, metrics), metrics, LogSorterError),
        io(static_cast<int>(
               config.ingest.io_threads != 0
                   ? config.ingest.io_threads
                   : std::min<std::uint64_t>(kIoThreadsMax, static_cast<std::uint64_t>(Cores()))),
           "ingest") {}

  absl::Status SetAccess();
  const TlsHolder* TlsOf(std::string_view listener) const;
  absl::Status StartServers();
  void FillInfo(v1::GetInfoResponse& info) const;
  absl::Status Reload();
  HttpCallbacks Callbacks();

  const Config config;  // as started
  const ConfigSource source;
  const std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  std::mutex reload_mutex;
  std::atomic<bool> ready{false};
  std::atomic<bool> stopping{false};
  mutable std::mutex endpoints_mutex;
  std::vector<Endpoint> endpoints;  // guarded by endpoints_mutex once gRPC listens

  // In the order in which they depend on one another: destruction runs upwards.
  Metrics metrics;
  PeerTable peers;
  Guard guard;
  std::optional<TlsHolder> tls;
  std::unique_ptr<StoredLog> log;  // before the pipeline, which tells it of batches
  Pipeline pipeline;
  IoThreads io;  // after the pipeline: handlers left in it hold streams when it is destroyed
  ProgressCheck progress{
      [this](std::function<void()> work) { boost::asio::post(io.io(), std::move(work)); },
      [this] { return ProgressOf(pipeline, metrics); }};
  std::optional<GrpcFront> grpc;
  std::optional<TcpServer> tcp;
  std::optional<StatsdServer> statsd;
  std::optional<HttpServer> http;
};

absl::Status Daemon::Parts::SetAccess() {
  absl::StatusOr<AccessSettings> access = LoadAccess(config, Now());
  if (!access.ok()) return access.status();
  LogWarnings(*access);
  if (access->tls) tls.emplace(std::move(access->tls));
  guard.Set(std::move(access->policy));
  guard.HoldTo(&peers);
  for (const std::string& one : InsecureListeners(config)) {
    Log(LogLevel::kWarn, "insecure: other machines reach a listener",
        {{"listener", one}, {"allowed_by", "listen.allow_insecure"}});
  }
  return absl::OkStatus();
}

const TlsHolder* Daemon::Parts::TlsOf(std::string_view listener) const {
  return tls && UsesTls(config, listener) ? &*tls : nullptr;
}

absl::Status Daemon::Parts::StartServers() {
  if (absl::Status status = SetAccess(); !status.ok()) return status;
  pipeline.Start();
  const auto serve = [&](std::string_view name, const HostPort& address, std::uint16_t port) {
    endpoints.push_back({std::string(name), address.host, port});
    Log(LogLevel::kInfo, "listening",
        {{"protocol", name}, {"address", HostPort{address.host, port}.ToString()}});
  };
  if (config.listen.http) {
    HttpOptions options;
    options.address = *config.listen.http;
    options.max_connections = config.limits.max_connections;
    options.timeout = std::chrono::seconds(config.limits.http_timeout_s);
    options.tls = TlsOf("http");
    options.guard = &guard;
    options.handshake_timeout = std::chrono::seconds(config.tls.handshake_timeout_s);
    http.emplace(options, Callbacks());
    if (absl::Status status = http->Start(); !status.ok()) return status;
    serve("http", *config.listen.http, http->address().port);
  }
  // Behind HTTP, which says that the daemon starts; before anything that takes values in.
  absl::StatusOr<std::unique_ptr<StoredLog>> stored = OpenStoredLog(config, pipeline, metrics);
  if (!stored.ok()) return stored.status();
  log = *std::move(stored);
  if (config.listen.tcp) {
    TcpServerOptions options;
    options.listen = ListenAt(*config.listen.tcp, config);
    options.listen.tls = TlsOf("tcp");
    options.listen.guard = &guard;
    options.frame_bytes_max = config.limits.max_batch_bytes + wire::kBatchHeaderBytes;
    tcp.emplace(io.io(), pipeline, metrics, options, Clocks{Now, SteadyNow}, LogIngest);
    if (absl::Status status = tcp->Start(); !status.ok()) return status;
    serve("tcp", *config.listen.tcp, tcp->port());
  }
  if (config.listen.statsd) {
    StatsdServerOptions options;
    options.listen = ListenAt(*config.listen.statsd, config);
    options.listen.tls = TlsOf("statsd");
    options.listen.guard = &guard;
    options.udp_buffer_bytes = config.ingest.udp_receive_buffer_bytes;
    statsd.emplace(io.io(), pipeline, metrics, options, Clocks{Now, SteadyNow}, LogIngest);
    if (absl::Status status = statsd->Start(); !status.ok()) return status;
    serve("statsd", *config.listen.statsd, statsd->port());
  }
  // Last, so that its info call knows the others.
  if (config.listen.grpc) {
    grpc.emplace(config, pipeline, metrics, guard, TlsOf("grpc"), Now,
                 [this](v1::GetInfoResponse& info) { FillInfo(info); });
    if (absl::Status status = grpc->Start(); !status.ok()) return status;
    const std::lock_guard lock(endpoints_mutex);
    serve("grpc", *config.listen.grpc, grpc->port());
  }
  return absl::OkStatus();
}

void Daemon::Parts::FillInfo(v1::GetInfoResponse& info) const {
  info.set_version(TIDEMARK_VERSION);
  const std::lock_guard lock(endpoints_mutex);
  for (const Endpoint& endpoint : endpoints) {
    v1::Endpoint* one = info.add_endpoints();
    one->set_name(endpoint.name);
    one->set_address(HostPort{endpoint.host, endpoint.port}.ToString());
  }
  v1::Limits* limits = info.mutable_limits();
  limits->set_max_streams(config.limits.max_streams);
  limits->set_max_name_bytes(config.limits.max_name_bytes);
  limits->set_max_batch_bytes(config.limits.max_batch_bytes);
  limits->set_max_item_bytes(config.limits.max_item_bytes);
  limits->set_max_subscriptions(config.limits.max_subscriptions);
  limits->set_max_connections(config.limits.max_connections);
  info.set_uptime_us(std::chrono::duration_cast<std::chrono::microseconds>(
                         std::chrono::steady_clock::now() - started)
                         .count());
}

HttpCallbacks Daemon::Parts::Callbacks() {
  HttpCallbacks callbacks;
  callbacks.metrics = [this] {
    pipeline.UpdateGauges();
    if (ready && log) log->UpdateMetrics();  // not before it is there
    return metrics.Serialize();
  };
  callbacks.not_ready = [this]() -> std::optional<std::string> {
    if (stopping) return "shutting down";
    if (!ready) return "starting";
    return std::nullopt;
  };
  callbacks.reload = [this] { return Reload(); };
  callbacks.tls_failed = [this] { metrics.TlsFailed("http").Increment(); };
  callbacks.count = [this](std::string_view path, int code) {
    metrics.HttpRequests(path, code).Increment();
  };
  return callbacks;
}

absl::Status Daemon::Parts::Reload() {
  const std::lock_guard lock(reload_mutex);
  absl::StatusOr<Config> read = absl::UnknownError("not read");
  absl::StatusOr<AccessSettings> access = absl::UnknownError("not read");
  try {
    read = source();
    // The files that the daemon was started with: another file is another setting.
    access = read.ok() ? LoadAccess(config, Now()) : absl::StatusOr<AccessSettings>(read.status());
  } catch (const std::exception& error) {
    // Nothing that files may hold is to end a daemon that serves.
    access = absl::InternalError(error.what());
  }
  metrics.config_reloads(access.ok()).Increment();
  if (!access.ok()) {
    Log(LogLevel::kError, "reload refused; the configuration in use stays",
        {{"error", std::string(access.status().message())}});
    return access.status();
  }
  LogWarnings(*access);
  // Nothing below can fail.
  if (tls && access->tls) tls->Set(std::move(access->tls));
  guard.Set(std::move(access->policy));
  const std::optional<LogLevel> level = ParseLogLevel(read->log.level);
  const std::optional<LogFormat> format = ParseLogFormat(read->log.format);
  if (level && format) SetUpLog(*level, *format);
  pipeline.streams().set_defaults(DefaultsOf(*read));

  Config same_elsewhere = *read;
  same_elsewhere.log = config.log;
  same_elsewhere.streams = config.streams;
  const bool needs_restart = !(same_elsewhere == config);
  Log(needs_restart ? LogLevel::kWarn : LogLevel::kInfo, "configuration reloaded",
      {{"needs_restart", needs_restart}});
  return absl::OkStatus();
}

Daemon::Daemon(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Daemon::~Daemon() { Shutdown().IgnoreError(); }

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const Config& config, ConfigSource source) {
  auto daemon =
      std::unique_ptr<Daemon>(new Daemon(std::make_unique<Parts>(config, std::move(source))));
  Parts& parts = *daemon->parts_;
  if (absl::Status status = parts.StartServers(); !status.ok()) return status;
  parts.ready = true;
  if (parts.grpc) parts.grpc->SetServing(true);
  return daemon;
}

const std::vector<Daemon::Endpoint>& Daemon::endpoints() const { return parts_->endpoints; }

absl::Status Daemon::Reload() { return parts_->Reload(); }

void Daemon::Tick() { parts_->pipeline.Trim(); }

std::string Daemon::Stalled() { return parts_->progress.Stalled(); }

absl::Status Daemon::Shutdown(const std::function<void()>& saving) {
  Parts& parts = *parts_;
  if (parts.stopping.exchange(true)) return absl::OkStatus();
  const auto begun = std::chrono::steady_clock::now();
  const auto end = begun + std::chrono::seconds(parts.config.daemon.shutdown_deadline_s);
  const auto left = [&] {
    return std::max(std::chrono::milliseconds(0),
                    std::chrono::duration_cast<std::chrono::milliseconds>(
                        end - std::chrono::steady_clock::now()));
  };
  parts.ready = false;
  // New values end in every protocol before any of them waits for its peers.
  if (parts.grpc) {
    parts.grpc->SetServing(false);
    parts.grpc->EndPushes();
  }
  if (parts.tcp) parts.tcp->BeginStop();
  // Sources first: what they have read is taken in and acknowledged. Then calls and subscriptions,
  // then the windows, and the metrics at the very last, so that a scrape can still see all of it.
  // StatsD waits for room in the queue to the sorters, and so gets no more than half of the time.
  if (parts.statsd) parts.statsd->Stop(left() / 2);
  // Senders that do not read their acknowledgements get half of what is left; then they are cut.
  if (parts.tcp) parts.tcp->Stop(left() / 2);
  if (parts.grpc) parts.grpc->Stop(left() / 2);
  // Acknowledgements have left; what had none is synced, too.
  if (parts.log && parts.log->SavesAtStop() && saving) saving();
  const absl::Status saved = parts.log ? parts.log->Stop() : absl::OkStatus();
  parts.pipeline.Stop();
  parts.io.Stop();
  if (parts.http) parts.http->Stop();
  const auto spent = std::chrono::steady_clock::now() - begun;
  Log(LogLevel::kInfo, "stopped",
      {{"values", parts.pipeline.values()},
       {"drain_ms", std::chrono::duration_cast<std::chrono::milliseconds>(spent).count()}});
  return saved;
}

absl::Status WritePortsFile(const std::string& path,
                            const std::vector<Daemon::Endpoint>& endpoints) {
  nlohmann::ordered_json ports = nlohmann::ordered_json::object();
  for (const char* name : {"grpc", "tcp", "http", "statsd"}) {
    for (const Daemon::Endpoint& endpoint : endpoints) {
      if (endpoint.name == name) ports[name] = endpoint.port;
    }
  }
  const std::string temporary = path + ".new";
  std::error_code error;
  {
    std::ofstream file(temporary, std::ios::trunc);
    file << ports.dump() << "\n";
    if (!file.flush()) {
      return absl::UnavailableError(Concat("cannot write the ports file ", path));
    }
  }
  std::filesystem::rename(temporary, path, error);
  if (error) {
    return absl::UnavailableError(
        Concat("cannot write the ports file ", path, ": ", error.message()));
  }
  return absl::OkStatus();
}

}  // namespace tidemark::server
