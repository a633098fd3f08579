#include "server/telemetry/metrics.h"

#include <prometheus/text_serializer.h>

#include <array>
#include <map>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <utility>
#include <vector>

namespace tidemark::server {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;
using Buckets = Histogram::BucketBoundaries;

// Latencies from 10 µs (a query of a quiet stream) to 10 s (a hung device), three a decade.
const Buckets kSecondsBuckets = {1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2,
                                 2e-2, 5e-2, 0.1,  0.2,  0.5,  1,    2,    5,    10};
// Keys of a full window: powers of two from the smallest window to beyond the largest, 2^18.
const Buckets kWindowKeysBuckets = {16,   32,   64,    128,   256,   512,    1024,   2048,
                                    4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288};

/// The metrics of one family by their label values. A lookup takes a shared lock of its own and no
/// allocation; prometheus-cpp's Family::Add takes an exclusive one and hashes every label.
template <typename T>
class LabelCache {
 public:
  /// `make` is called once for each key.
  template <typename Make>
  T& Get(std::string_view key, Make&& make) {
    {
      const std::shared_lock lock(mutex_);
      if (const auto found = metrics_.find(key); found != metrics_.end()) return *found->second;
    }
    const std::unique_lock lock(mutex_);
    if (const auto found = metrics_.find(key); found != metrics_.end()) return *found->second;
    T& metric = make();
    metrics_.emplace(std::string(key), &metric);
    return metric;
  }

  /// Of the values of all that were made so far.
  double Sum() const {
    const std::shared_lock lock(mutex_);
    return std::accumulate(metrics_.begin(), metrics_.end(), 0.0,
                           [](double sum, const auto& made) { return sum + made.second->Value(); });
  }

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::string, T*, std::less<>> metrics_;
};

Family<Counter>& CounterFamily(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}
Family<Gauge>& GaugeFamily(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}
Family<Histogram>& HistogramFamily(prometheus::Registry& registry, const char* name,
                                   const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

Labels SourceLabel(Source source) { return {{"source", std::string(SourceName(source))}}; }

}  // namespace

std::string_view SourceName(Source source) {
  switch (source) {
    case Source::kGrpc:
      return "grpc";
    case Source::kTcp:
      return "tcp";
    case Source::kStatsdTcp:
      return "statsd_tcp";
    case Source::kStatsdUdp:
      return "statsd_udp";
  }
  return "unknown";
}

struct Metrics::Families {
  prometheus::Registry registry;

