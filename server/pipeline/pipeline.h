// The stages in one piece, without sockets: streams, sort stage, flow control.
#ifndef TIDEMARK_SERVER_PIPELINE_PIPELINE_H_
#define TIDEMARK_SERVER_PIPELINE_PIPELINE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "gpu/sort/sorter_factory.h"
#include "server/sort/sort_stage.h"
#include "server/telemetry/metrics.h"
#include "server/window/flow_gate.h"
#include "server/window/ingest_sink.h"
#include "server/window/stream_registry.h"

namespace tidemark::server {

struct PipelineOptions {
  CapacityLimits window_limits;
  StreamSettings stream_defaults;
  RegistryLimits registry_limits;
  std::size_t item_bytes_max = 1024;
  /// Bytes that the dictionaries of all string streams hold together: 64 windows full of text.
  std::size_t text_bytes_max = std::size_t{256} << 20;
  /// See StreamContext::memory: the limit, 0 for none, and what the process holds.
  std::uint64_t memory_bytes_max = 0;
  std::function<std::uint64_t()> memory_used = nullptr;
  /// A stream that gets nothing between so many calls of Trim is deleted; 0: never.
  std::uint32_t idle_trims_max = 0;
  /// Of all streams, whose batches are recognised when they come again (producers.h).
  std::size_t producers_max = 100'000;
  int sort_workers = 1;
  /// More of them where the sorter divides windows between GL and the CPU: those that wait for GL
  /// use no core.
  int sort_workers_for_gl = 0;
  /// Keys in windows that are full and not summarized (see Window::weight for their text): sources
  /// pause above it. 0: two windows of the largest size for each sort worker, or two requests of a
  /// GL sorter; with GL and the CPU at once, four requests of GL and two windows for each
  /// worker. That keeps them busy; more only makes answers wait longer.
  std::uint64_t pending_keys_max = 0;
};

/// The sorter that sorts now; changes when a GPU fails.
struct SorterInUse {
  std::string active;
  std::string reason;  ///< one sentence
  std::string why;     ///< in a word; see SorterReport::why
};

/// Thread: every method from any. Start before the first batch, Stop after the last.
class Pipeline final : public IngestSink {
 public:
  Pipeline(const PipelineOptions& options, sort::SorterSelection sorter, Metrics& metrics,
           std::function<void(const std::string& error)> on_sorter_error);
  ~Pipeline() override;

  void Start();
  /// Sorts and summarizes every full window, then stops the workers. Sources that pause are
  /// resumed.
  void Stop();

  absl::StatusOr<StreamHandle> Open(std::string_view name,
                                    std::optional<ElementType> type) override;
  ElementType TypeOf(const StreamHandle& stream) const override;
  std::string_view NameOf(const StreamHandle& stream) const override;
  AppendResult AppendPacked(const StreamHandle& stream, std::span<const std::byte> values,
                            const BatchStamp& stamp) override;
  AppendResult AppendPairs(const StreamHandle& stream, std::span<const std::byte> values,
                           std::span<const std::byte> payloads, const BatchStamp& stamp) override;
  AppendResult AppendNumbers(const StreamHandle& stream, std::span<const double> values,
                             const BatchStamp& stamp) override;
  AppendResult AppendStrings(const StreamHandle& stream, std::span<const std::string_view> values,
                             const BatchStamp& stamp) override;
  AppendResult AppendStringPairs(const StreamHandle& stream,
                                 std::span<const std::string_view> values,
                                 std::span<const std::byte> payloads,
                                 const BatchStamp& stamp) override;
  void CountRefused(const StreamHandle& stream, std::uint64_t values) override;
  std::uint64_t deletions() const override { return registry_.deletions(); }
  /// By windows that are not summarized, or by batches that are not in the log.
  bool saturated() const override { return gate_.saturated() || LogBehind(); }
  void WhenReady(std::function<void()> resume) override;

  void WhenDurable(std::uint64_t sequence, Durable done) override;

  StreamRegistry& streams() { return registry_; }
  /// From now on `log` is told what streams take in, and acknowledgements wait for it; null: nobody
  /// is told. REQUIRES: nothing else uses the pipeline. `log` outlives its use.
  void UseLog(StreamLog* log) {
    context_.log = log;
    context_.replayed_sequence = log == nullptr ? 0 : log->last_sequence();
  }
  /// Null if there is none.
  StreamLog* log() { return context_.log; }
  /// While true, limits that many streams share and those of names and items are not looked at: of
  /// batches that were taken in before. REQUIRES: as UseLog.
  void SetReplaying(bool replaying) { context_.replaying = replaying; }
  /// What was found and chosen at start.
  const sort::SorterReport& sorter_report() const { return report_; }
  /// What the sorter has seen since, if it divides windows between others.
  std::optional<sort::RouteStats> routes() const { return sorter_->routes(); }
  SorterInUse sorter_in_use() const;
  /// Values accepted since the start.
  std::uint64_t values() const { return values_.load(std::memory_order_relaxed); }
  /// Sorts on the calling thread; see SortStage::SortNow.
  SortStage& sort_stage() { return stage_; }

  /// Brings the gauges that are sums over streams, and the sorter in use, up to date: before a
  /// scrape.
  void UpdateGauges();
  /// Gives memory of idle streams and pools back, and deletes streams that were idle for too long;
  /// called now and then by the daemon.
  void Trim();

 private:
  AppendResult Dispatch(AppendResult result, std::vector<Window> full);
  bool LogBehind() const { return context_.log != nullptr && context_.log->behind(); }
  void TellSorter();
  void TellRoutes();

  Metrics& metrics_;
  StreamContext context_;
  StreamRegistry registry_;
  FlowGate gate_;
  const std::uint32_t idle_trims_max_;
  const sort::SorterReport report_;
  const std::unique_ptr<sort::WindowSorter> sorter_;
  const std::unique_ptr<sort::WindowSorter> fallback_;
  SortStage stage_;
  std::atomic<std::uint64_t> values_{0};
  std::atomic<bool> sorter_failure_told_{false};
  std::mutex routes_told_mutex_;
  // Requests by sorter and reason that the metric knows of. Guarded by routes_told_mutex_.
  std::map<std::pair<std::string_view, std::string_view>, std::uint64_t> routes_told_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_PIPELINE_PIPELINE_H_
