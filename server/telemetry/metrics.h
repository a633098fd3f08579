// Every metric of the daemon, in one place: names, help, units, labels.
//
// Prometheus conventions: prefix tidemark_, base units, _total for counters; label values come from
// fixed sets (never a stream's name, a peer's address or any other text from outside).
#ifndef TIDEMARK_SERVER_TELEMETRY_METRICS_H_
#define TIDEMARK_SERVER_TELEMETRY_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace tidemark::server {

/// Where a batch came from; the `source` label.
enum class Source { kGrpc, kTcp, kStatsdTcp, kStatsdUdp };
inline constexpr int kSources = 4;
std::string_view SourceName(Source source);

/// What one source counts. References stay valid as long as the Metrics.
struct SourceMetrics {
  prometheus::Counter& batches;  ///< tidemark_ingest_batches_total{source}
  prometheus::Counter& values;   ///< tidemark_ingest_values_total{source}
  prometheus::Counter& bytes;    ///< tidemark_ingest_bytes_total{source}: read from the socket
  /// tidemark_ingest_duplicates_total{source}: batches that came again and were acknowledged again.
  prometheus::Counter& duplicates;
  /// tidemark_ingest_connections{source}; of gRPC calls that push.
  prometheus::Gauge& connections;
  prometheus::Counter& paused;  ///< tidemark_ingest_paused_total{source}: stopped reading
  /// tidemark_ingest_connections_refused_total{source}: at the limit of connections; of gRPC also
  /// calls that push.
  prometheus::Counter& connections_refused;
  /// tidemark_ingest_connections_idle_closed_total{source}: nothing arrived for the idle timeout.
  prometheus::Counter& idle_closed;
};

/// Thread: construction from one thread, everything else from any. Counters are atomic; count a
/// batch at a time, not a value. Methods that take labels look them up under a shared lock: hot
/// paths call them once and keep the reference, which stays valid as long as the Metrics. Nothing
/// throws after construction but std::bad_alloc.
class Metrics {
 public:
  explicit Metrics(std::string_view version);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  SourceMetrics& source(Source source);

  /// tidemark_ingest_refused_total{source,reason}: values or lines that were refused, with an
  /// answer to who sent them or, from StatsD, without. `reason` from a fixed set: nan (and where
  /// values are summed, infinite ones), bad_frame, frame_too_large, bad_line, bad_name, bad_utf8
  /// (an item's), type_mismatch, unknown_stream, stream_limit, text_limit, memory_limit, bad_value,
  /// item_too_large, gauge_limit, log_unavailable, unknown_producer, access, shutting_down, cut,
  /// reset (a StatsD line of a peer that reset while the sink had no room).
  prometheus::Counter& Refused(Source source, std::string_view reason);
  /// tidemark_ingest_dropped_total{source,reason}: datagrams lost: kernel_buffer, saturated,
  /// truncated.
  prometheus::Counter& Dropped(Source source, std::string_view reason);
  /// All of them together.
  std::uint64_t Dropped() const;
  /// tidemark_statsd_lines_total{source,kind}: counter, gauge, timer, histogram, distribution, set,
  /// event, service_check. Well-formed lines only; the others are in Refused.
  prometheus::Counter& StatsdLines(Source source, std::string_view kind);
  /// tidemark_statsd_fields_ignored_total{source,field}: DogStatsD fields that do not change what
  /// is taken in: container, timestamp, external, cardinality, other.
  prometheus::Counter& StatsdFieldsIgnored(Source source, std::string_view field);

  /// tidemark_queue_depth{queue} and tidemark_queue_limit{queue}, in the same unit.
  /// queue="sort_keys": keys of full windows that are not summarized yet, eight bytes of strings'
  /// text counting as one more; at the limit sources wait. queue="query": queries; at the limit
  /// they are refused.
  prometheus::Gauge& QueueDepth(std::string_view queue);
  prometheus::Gauge& QueueLimit(std::string_view queue);

