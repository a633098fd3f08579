// Sends each request to the GL sorter or to the CPU sorter, by the rule and the rates of
// route_choice.h, so that both sort at once; and to the CPU alone once GL has failed.
#ifndef TIDEMARK_GPU_SORT_ROUTED_SORTER_H_
#define TIDEMARK_GPU_SORT_ROUTED_SORTER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gpu/sort/route_choice.h"
#include "gpu/sort/window_sorter.h"

namespace tidemark::sort {

/// Sort never throws SorterError: what GL fails to sort is sorted on the CPU. A request for which
/// GL failed and every request after it go to the CPU; failures() and last_failure() tell. A
/// request that GL refuses (SorterRefusal) goes to the CPU alone.
///
/// With a table that says always_gl the CPU gets what GL refuses or does not take, and no more.
///
/// SortReduced is GL's alone: it refuses (SorterRefusal, nothing else) what would go to the CPU or
/// what GL refused or failed to do, for the caller to sort whole by Sort. A failure counts as one.
class RoutedSorter final : public WindowSorter {
 public:
  /// Any time that does not go back; called from any thread.
  using Clock = std::function<RouteChoice::Time()>;

  /// `on_failure` is called once for each failed request, on the thread of its caller. `clock`:
  /// what observed rates are measured by; empty: the machine's.
  RoutedSorter(std::string name, std::unique_ptr<WindowSorter> cpu,
               std::unique_ptr<WindowSorter> gl, const RouteTable& table,
               std::function<void(const std::string& message)> on_failure, Clock clock = {});

  std::string_view name() const override { return name_; }
  /// Return cpu.name() or gl.name().
  std::string_view Sort(Channels<std::uint32_t> channels) override { return Route(channels); }
  std::string_view Sort(Channels<std::uint64_t> channels) override { return Route(channels); }
  std::string_view Sort(Channels<Key128> channels) override { return SortOnCpuAlone(channels); }
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
    return gl_works() && choice_.GoesToGl({width_index, lengths}, clock_()) &&
           gl_->Reduces(width_index, lengths);
  }
  /// If they would go to GL as things stand: the CPU sorts them one by one, and other threads may
  /// take the others.
  bool SortsTogether(std::size_t width_index,
                     const std::array<std::size_t, kChannels>& lengths) const override {
    return gl_works() && choice_.SortsTogether({width_index, lengths}, clock_());
  }
  std::shared_ptr<std::pmr::memory_resource> window_memory() const override {
    return gl_->window_memory();
  }
  std::uint64_t failures() const override { return failures_.load(std::memory_order_relaxed); }
  std::string last_failure() const override;
  std::optional<RouteStats> routes() const override {
    return choice_.stats(cpu_->name(), gl_->name());
  }

  /// Whether a request of windows of these lengths goes to GL while GL works and has nothing else
  /// to do: never one of keys of 128 bits.
  bool PrefersGl(std::size_t width_index, const std::array<std::size_t, kChannels>& lengths) const {
    return choice_.PrefersGl({width_index, lengths});
  }

 private:
  // A request under way, on either route.
  class UnderWay;

  bool gl_works() const { return gl_works_.load(std::memory_order_relaxed); }
  template <class Key>
  std::string_view SortOnCpuAlone(Channels<Key> channels) {
    choice_.CountCpuAlone();
    return cpu_->Sort(channels);
  }
  template <class Key>
  std::string_view Route(Channels<Key> channels);
  template <class Key>
  std::string_view RouteReduced(Channels<Key> channels, std::span<const WindowNeeds> needs,
                                std::span<ReducedWindow<Key>> reduced);
  void Failed(const std::string& message);

  const std::string name_;
  const std::unique_ptr<WindowSorter> cpu_;
  const std::unique_ptr<WindowSorter> gl_;
  const std::function<void(const std::string&)> on_failure_;
  const Clock clock_;
  RouteChoice choice_;

  std::atomic<bool> gl_works_{true};
  std::atomic<std::uint64_t> failures_{0};
  mutable std::mutex mutex_;
  std::string last_failure_;  // guarded by mutex_
};

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_ROUTED_SORTER_H_