  Family<Counter>& batches = CounterFamily(registry, "tidemark_ingest_batches_total",
                                           "Batches taken in, by where they came from.");
  Family<Counter>& values =
      CounterFamily(registry, "tidemark_ingest_values_total", "Values taken in.");
  Family<Counter>& bytes =
      CounterFamily(registry, "tidemark_ingest_bytes_total", "Bytes read from sockets.");
  Family<Counter>& duplicates =
      CounterFamily(registry, "tidemark_ingest_duplicates_total",
                    "Batches of numbered producers that came again, and were not counted again.");
  Family<Gauge>& connections = GaugeFamily(registry, "tidemark_ingest_connections",
                                           "Open ingest connections; of gRPC calls that push.");
  Family<Counter>& paused =
      CounterFamily(registry, "tidemark_ingest_paused_total",
                    "Times that reading stopped because the stages behind, or the "
                    "acknowledgements in front, were full.");
  Family<Counter>& connections_refused =
      CounterFamily(registry, "tidemark_ingest_connections_refused_total",
                    "Connections, and calls that push over gRPC, refused at the configured limit.");
  Family<Counter>& idle_closed =
      CounterFamily(registry, "tidemark_ingest_connections_idle_closed_total",
                    "Connections closed because nothing arrived for the idle timeout.");
  Family<Counter>& refused = CounterFamily(registry, "tidemark_ingest_refused_total",
                                           "Values and lines refused, by reason.");
  Family<Counter>& dropped =
      CounterFamily(registry, "tidemark_ingest_dropped_total", "Datagrams lost, by reason.");
  Family<Counter>& statsd_lines =
      CounterFamily(registry, "tidemark_statsd_lines_total", "Well-formed StatsD lines, by kind.");
  Family<Counter>& statsd_ignored =
      CounterFamily(registry, "tidemark_statsd_fields_ignored_total",
                    "Container ids, timestamps and other fields that change nothing.");
  Family<Gauge>& queue_depth = GaugeFamily(
      registry, "tidemark_queue_depth",
      "Waiting between stages: keys in the queue sort_keys, queries in the queue query.");
  Family<Gauge>& queue_limit = GaugeFamily(registry, "tidemark_queue_limit",
                                           "What a queue may hold, in the unit of its depth.");
  Family<Histogram>& sort_seconds = HistogramFamily(
      registry, "tidemark_sort_seconds",
      "Time to sort one request of up to four windows, or to make a digest of one.");
  Family<Counter>& sort_keys = CounterFamily(registry, "tidemark_sort_keys_total",
                                             "Keys sorted, by sorter; grid: counted into digests.");
  Family<Counter>& sort_routes =
      CounterFamily(registry, "tidemark_sort_routes_total",
                    "Requests divided between GL and the CPU, by sorter and reason.");
  Family<Gauge>& sort_observed =
      GaugeFamily(registry, "tidemark_sort_observed_keys_per_second",
                  "What requests are divided by: four windows on GL, one thread of the CPU.");
  Family<Histogram>& query_seconds =
      HistogramFamily(registry, "tidemark_query_seconds", "Time to answer a query.");
  Family<Counter>& query_errors = CounterFamily(registry, "tidemark_query_errors_total",
                                                "Queries answered with an error, by code.");
  Family<Counter>& access_refused =
      CounterFamily(registry, "tidemark_access_refused_total",
                    "Calls and connections that the rules refused, by protocol and reason.");
  Family<Counter>& tls_failed =
      CounterFamily(registry, "tidemark_tls_handshakes_failed_total",
                    "TLS handshakes that failed or took too long, by protocol.");
  Family<Counter>& peer_refused =
      CounterFamily(registry, "tidemark_peer_refused_total",
                    "Connections, calls and growing buffers refused at the limit of one peer.");
  Family<Counter>& http_requests =
      CounterFamily(registry, "tidemark_http_requests_total", "HTTP requests, by path and code.");
  Family<Gauge>& sorter_info = GaugeFamily(registry, "tidemark_sorter_info",
                                           "1 for the sorter in use; labels say which and why.");
  Family<Counter>& config_reloads = CounterFamily(registry, "tidemark_config_reloads_total",
                                                  "Reloads of the configuration, by result.");