  /// tidemark_sort_seconds{sorter}: one request of up to four windows, or one digest. The label is
  /// the sorter that did the work, cpu or a GL one, whichever was asked for: also where GL failed
  /// and the CPU stood in; or grid, for windows that were counted into digests and not sorted.
  prometheus::Histogram& SortSeconds(std::string_view sorter);
  /// tidemark_sort_keys_total{sorter}; the label as above.
  prometheus::Counter& SortKeys(std::string_view sorter);
  /// tidemark_sort_routes_total{sorter,reason}: requests that a sorter which has others sort began,
  /// by where it sent them and why: faster, busy (GL is faster, but has so much to do that the CPU
  /// is done earlier), probe (to see how fast it is now), only (the other does not take it, or GL
  /// was asked for by name). One that GL refused or failed to sort counts again.
  prometheus::Counter& SortRoutes(std::string_view sorter, std::string_view reason);
  /// tidemark_sort_observed_keys_per_second{sorter,key_bits,window}: what such a sorter takes the
  /// others to do now, by what it has seen of them: GL with four windows, the CPU with one thread.
  prometheus::Gauge& SortObservedRate(std::string_view sorter, int key_bits, std::size_t window);
  /// tidemark_query_seconds{method}.
  prometheus::Histogram& QuerySeconds(std::string_view method);
  /// tidemark_query_errors_total{method,code}; code as gRPC names it. method="watch" and
  /// "executor" are no calls: server/rpc/watch_reactor.h, executor.h.
  prometheus::Counter& QueryErrors(std::string_view method, std::string_view code);
  /// tidemark_access_refused_total{protocol,reason}: calls and connections that the rules refused;
  /// protocol: grpc, tcp, http, statsd_tcp, statsd_udp; reason: no_credentials, unknown_token,
  /// expired_token, unknown_certificate, role (server/access/policy.h).
  prometheus::Counter& AccessRefused(std::string_view protocol, std::string_view reason);
  /// tidemark_tls_handshakes_failed_total{protocol}: tcp, http, statsd_tcp, and grpc, by what its
  /// log says, with those of grpc_unopened() but for those that the daemon's own end closed.
  prometheus::Counter& TlsFailed(std::string_view protocol);
  /// tidemark_peer_refused_total{protocol,reason}: what was refused because one peer has its share;
  /// protocol as above; reason: connections, calls, bytes (server/access/peers.h).
  prometheus::Counter& PeerRefused(std::string_view protocol, std::string_view reason);
  /// tidemark_http_requests_total{path,code}; path only if known, else "other".
  prometheus::Counter& HttpRequests(std::string_view path, int code);
  /// tidemark_sorter_info{requested,active,reason,renderer} = 1; `reason` is one of
  /// sort::SorterReport::why.
  void SetSorterInfo(std::string_view requested, std::string_view active, std::string_view reason,
                     std::string_view renderer);

  prometheus::Counter& windows_sorted();  ///< tidemark_windows_sorted_total
  prometheus::Histogram& window_fill();   ///< tidemark_window_fill_keys: keys of a full window
  prometheus::Histogram&
  merge_seconds();  ///< tidemark_merge_seconds: to sample and merge one window
  prometheus::Counter& sorter_failures();  ///< tidemark_sorter_failures_total
  prometheus::Gauge& streams();            ///< tidemark_streams
  prometheus::Gauge& peers();              ///< tidemark_peers: who have a share of a limit of peers
  /// tidemark_grpc_connections: accepted and not closed yet, with those in a handshake. (Of ingest
  /// tidemark_ingest_connections{source="grpc"} counts calls.)
  prometheus::Gauge& grpc_connections();
  /// tidemark_grpc_connections_unopened_total: ended before gRPC had them: before their first bytes
  /// were whole (server/daemon/first_bytes.h), or in their turn.
  prometheus::Counter& grpc_unopened();
  /// tidemark_grpc_handshakes_delayed_total: waited for their turn (tls.grpc_handshakes_per_s).
  prometheus::Counter& grpc_handshakes_delayed();
  /// tidemark_producers: whose batches are recognised when they come again; one of two streams
  /// counts as two.
  prometheus::Gauge& producers();
  prometheus::Counter& producers_forgotten();  ///< tidemark_producers_forgotten_total
  prometheus::Gauge& summary_bytes();  ///< tidemark_summaries_bytes (promtool forbids "summary")
  /// tidemark_window_bytes: open windows, full ones until they are summarized, the sorted copies of
  /// open ones that streams keep for queries, and free buffers kept for the next windows.
  prometheus::Gauge& window_bytes();
  prometheus::Gauge& dictionary_bytes();  ///< tidemark_dictionary_bytes: text of string streams
  prometheus::Gauge& dictionary_limit_bytes();  ///< tidemark_dictionary_limit_bytes
  prometheus::Gauge& memory_limit_bytes();      ///< tidemark_memory_limit_bytes; 0: no limit
  prometheus::Counter& streams_expired();       ///< tidemark_streams_expired_total
  prometheus::Gauge& subscribers();             ///< tidemark_subscribers
  prometheus::Gauge& named_subscriptions();     ///< tidemark_named_subscriptions
  prometheus::Counter& subscription_answers();  ///< tidemark_subscription_answers_total
  prometheus::Counter& subscription_skipped();  ///< tidemark_subscription_skipped_total
  prometheus::Gauge& log_pending_bytes();       ///< tidemark_log_pending_bytes: not yet synced
  prometheus::Gauge& log_segments();            ///< tidemark_log_segments: files of it
  prometheus::Counter& log_bytes();             ///< tidemark_log_bytes_total: written
  prometheus::Counter& log_syncs();             ///< tidemark_log_syncs_total
  prometheus::Counter& log_failures();          ///< tidemark_log_failures_total: writes and syncs
  prometheus::Counter& snapshots(bool ok);      ///< tidemark_snapshots_total{result}
  /// tidemark_snapshot_timestamp_seconds: when the newest was finished, since 1970; 0: none is
  /// known.
  prometheus::Gauge& snapshot_timestamp();
  prometheus::Gauge& snapshot_seconds();         ///< tidemark_snapshot_seconds: the newest took
  prometheus::Gauge& snapshot_bytes();           ///< tidemark_snapshot_bytes: of the newest
  prometheus::Counter& config_reloads(bool ok);  ///< tidemark_config_reloads_total{result}

  /// The exposition, text format 0.0.4.
  std::string Serialize() const;
  prometheus::Registry& registry();

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_TELEMETRY_METRICS_H_
