#include "server/sort/sort_stage.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "gpu/sort/window_class.h"
#include "server/threads/thread_role.h"
#include "server/window/concat.h"
#include "summaries/window_grid.h"

namespace tidemark::server {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

static_assert(sort::WidthIndex<std::uint32_t>() == 0 && sort::WidthIndex<std::uint64_t>() == 1 &&
              sort::WidthIndex<Key128>() == 2);  // as Window::width_index()

/// What digests without sorting are counted under, in place of a sorter.
constexpr std::string_view kGridName = "grid";

}  // namespace

/// Digests without sorting. What has to be sorted for them goes to the stage's sorter, uncounted:
/// samples and parts of windows.
class SortStage::Digester {
 public:
  explicit Digester(SortStage& stage) : stage_(stage) {}

  void Digest(Window& window) {
    // Of keys of 128 bits nobody takes a digest.
    if (window.width_index() == sort::WidthIndex<std::uint64_t>()) {
      Digest(window, grid64_);
    } else {
      Digest(window, grid32_);
    }
  }

 private:
  template <class Key>
  void Digest(Window& window, WindowGrid<Key>& grid) {
    const std::span<Key> keys = std::get<KeyBuffer<Key>>(window.keys).keys();
    const double size = static_cast<double>(keys.size());
    stage_.metrics_.window_fill().Observe(size);
    const auto start = std::chrono::steady_clock::now();
    GridMemory memory = window.stream->grid_memory().load(std::memory_order_relaxed);
    window.digest = grid.Digest(keys, window.digest_stride, memory);
    window.stream->grid_memory().store(memory, std::memory_order_relaxed);
    const std::string_view by = grid.path() == DigestPath::kSorted ? sorted_by_ : kGridName;
    stage_.metrics_.SortSeconds(by).Observe(SecondsSince(start));
    stage_.metrics_.windows_sorted().Increment();
    stage_.metrics_.SortKeys(by).Increment(size);
  }

  template <class Key>
  void Sort(std::span<Key> keys) {
    const std::span<Key> channel[] = {keys};
    auto start = std::chrono::steady_clock::now();
    sorted_by_ = stage_.SortOrFallBack(
        [&](sort::WindowSorter& sorter) { return sorter.Sort(sort::Channels<Key>(channel)); },
        start);
  }

  SortStage& stage_;
  std::string_view sorted_by_;
  WindowGrid<std::uint32_t> grid32_{[this](std::span<std::uint32_t> keys) { Sort(keys); }};
  WindowGrid<std::uint64_t> grid64_{[this](std::span<std::uint64_t> keys) { Sort(keys); }};
};

SortStage::SortStage(SortStageOptions options, sort::WindowSorter& sorter,
                     sort::WindowSorter& fallback, Metrics& metrics,
                     std::function<void(std::uint64_t)> on_published,
                     std::function<void(const std::string&)> on_sorter_error)
    : options_(options),
      sorter_(sorter),
      fallback_(fallback),
      metrics_(metrics),
      on_published_(std::move(on_published)),
      on_sorter_error_(std::move(on_sorter_error)) {}

SortStage::~SortStage() { Stop(); }

void SortStage::Start() {
  for (int worker = 0; worker < options_.workers; ++worker) {
    workers_.emplace_back([this, worker] { Work(worker); });
  }
}

void SortStage::Enqueue(std::vector<Window> windows) {
  if (windows.empty()) return;
  const bool several = windows.size() > 1;
  {
    const std::lock_guard lock(mutex_);
    for (Window& window : windows) queue_.push_back(std::move(window));
  }
  if (several) {
    arrived_.notify_all();
  } else {
    arrived_.notify_one();
  }
}

void SortStage::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

bool SortStage::IsDigested(const Window& window, std::size_t windows) const {
  if (window.digest_stride == 0) return false;
  std::array<std::size_t, sort::kChannels> lengths{};
  std::fill_n(lengths.begin(), windows, window.size());
  return !sorter_.SortsTogether(window.width_index(), lengths);
}

std::size_t SortStage::RequestSize() const {
  std::array<std::size_t, sort::kChannels> lengths{};
  std::size_t windows = 0;
  const std::size_t width = queue_.front().width_index();
  for (const Window& window : queue_) {
    if (windows == lengths.size() || window.width_index() != width) break;
    // Keys with payloads are sorted by a request of their own.
    if (window.has_payloads() || IsDigested(window, sort::kChannels)) {
      if (windows == 0) return 1;
      break;
    }
    lengths[windows++] = window.size();
  }
  while (windows > 1 && !sorter_.SortsTogether(width, lengths)) {
    lengths[--windows] = 0;
  }
  return windows;
}

