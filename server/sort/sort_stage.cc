#include "server/sort/sort_stage.h"

#include <array>
#include <chrono>
#include <utility>

#include "gpu/sort/window_class.h"
#include "server/threads/thread_role.h"
#include "server/window/concat.h"

namespace tidemark::server {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

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

std::size_t SortStage::RequestSize() const {
  std::array<std::size_t, sort::kChannels> lengths{};
  std::size_t windows = 0;
  const bool wide = queue_.front().wide();
  for (const Window& window : queue_) {
    if (windows == lengths.size() || window.wide() != wide) break;
    // Keys with payloads are sorted by a request of their own.
    if (window.has_payloads()) {
      if (windows == 0) return 1;
      break;
    }
    lengths[windows++] = window.size();
  }
  const std::size_t width_index =
      wide ? sort::WidthIndex<std::uint64_t>() : sort::WidthIndex<std::uint32_t>();
  while (windows > 1 && !sorter_.SortsTogether(width_index, lengths)) lengths[--windows] = 0;
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

std::string_view SortStage::Timed(const auto& sort) {
  auto start = std::chrono::steady_clock::now();
  std::string_view by;
  try {
    by = sort(sorter_);
  } catch (const sort::SorterError& error) {
    metrics_.sorter_failures().Increment();
    on_sorter_error_(error.what());
    start = std::chrono::steady_clock::now();
    by = sort(fallback_);
  }
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

template <class Key>
void SortStage::SortPairsNow(std::span<Key> keys, std::span<std::uint64_t> payloads) {
  Timed([&](sort::WindowSorter& sorter) { return sort::SortPairs(keys, payloads, sorter); });
}

template void SortStage::SortPairsNow(std::span<std::uint32_t>, std::span<std::uint64_t>);
template void SortStage::SortPairsNow(std::span<std::uint64_t>, std::span<std::uint64_t>);

template <class Key>
void SortStage::SortRequest(std::vector<Window>& request) {
  std::array<std::span<Key>, sort::kChannels> channels;
  std::size_t keys = 0;
  for (std::size_t i = 0; i < request.size(); ++i) {
    channels[i] = std::get<KeyBuffer<Key>>(request[i].keys).keys();
    keys += channels[i].size();
    metrics_.window_fill().Observe(static_cast<double>(channels[i].size()));
  }
  const std::string_view by =
      request.front().has_payloads()
          ? Timed([&](sort::WindowSorter& sorter) {
              return sort::SortPairs<Key>(channels[0], request.front().payloads, sorter);
            })
          : SortChannels<Key>(std::span(channels.data(), request.size()));
  metrics_.windows_sorted().Increment(static_cast<double>(request.size()));
  metrics_.SortKeys(by).Increment(static_cast<double>(keys));
}

void SortStage::Work(int worker) {
  EnterThreadRole(ThreadRole::kSort, Concat("sort-", worker));
  while (true) {
    std::vector<Window> request = TakeRequest();
    if (request.empty()) return;  // stopping, and nothing is left
    if (request.front().wide()) {
      SortRequest<std::uint64_t>(request);
    } else {
      SortRequest<std::uint32_t>(request);
    }
    for (Window& window : request) {
      const StreamHandle stream = window.stream;
      stream->Commit(std::move(window), on_published_);
    }
  }
}

}  // namespace tidemark::server