  Counter& windows_sorted = CounterFamily(registry, "tidemark_windows_sorted_total",
                                          "Windows sorted, or counted into digests.")
                                .Add({});
  Histogram& window_fill = HistogramFamily(registry, "tidemark_window_fill_keys",
                                           "Keys in a window when it was handed to a sorter.")
                               .Add({}, kWindowKeysBuckets);
  Histogram& merge_seconds =
      HistogramFamily(registry, "tidemark_merge_seconds",
                      "Time to sample a sorted window and merge it into its summaries.")
          .Add({}, kSecondsBuckets);
  Counter& sorter_failures =
      CounterFamily(registry, "tidemark_sorter_failures_total",
                    "Sorts that failed on the device and were done again on the CPU.")
          .Add({});
  Gauge& streams = GaugeFamily(registry, "tidemark_streams", "Streams held.").Add({});
  Gauge& peers = GaugeFamily(registry, "tidemark_peers",
                             "Peers that hold connections or calls, of those that are limited.")
                     .Add({});
  Gauge& grpc_connections = GaugeFamily(registry, "tidemark_grpc_connections",
                                        "Open connections of gRPC, with those in a handshake.")
                                .Add({});
  Counter& grpc_unopened =
      CounterFamily(registry, "tidemark_grpc_connections_unopened_total",
                    "Connections that ended before gRPC had them: without their first bytes, or "
                    "before it was their turn.")
          .Add({});
  Counter& grpc_handshakes_delayed =
      CounterFamily(registry, "tidemark_grpc_handshakes_delayed_total",
                    "Connections of gRPC that waited for their turn to begin a handshake of TLS.")
          .Add({});
  Gauge& producers =
      GaugeFamily(registry, "tidemark_producers",
                  "Producers of a stream whose batches are recognised when they come again.")
          .Add({});
  Counter& producers_forgotten =
      CounterFamily(registry, "tidemark_producers_forgotten_total",
                    "Producers forgotten because limits.max_producers was reached.")
          .Add({});
  Gauge& summary_bytes =
      GaugeFamily(registry, "tidemark_summaries_bytes", "Bytes held by summaries.").Add({});
  Gauge& window_bytes =
      GaugeFamily(
          registry, "tidemark_window_bytes",
          "Bytes held by windows, open or waiting, by sorted copies of them and by free buffers.")
          .Add({});
  Gauge& dictionary_bytes = GaugeFamily(registry, "tidemark_dictionary_bytes",
                                        "Bytes held by the dictionaries of string streams.")
                                .Add({});
  Gauge& memory_limit_bytes =
      GaugeFamily(registry, "tidemark_memory_limit_bytes",
                  "Resident bytes above which no stream is made; 0: no limit")
          .Add({});
  Counter& streams_expired =
      CounterFamily(registry, "tidemark_streams_expired_total",
                    "Streams deleted since nothing came to them for limits.stream_ttl_s")
          .Add({});
  Gauge& dictionary_limit_bytes =
      GaugeFamily(registry, "tidemark_dictionary_limit_bytes",
                  "Bytes that the dictionaries may hold before batches are refused.")
          .Add({});
  Gauge& subscribers =
      GaugeFamily(registry, "tidemark_subscribers", "Continuous queries being served.").Add({});
  Gauge& named_subscriptions = GaugeFamily(registry, "tidemark_named_subscriptions",
                                           "Continuous queries that are kept under names.")
                                   .Add({});
  Counter& subscription_answers = CounterFamily(registry, "tidemark_subscription_answers_total",
                                                "Answers sent to continuous queries.")
                                      .Add({});
  Counter& subscription_skipped =
      CounterFamily(registry, "tidemark_subscription_skipped_total",
                    "Answers replaced by newer ones because the reader was slow.")
          .Add({});
  Gauge& log_pending_bytes = GaugeFamily(registry, "tidemark_log_pending_bytes",
                                         "Bytes taken into the log and not yet synced.")
                                 .Add({});
  Gauge& log_segments =
      GaugeFamily(registry, "tidemark_log_segments", "Files that the log consists of.").Add({});
  Counter& log_bytes =
      CounterFamily(registry, "tidemark_log_bytes_total", "Bytes written to the log.").Add({});
  Counter& log_syncs =
      CounterFamily(registry, "tidemark_log_syncs_total", "Syncs of the log that succeeded.")
          .Add({});
  Counter& log_failures = CounterFamily(registry, "tidemark_log_failures_total",
                                        "Writes and syncs of the log that failed.")
                              .Add({});
  Family<Counter>& snapshots_by_result =
      CounterFamily(registry, "tidemark_snapshots_total", "Snapshots of all streams, by result.");
  Counter& snapshots_ok = snapshots_by_result.Add({{"result", "ok"}});
  Counter& snapshots_failed = snapshots_by_result.Add({{"result", "failed"}});
  Gauge& snapshot_timestamp =
      GaugeFamily(registry, "tidemark_snapshot_timestamp_seconds",
                  "When the newest snapshot was finished, in seconds since 1970.")
          .Add({});
  Gauge& snapshot_seconds =
      GaugeFamily(registry, "tidemark_snapshot_seconds", "How long the newest snapshot took.")
          .Add({});
  Gauge& snapshot_bytes =
      GaugeFamily(registry, "tidemark_snapshot_bytes", "Bytes of the newest snapshot.").Add({});
  Counter& reloads_ok = config_reloads.Add({{"result", "ok"}});
  Counter& reloads_failed = config_reloads.Add({{"result", "failed"}});

  std::vector<SourceMetrics> sources;
  std::array<LabelCache<Counter>, kSources> refused_by_reason;
  std::array<LabelCache<Counter>, kSources> dropped_by_reason;
  std::array<LabelCache<Counter>, kSources> lines_by_kind;
  std::array<LabelCache<Counter>, kSources> ignored;
  LabelCache<Gauge> depths;
  LabelCache<Gauge> limits;
  LabelCache<Histogram> sort_seconds_by_sorter;
  LabelCache<Counter> sort_keys_by_sorter;
  LabelCache<Counter> sort_routes_by_label;
  LabelCache<Gauge> sort_observed_by_label;
  LabelCache<Histogram> query_seconds_by_method;
  LabelCache<Counter> query_errors_by_label;
  LabelCache<Counter> http_requests_by_label;
  LabelCache<Counter> access_refused_by_label;
  LabelCache<Counter> tls_failed_by_protocol;
  LabelCache<Counter> peer_refused_by_label;
  std::mutex sorter_info_mutex;
  Gauge* sorter_info_now = nullptr;

  explicit Families(std::string_view version) {
    GaugeFamily(registry, "tidemark_build_info", "1; the label is the version.")
        .Add({{"version", std::string(version)}})
        .Set(1);
    sources.reserve(kSources);
    for (int i = 0; i < kSources; ++i) {
      const Labels label = SourceLabel(static_cast<Source>(i));
      sources.push_back({batches.Add(label), values.Add(label), bytes.Add(label),
                         duplicates.Add(label), connections.Add(label), paused.Add(label),
                         connections_refused.Add(label), idle_closed.Add(label)});
    }
  }