std::vector<Window> SortStage::TakeRequest() {
  std::vector<Window> request;
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
  if (queue_.empty()) return request;
  for (std::size_t windows = RequestSize(); windows > 0; --windows) {
    request.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return request;
}

std::string_view SortStage::SortOrFallBack(const auto& sort,
                                           std::chrono::steady_clock::time_point& start) {
  try {
    return sort(sorter_);
  } catch (const sort::SorterError& error) {
    metrics_.sorter_failures().Increment();
    on_sorter_error_(error.what());
    start = std::chrono::steady_clock::now();
    return sort(fallback_);
  }
}

std::string_view SortStage::Timed(const auto& sort) {
  auto start = std::chrono::steady_clock::now();
  const std::string_view by = SortOrFallBack(sort, start);
  // Only the sorter knows to whom it gave the request, so that the metric is looked up each time.
  metrics_.SortSeconds(by).Observe(SecondsSince(start));
  return by;
}

template <class Key>
std::string_view SortStage::SortChannels(sort::Channels<Key> channels) {
  return Timed([&](sort::WindowSorter& sorter) { return sorter.Sort(channels); });
}

template std::string_view SortStage::SortChannels(sort::Channels<std::uint32_t>);
template std::string_view SortStage::SortChannels(sort::Channels<std::uint64_t>);
template std::string_view SortStage::SortChannels(sort::Channels<Key128>);

template <class Key>
void SortStage::SortPairsNow(std::span<Key> keys, std::span<std::uint64_t> payloads) {
  Timed([&](sort::WindowSorter& sorter) { return sort::SortPairs(keys, payloads, sorter); });
}

template void SortStage::SortPairsNow(std::span<std::uint32_t>, std::span<std::uint64_t>);
template void SortStage::SortPairsNow(std::span<std::uint64_t>, std::span<std::uint64_t>);
template void SortStage::SortPairsNow(std::span<Key128>, std::span<std::uint64_t>);

namespace {

template <class Key>
ReducedForm<Key> FormOf(sort::ReducedWindow<Key> from, std::uint64_t count) {
  ReducedForm<Key> form;
  if (from.whole) return form;
  form.count = count;
  form.smallest = from.smallest;
  form.samples = std::move(from.samples);
  form.items.reserve(from.runs.size());
  std::uint32_t before = 0;
  for (const auto& run : from.runs) {
    form.items.push_back({run.key, run.end - before});
    before = run.end;
  }
  return form;
}

sort::WindowNeeds NeedsOf(const Window& window) {
  sort::WindowNeeds needs;
  if (const auto stride = static_cast<std::uint32_t>(window.reduced_needs.sample_stride)) {
    needs.samples = {stride - 1, stride};
  }
  needs.runs = window.reduced_needs.items;
  return needs;
}

}  // namespace

template <class Key>
std::optional<std::string_view> SortStage::SortReduced(std::vector<Window>& request,
                                                       sort::Channels<Key> channels) {
  std::array<std::size_t, sort::kChannels> lengths{};
  std::array<sort::WindowNeeds, sort::kChannels> needs;
  bool any = false;
  for (std::size_t i = 0; i < request.size(); ++i) {
    lengths[i] = channels[i].size();
    needs[i] = NeedsOf(request[i]);
    any = any || !needs[i].whole();
  }
  if (!any || !sorter_.Reduces(sort::WidthIndex<Key>(), lengths)) return std::nullopt;
  std::array<sort::ReducedWindow<Key>, sort::kChannels> reduced;
  const auto start = std::chrono::steady_clock::now();
  std::string_view by;
  try {
    by = sorter_.SortReduced(channels, std::span(needs).first(request.size()),
                             std::span(reduced).first(request.size()));
  } catch (const sort::SorterError&) {
    return std::nullopt;  // sorted whole; a sorter that is broken fails there, too, and is counted
  }
  metrics_.SortSeconds(by).Observe(SecondsSince(start));
  for (std::size_t i = 0; i < request.size(); ++i) {
    request[i].reduced = FormOf(std::move(reduced[i]), lengths[i]);
  }
  return by;
}

template <class Key>
void SortStage::SortRequest(std::vector<Window>& request) {
  std::array<std::span<Key>, sort::kChannels> channels;
  std::size_t keys = 0;
  for (std::size_t i = 0; i < request.size(); ++i) {
    channels[i] = std::get<KeyBuffer<Key>>(request[i].keys).keys();
    keys += channels[i].size();
    metrics_.window_fill().Observe(static_cast<double>(channels[i].size()));
  }
  const auto sort = [&] {
    if (request.front().has_payloads()) {
      return Timed([&](sort::WindowSorter& sorter) {
        return sort::SortPairs<Key>(channels[0], request.front().payloads, sorter);
      });
    }
    const sort::Channels<Key> all(channels.data(), request.size());
    if constexpr (sort::WidthIndex<Key>() < sort::kGlKeyWidths) {
      if (const auto by = SortReduced<Key>(request, all)) return *by;
    }
    return SortChannels<Key>(all);
  };
  const std::string_view by = sort();
  metrics_.windows_sorted().Increment(static_cast<double>(request.size()));
  metrics_.SortKeys(by).Increment(static_cast<double>(keys));
}

void SortStage::Work(int worker) {
  EnterThreadRole(ThreadRole::kSort, Concat("sort-", worker));
  Digester digester(*this);
  while (true) {
    std::vector<Window> request = TakeRequest();
    if (request.empty()) return;  // stopping, and nothing is left
    // Asked again: it may be alone, and what the sorter sorts together may have changed since.
    if (request.size() == 1 && IsDigested(request.front(), 1)) {
      digester.Digest(request.front());
    } else {
      WithKeyOf(request.front().stream->type(), [&]<class Key>(Key) { SortRequest<Key>(request); });
    }
    for (Window& window : request) {
      const StreamHandle stream = window.stream;
      stream->Commit(std::move(window), on_published_);
    }
  }
}

}  // namespace tidemark::server
