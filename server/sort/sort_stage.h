// The stage between full windows and their streams: a queue, workers, and the sorter.
#ifndef TIDEMARK_SERVER_SORT_SORT_STAGE_H_
#define TIDEMARK_SERVER_SORT_SORT_STAGE_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gpu/sort/pair_sort.h"
#include "gpu/sort/window_sorter.h"
#include "server/telemetry/metrics.h"
#include "server/window/stream.h"

namespace tidemark::server {

struct SortStageOptions {
  int workers = 1;
};

/// Workers take waiting windows of one key width, as many as the sorter says that it sorts together
/// (up to four for a GPU, one a channel; one for the CPU), sort them, and give each back to its
/// stream with Stream::Commit, on the same thread: what a summary takes from a window is taken
/// while the window is in that core's cache.
///
/// A window whose stream takes digests is not sorted, unless the sorter sorts several together:
/// the worker makes a digest of it (window_grid.h), with the same bits as from the sorted window.
///
/// Of windows whose streams take less than the sorted keys (ReducedForm) the sorter is asked for
/// that alone, where it offers it; the keys are then left as they are. If it refuses or fails, the
/// windows are sorted whole.
///
/// A request that the sorter refuses (SorterError) is sorted by `fallback`: nothing is lost.
///
/// Queue: bounded by the FlowGate in front (sources pause while it is saturated).
/// Thread: Enqueue from any. Stop sorts what is queued, then joins.
class SortStage {
 public:
  /// `on_published(weight)` is called by a worker for each window that reached its summaries, with
  /// its Window::weight().
  SortStage(SortStageOptions options, sort::WindowSorter& sorter, sort::WindowSorter& fallback,
            Metrics& metrics, std::function<void(std::uint64_t weight)> on_published,
            std::function<void(const std::string& error)> on_sorter_error);
  ~SortStage();
  SortStage(const SortStage&) = delete;
  SortStage& operator=(const SortStage&) = delete;

  void Start();
  void Enqueue(std::vector<Window> windows);
  void Stop();

  /// Sorts one array on the calling thread: the copy of an open window, for a view.
  template <class Key>
  void SortNow(std::span<Key> keys) {
    if (keys.size() < 2) return;
    const std::span<Key> channel[] = {keys};
    SortChannels<Key>(channel);
  }

  /// The same for keys with payloads, which move along; see gpu/sort/pair_sort.h.
  template <class Key>
  void SortPairsNow(std::span<Key> keys, std::span<std::uint64_t> payloads);

  /// The same for a few keys, on the CPU whatever the sorter: for threads that must not wait.
  template <class Key>
  void SortFewNow(std::span<Key> keys) {
    if (keys.size() < 2) return;
    const std::span<Key> channel[] = {keys};
    fallback_.Sort(channel);
  }
  template <class Key>
  void SortFewPairsNow(std::span<Key> keys, std::span<std::uint64_t> payloads) {
    sort::SortPairs(keys, payloads, fallback_);
  }

 private:
  class Digester;  // of one worker

  void Work(int worker);
  /// Whether a worker that has so many windows like this one makes digests of them in place of
  /// having them sorted.
  bool IsDigested(const Window& window, std::size_t windows) const;
  std::vector<Window> TakeRequest();
  /// Windows at the front of the queue that make the next request. REQUIRES: mutex_ held, and one
  /// is waiting.
  std::size_t RequestSize() const;
  /// Returns the name of the sorter that sorted; its time is counted under that name.
  template <class Key>
  std::string_view SortChannels(sort::Channels<Key> channels);
  /// Calls sort(sorter) with the sorter, or with the fallback if that fails, and sets `start` to
  /// when the one that succeeded began.
  std::string_view SortOrFallBack(const auto& sort, std::chrono::steady_clock::time_point& start);
  /// The same, and counts the time.
  std::string_view Timed(const auto& sort);
  /// The same, but windows may come back reduced. Null if that is not to be had.
  template <class Key>
  std::optional<std::string_view> SortReduced(std::vector<Window>& request,
                                              sort::Channels<Key> channels);
  template <class Key>
  void SortRequest(std::vector<Window>& request);

  const SortStageOptions options_;
  sort::WindowSorter& sorter_;
  sort::WindowSorter& fallback_;
  Metrics& metrics_;
  const std::function<void(std::uint64_t)> on_published_;
  const std::function<void(const std::string&)> on_sorter_error_;

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Window> queue_;  // guarded by mutex_
  bool stopping_ = false;     // guarded by mutex_
  std::vector<std::thread> workers_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_SORT_SORT_STAGE_H_
