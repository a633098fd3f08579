#include "server/pipeline/pipeline.h"

#include <algorithm>
#include <utility>

#include "gpu/sort/route_choice.h"
#include "server/window/call_back.h"
#include "server/window/concat.h"

namespace tidemark::server {
namespace {

constexpr std::string_view kSortQueue = "sort_keys";

// Whether it divides windows between GL and the CPU.
bool UsesBoth(const sort::WindowSorter& sorter) {
  const std::optional<sort::RouteStats> routes = sorter.routes();
  return routes && routes->chooses;
}

std::uint64_t PendingKeysMax(const PipelineOptions& options,
                             const sort::SorterSelection& selection) {
  if (options.pending_keys_max != 0) return options.pending_keys_max;
  const auto workers = static_cast<std::uint64_t>(options.sort_workers);
  if (UsesBoth(*selection.sorter)) {
    // What keeps GL busy, and one request and a window for each worker waiting behind.
    const std::uint64_t gl_requests = sort::RouteTable{}.gl_requests + 1;
    return options.window_limits.max * (gl_requests * sort::kChannels + 2 * workers);
  }
  const bool gl = selection.report.active.starts_with("gl-");
  return 2 * options.window_limits.max * std::max<std::uint64_t>(workers, gl ? sort::kChannels : 1);
}

int Workers(const PipelineOptions& options, const sort::WindowSorter& sorter) {
  return options.sort_workers + (UsesBoth(sorter) ? options.sort_workers_for_gl : 0);
}

}  // namespace

Pipeline::Pipeline(const PipelineOptions& options, sort::SorterSelection sorter, Metrics& metrics,
                   std::function<void(const std::string&)> on_sorter_error)
    : metrics_(metrics),
      context_{.window_limits = options.window_limits,
               .item_bytes_max = options.item_bytes_max,
               .text = TextBudget(options.text_bytes_max),
               .memory = {options.memory_bytes_max, options.memory_used},
               .producers = ProducerMemory(options.producers_max),
               .pools = {},
               .merged =
                   [&metrics](std::chrono::duration<double> took) {
                     metrics.merge_seconds().Observe(took.count());
                   },
               .dropped_datagrams = [&metrics] { return metrics.Dropped(); }},
      registry_(options.stream_defaults, options.registry_limits, context_),
      gate_(PendingKeysMax(options, sorter)),
      idle_trims_max_(options.idle_trims_max),
      report_(std::move(sorter.report)),
      sorter_(std::move(sorter.sorter)),
      // Measured no further: the sorters of the factory do not throw, and any other runs on it at
      // most until the operator has looked.
      fallback_(sort::MakeUnmeasuredCpuSorter()),
      stage_(
          SortStageOptions{.workers = Workers(options, *sorter_)}, *sorter_, *fallback_, metrics,
          [this](std::uint64_t weight) { gate_.Leave(weight); }, std::move(on_sorter_error)) {
  context_.pools.UseMemory(sorter_->window_memory());
  metrics_.QueueLimit(kSortQueue).Set(static_cast<double>(gate_.limit()));
  metrics_.memory_limit_bytes().Set(static_cast<double>(options.memory_bytes_max));
  metrics_.dictionary_limit_bytes().Set(static_cast<double>(options.text_bytes_max));
  TellSorter();
}

Pipeline::~Pipeline() { Stop(); }

void Pipeline::Start() { stage_.Start(); }

void Pipeline::Stop() {
  gate_.Close();
  stage_.Stop();
}

absl::StatusOr<StreamHandle> Pipeline::Open(std::string_view name,
                                            std::optional<ElementType> type) {
  return registry_.FindOrCreate(name, type);
}

ElementType Pipeline::TypeOf(const StreamHandle& stream) const {
  return stream->settings().element();
}

std::string_view Pipeline::NameOf(const StreamHandle& stream) const { return stream->name(); }

AppendResult Pipeline::Dispatch(AppendResult result, std::vector<Window> full) {
  if (!result.duplicate) values_.fetch_add(result.accepted, std::memory_order_relaxed);
  for (const Window& window : full) gate_.Enter(window.weight());
  stage_.Enqueue(std::move(full));
  return result;
}

AppendResult Pipeline::AppendPacked(const StreamHandle& stream, std::span<const std::byte> values,
                                    const BatchStamp& stamp) {
  std::vector<Window> full;
  AppendResult result = stream->AppendPacked(values, stamp, full);
  return Dispatch(std::move(result), std::move(full));
}

AppendResult Pipeline::AppendNumbers(const StreamHandle& stream, std::span<const double> values,
                                     const BatchStamp& stamp) {
  std::vector<Window> full;
  AppendResult result = stream->AppendNumbers(values, stamp, full);
  return Dispatch(std::move(result), std::move(full));
}

AppendResult Pipeline::AppendStrings(const StreamHandle& stream,
                                     std::span<const std::string_view> values,
                                     const BatchStamp& stamp) {
  std::vector<Window> full;
  AppendResult result = stream->AppendStrings(values, {}, stamp, full);
  return Dispatch(std::move(result), std::move(full));
}

AppendResult Pipeline::AppendPairs(const StreamHandle& stream, std::span<const std::byte> values,
                                   std::span<const std::byte> payloads, const BatchStamp& stamp) {
  std::vector<Window> full;
  AppendResult result = stream->AppendPairs(values, payloads, stamp, full);
  return Dispatch(std::move(result), std::move(full));
}

AppendResult Pipeline::AppendStringPairs(const StreamHandle& stream,
                                         std::span<const std::string_view> values,
                                         std::span<const std::byte> payloads,
                                         const BatchStamp& stamp) {
  std::vector<Window> full;
  AppendResult result = stream->AppendStrings(values, payloads, stamp, full);
  return Dispatch(std::move(result), std::move(full));
}

void Pipeline::CountRefused(const StreamHandle& stream, std::uint64_t values) {
  stream->CountRefusedWhole(values);
}

SorterInUse Pipeline::sorter_in_use() const {
  if (sorter_->failures() == 0) return {report_.active, report_.reason, report_.why};
  return {"cpu", Concat("cpu since a failure of ", report_.active, ": ", sorter_->last_failure()),
          "gl_failed"};
}

void Pipeline::WhenReady(std::function<void()> resume) {
  if (!LogBehind()) {
    gate_.WhenReady(std::move(resume));
    return;
  }
  context_.log->WhenCaughtUp(OfSameAsker(resume, [this, resume] { gate_.WhenReady(resume); }));
}

void Pipeline::WhenDurable(std::uint64_t sequence, Durable done) {
  if (context_.log == nullptr) {
    done(sequence, absl::OkStatus());
  } else {
    context_.log->WhenDurable(sequence, std::move(done));
  }
}

void Pipeline::TellSorter() {
  const SorterInUse in_use = sorter_in_use();
  metrics_.SetSorterInfo(report_.requested, in_use.active, in_use.why, report_.gl.renderer);
}

void Pipeline::TellRoutes() {
  const std::optional<sort::RouteStats> routes = sorter_->routes();
  if (!routes) return;
  for (const sort::RouteStats::Rate& rate : routes->rates) {
    metrics_.SortObservedRate(rate.sorter, rate.key_bits, rate.window).Set(rate.keys_per_second);
  }
  const std::lock_guard lock(routes_told_mutex_);
  for (const sort::RouteStats::Count& count : routes->counts) {
    std::uint64_t& told = routes_told_[{count.sorter, count.reason}];
    if (count.requests <= told) continue;  // another scrape has told of more
    metrics_.SortRoutes(count.sorter, count.reason)
        .Increment(static_cast<double>(count.requests - told));
    told = count.requests;
  }
}

void Pipeline::UpdateGauges() {
  if (sorter_->failures() > 0 && !sorter_failure_told_.exchange(true)) TellSorter();
  TellRoutes();
  std::size_t summary_bytes = 0;
  std::size_t window_bytes = context_.pools.bytes();
  const std::vector<StreamHandle> streams = registry_.All();
  for (const StreamHandle& stream : streams) {
    const StreamStats stats = stream->Stats();
    summary_bytes +=
        stats.quantile_bytes + stats.frequency_bytes + stats.sum_bytes + stats.sliding_bytes;
    window_bytes += stats.window_bytes;
  }
  metrics_.streams().Set(static_cast<double>(streams.size()));
  metrics_.named_subscriptions().Set(static_cast<double>(registry_.subscriptions()));
  metrics_.summary_bytes().Set(static_cast<double>(summary_bytes));
  metrics_.window_bytes().Set(static_cast<double>(window_bytes));
  metrics_.producers().Set(static_cast<double>(context_.producers.known()));
  metrics_.producers_forgotten().Increment(static_cast<double>(context_.producers.TakeForgotten()));
  metrics_.dictionary_bytes().Set(static_cast<double>(context_.text.held()));
  metrics_.QueueDepth(kSortQueue).Set(static_cast<double>(gate_.keys()));
}

void Pipeline::Trim() {
  // Then senders are told to wait, and silence says nothing.
  const bool held_up = saturated() || (context_.log != nullptr && context_.log->failing());
  for (const StreamHandle& stream : registry_.All()) {
    stream->TrimStorage();
    if (held_up) stream->RestartIdle();
  }
  if (idle_trims_max_ != 0 && !held_up) {
    metrics_.streams_expired().Increment(
        static_cast<double>(registry_.DeleteIdle(idle_trims_max_)));
  }
  if (gate_.keys() == 0) context_.pools.Trim();
  context_.memory.Look();
}

}  // namespace tidemark::server