  // A counter of `family` labelled with a source and one more label.
  static Counter& BySource(Family<Counter>& family, std::array<LabelCache<Counter>, kSources>& all,
                           Source source, const char* label, std::string_view value) {
    return all[static_cast<std::size_t>(source)].Get(value, [&]() -> Counter& {
      Labels labels = SourceLabel(source);
      labels.emplace(label, std::string(value));
      return family.Add(labels);
    });
  }
};

Metrics::Metrics(std::string_view version) : families_(std::make_unique<Families>(version)) {}
Metrics::~Metrics() = default;

SourceMetrics& Metrics::source(Source source) {
  return families_->sources[static_cast<std::size_t>(source)];
}

Counter& Metrics::Refused(Source source, std::string_view reason) {
  return Families::BySource(families_->refused, families_->refused_by_reason, source, "reason",
                            reason);
}

Counter& Metrics::Dropped(Source source, std::string_view reason) {
  return Families::BySource(families_->dropped, families_->dropped_by_reason, source, "reason",
                            reason);
}

std::uint64_t Metrics::Dropped() const {
  double sum = 0;
  for (const LabelCache<Counter>& by_reason : families_->dropped_by_reason) sum += by_reason.Sum();
  return static_cast<std::uint64_t>(sum);
}

Counter& Metrics::StatsdLines(Source source, std::string_view kind) {
  return Families::BySource(families_->statsd_lines, families_->lines_by_kind, source, "kind",
                            kind);
}

Counter& Metrics::StatsdFieldsIgnored(Source source, std::string_view field) {
  return Families::BySource(families_->statsd_ignored, families_->ignored, source, "field", field);
}

Gauge& Metrics::QueueDepth(std::string_view queue) {
  return families_->depths.Get(queue, [&]() -> Gauge& {
    return families_->queue_depth.Add({{"queue", std::string(queue)}});
  });
}

Gauge& Metrics::QueueLimit(std::string_view queue) {
  return families_->limits.Get(queue, [&]() -> Gauge& {
    return families_->queue_limit.Add({{"queue", std::string(queue)}});
  });
}

Histogram& Metrics::SortSeconds(std::string_view sorter) {
  return families_->sort_seconds_by_sorter.Get(sorter, [&]() -> Histogram& {
    return families_->sort_seconds.Add({{"sorter", std::string(sorter)}}, kSecondsBuckets);
  });
}

Counter& Metrics::SortKeys(std::string_view sorter) {
  return families_->sort_keys_by_sorter.Get(sorter, [&]() -> Counter& {
    return families_->sort_keys.Add({{"sorter", std::string(sorter)}});
  });
}

Counter& Metrics::SortRoutes(std::string_view sorter, std::string_view reason) {
  const std::string key = std::string(reason) + ' ' + std::string(sorter);
  return families_->sort_routes_by_label.Get(key, [&]() -> Counter& {
    return families_->sort_routes.Add(
        {{"sorter", std::string(sorter)}, {"reason", std::string(reason)}});
  });
}

Gauge& Metrics::SortObservedRate(std::string_view sorter, int key_bits, std::size_t window) {
  const std::string bits = std::to_string(key_bits);
  const std::string keys = std::to_string(window);
  const std::string key = bits + ' ' + keys + ' ' + std::string(sorter);
  return families_->sort_observed_by_label.Get(key, [&]() -> Gauge& {
    return families_->sort_observed.Add(
        {{"sorter", std::string(sorter)}, {"key_bits", bits}, {"window", keys}});
  });
}

Histogram& Metrics::QuerySeconds(std::string_view method) {
  return families_->query_seconds_by_method.Get(method, [&]() -> Histogram& {
    return families_->query_seconds.Add({{"method", std::string(method)}}, kSecondsBuckets);
  });
}

Counter& Metrics::QueryErrors(std::string_view method, std::string_view code) {
  std::string key(method);
  key += '\0';  // in neither part, so that no two pairs share a key
  key += code;
  return families_->query_errors_by_label.Get(key, [&]() -> Counter& {
    return families_->query_errors.Add(
        {{"method", std::string(method)}, {"code", std::string(code)}});
  });
}

Counter& Metrics::AccessRefused(std::string_view protocol, std::string_view reason) {
  std::string key(protocol);
  key += ' ';
  key += reason;
  return families_->access_refused_by_label.Get(key, [&]() -> Counter& {
    return families_->access_refused.Add(
        {{"protocol", std::string(protocol)}, {"reason", std::string(reason)}});
  });
}

Counter& Metrics::PeerRefused(std::string_view protocol, std::string_view reason) {
  std::string key(protocol);
  key += ' ';
  key += reason;
  return families_->peer_refused_by_label.Get(key, [&]() -> Counter& {
    return families_->peer_refused.Add(
        {{"protocol", std::string(protocol)}, {"reason", std::string(reason)}});
  });
}

Counter& Metrics::TlsFailed(std::string_view protocol) {
  return families_->tls_failed_by_protocol.Get(protocol, [&]() -> Counter& {
    return families_->tls_failed.Add({{"protocol", std::string(protocol)}});
  });
}

Counter& Metrics::HttpRequests(std::string_view path, int code) {
  const std::string code_text = std::to_string(code);
  const std::string key = code_text + ' ' + std::string(path);
  return families_->http_requests_by_label.Get(key, [&]() -> Counter& {
    return families_->http_requests.Add({{"path", std::string(path)}, {"code", code_text}});
  });
}

void Metrics::SetSorterInfo(std::string_view requested, std::string_view active,
                            std::string_view reason, std::string_view renderer) {
  const std::lock_guard lock(families_->sorter_info_mutex);
  if (families_->sorter_info_now != nullptr) {
    families_->sorter_info.Remove(families_->sorter_info_now);
  }
  families_->sorter_info_now = &families_->sorter_info.Add({{"requested", std::string(requested)},
                                                            {"active", std::string(active)},
                                                            {"reason", std::string(reason)},
                                                            {"renderer", std::string(renderer)}});
  families_->sorter_info_now->Set(1);
}

Counter& Metrics::windows_sorted() { return families_->windows_sorted; }
Histogram& Metrics::window_fill() { return families_->window_fill; }
Histogram& Metrics::merge_seconds() { return families_->merge_seconds; }
Counter& Metrics::sorter_failures() { return families_->sorter_failures; }
Gauge& Metrics::streams() { return families_->streams; }
Gauge& Metrics::peers() { return families_->peers; }
Gauge& Metrics::grpc_connections() { return families_->grpc_connections; }
Counter& Metrics::grpc_unopened() { return families_->grpc_unopened; }
Counter& Metrics::grpc_handshakes_delayed() { return families_->grpc_handshakes_delayed; }
Gauge& Metrics::producers() { return families_->producers; }
Counter& Metrics::producers_forgotten() { return families_->producers_forgotten; }
Gauge& Metrics::summary_bytes() { return families_->summary_bytes; }
Gauge& Metrics::window_bytes() { return families_->window_bytes; }
Gauge& Metrics::dictionary_bytes() { return families_->dictionary_bytes; }
Gauge& Metrics::memory_limit_bytes() { return families_->memory_limit_bytes; }
Counter& Metrics::streams_expired() { return families_->streams_expired; }
Gauge& Metrics::dictionary_limit_bytes() { return families_->dictionary_limit_bytes; }
Gauge& Metrics::subscribers() { return families_->subscribers; }
Gauge& Metrics::named_subscriptions() { return families_->named_subscriptions; }
Counter& Metrics::subscription_answers() { return families_->subscription_answers; }
Counter& Metrics::subscription_skipped() { return families_->subscription_skipped; }
Gauge& Metrics::log_pending_bytes() { return families_->log_pending_bytes; }
Gauge& Metrics::log_segments() { return families_->log_segments; }
Counter& Metrics::log_bytes() { return families_->log_bytes; }
Counter& Metrics::log_syncs() { return families_->log_syncs; }
Counter& Metrics::log_failures() { return families_->log_failures; }
Counter& Metrics::snapshots(bool ok) {
  return ok ? families_->snapshots_ok : families_->snapshots_failed;
}
Gauge& Metrics::snapshot_timestamp() { return families_->snapshot_timestamp; }
Gauge& Metrics::snapshot_seconds() { return families_->snapshot_seconds; }
Gauge& Metrics::snapshot_bytes() { return families_->snapshot_bytes; }
Counter& Metrics::config_reloads(bool ok) {
  return ok ? families_->reloads_ok : families_->reloads_failed;
}

std::string Metrics::Serialize() const {
  return prometheus::TextSerializer().Serialize(families_->registry.Collect());
}

prometheus::Registry& Metrics::registry() { return families_->registry; }

}  // namespace tidemark::server
