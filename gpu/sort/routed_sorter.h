// Sends each request to the GL sorter or to the CPU sorter, whichever is expected to be faster, and
// to the CPU alone once GL has failed.
#ifndef TIDEMARK_GPU_SORT_ROUTED_SORTER_H_
#define TIDEMARK_GPU_SORT_ROUTED_SORTER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "gpu/sort/window_class.h"
#include "gpu/sort/window_sorter.h"

namespace tidemark::sort {

/// What the route of a request is chosen by.
struct RouteTable {
  /// Every request goes to GL, whatever it costs (a GL sorter by name).
  bool always_gl = false;
  /// Longest window that GL takes.
  std::size_t gl_window_max = 0;
  /// Seconds for one request of four windows of the class's size on GL, transfers included;
  /// infinity where GL is not to be used. [key width][window class]
  std::array<std::array<double, kWindowClasses>, kKeyWidths> gl_request_seconds{};
  /// Seconds a key on the CPU. [key width][window class]
  std::array<std::array<double, kWindowClasses>, kKeyWidths> cpu_key_seconds{};
};

/// Sort never throws SorterError: what GL fails to sort is sorted on the CPU. A request for which
/// GL failed and every request after it go to the CPU; failures() and last_failure() tell. A
/// request that GL refuses (SorterRefusal) goes to the CPU alone.
///
/// SortReduced is GL's alone: it refuses (SorterRefusal, nothing else) what would go to the CPU or
/// what GL refused or failed to do, for the caller to sort whole by Sort. A failure counts as one.
class RoutedSorter final : public WindowSorter {
 public:
  /// `on_failure` is called once for each failed request, on the thread of its caller.
  RoutedSorter(std::string name, std::unique_ptr<WindowSorter> cpu,
               std::unique_ptr<WindowSorter> gl, const RouteTable& table,
               std::function<void(const std::string& message)> on_failure);

  std::string_view name() const override { return name_; }
  /// Return cpu.name() or gl.name().
  std::string_view Sort(Channels<std::uint32_t> channels) override { return Route(channels); }
  std::string_view Sort(Channels<std::uint64_t> channels) override { return Route(channels); }
  std::string_view Sort(Channels<Key128> channels) override { return cpu_->Sort(channels); }
  std::string_view SortReduced(Channels<std::uint32_t> channels, std::span<const WindowNeeds> needs,
                               std::span<ReducedWindow<std::uint32_t>> reduced) override {
    return RouteReduced(channels, needs, reduced);
  }
  std::string_view SortReduced(Channels<std::uint64_t> channels, std::span<const WindowNeeds> needs,
                               std::span<ReducedWindow<std::uint64_t>> reduced) override {
    return RouteReduced(channels, needs, reduced);
  }
  bool Reduces(std::size_t width_index,
               const std::array<std::size_t, kChannels>& lengths) const override {
    return SortsTogether(width_index, lengths) && gl_->Reduces(width_index, lengths);
  }
  /// If they would go to GL: the CPU sorts them one by one.
  bool SortsTogether(std::size_t width_index,
                     const std::array<std::size_t, kChannels>& lengths) const override {
    return gl_works_.load(std::memory_order_relaxed) && PrefersGl(width_index, lengths);
  }
  std::shared_ptr<std::pmr::memory_resource> window_memory() const override {
    return gl_->window_memory();
  }
  std::uint64_t failures() const override { return failures_.load(std::memory_order_relaxed); }
  std::string last_failure() const override;

  /// Whether a request of windows of these lengths goes to GL while GL works: never one of keys of
  /// 128 bits.
  bool PrefersGl(std::size_t width_index, const std::array<std::size_t, kChannels>& lengths) const;

 private:
  template <class Key>
  std::string_view Route(Channels<Key> channels);
  template <class Key>
  std::string_view RouteReduced(Channels<Key> channels, std::span<const WindowNeeds> needs,
                                std::span<ReducedWindow<Key>> reduced);
  void Failed(const std::string& message);

  const std::string name_;
  const std::unique_ptr<WindowSorter> cpu_;
  const std::unique_ptr<WindowSorter> gl_;
  const RouteTable table_;
  const std::function<void(const std::string&)> on_failure_;

  std::atomic<bool> gl_works_{true};
  std::atomic<std::uint64_t> failures_{0};
  mutable std::mutex mutex_;
  std::string last_failure_;  // guarded by mutex_
};

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_ROUTED_SORTER_H_
