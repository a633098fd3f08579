#include "gpu/sort/routed_sorter.h"

#include <chrono>
#include <utility>

namespace tidemark::sort {

RoutedSorter::RoutedSorter(std::string name, std::unique_ptr<WindowSorter> cpu,
                           std::unique_ptr<WindowSorter> gl, const RouteTable& table,
                           std::function<void(const std::string&)> on_failure, Clock clock)
    : name_(std::move(name)),
      cpu_(std::move(cpu)),
      gl_(std::move(gl)),
      on_failure_(std::move(on_failure)),
      clock_(clock ? std::move(clock)
                   : [] { return std::chrono::steady_clock::now().time_since_epoch(); }),
      choice_(table) {}

// Abandoned unless it is said to be done.
class RoutedSorter::UnderWay {
 public:
  UnderWay(RoutedSorter& sorter, const RouteTicket& ticket) : sorter_(sorter), ticket_(ticket) {}
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
  ~UnderWay() {
    if (!done_) sorter_.choice_.Abandon(ticket_, sorter_.clock_());
  }
  void Done() {
    done_ = true;
    sorter_.choice_.End(ticket_, sorter_.clock_());
  }

 private:
  RoutedSorter& sorter_;
  const RouteTicket ticket_;
  bool done_ = false;
};

namespace {

template <class Key>
std::array<std::size_t, kChannels> LengthsOf(Channels<Key> channels) {
  std::array<std::size_t, kChannels> lengths{};
  for (std::size_t c = 0; c < channels.size(); ++c) lengths[c] = channels[c].size();
  return lengths;
}

}  // namespace

template <class Key>
std::string_view RoutedSorter::Route(Channels<Key> channels) {
  if (!gl_works()) return SortOnCpuAlone(channels);
  const RouteTicket ticket = choice_.Begin({WidthIndex<Key>(), LengthsOf(channels)}, clock_());
  if (ticket.route == Route::kCpu) {
    UnderWay on_cpu(*this, ticket);
    const std::string_view by = cpu_->Sort(channels);
    on_cpu.Done();
    return by;
  }
  try {
    UnderWay on_gl(*this, ticket);
    const std::string_view by = gl_->Sort(channels);
    on_gl.Done();
    return by;
  } catch (const SorterRefusal&) {
    // GL works: this request alone is the CPU's.
  } catch (const SorterError& error) {
    Failed(error.what());
  }
  return SortOnCpuAlone(channels);
}

template <class Key>
std::string_view RoutedSorter::RouteReduced(Channels<Key> channels,
                                            std::span<const WindowNeeds> needs,
                                            std::span<ReducedWindow<Key>> reduced) {
  std::optional<RouteTicket> ticket;
  if (gl_works()) {
    ticket = choice_.BeginGl({WidthIndex<Key>(), LengthsOf(channels)}, clock_());
  }
  if (!ticket) {
    throw SorterRefusal(name_ + ": these windows go to the cpu, which gives back whole ones alone");
  }
  try {
    UnderWay on_gl(*this, *ticket);
    const std::string_view by = gl_->SortReduced(channels, needs, reduced);
    on_gl.Done();
    return by;
  } catch (const SorterRefusal&) {
    throw;
  } catch (const SorterError& error) {
    Failed(error.what());
    throw SorterRefusal(name_ + ": GL failed, and the cpu gives back whole windows alone");
  }
}

template std::string_view RoutedSorter::RouteReduced(Channels<std::uint32_t>,
                                                     std::span<const WindowNeeds>,
                                                     std::span<ReducedWindow<std::uint32_t>>);
template std::string_view RoutedSorter::RouteReduced(Channels<std::uint64_t>,
                                                     std::span<const WindowNeeds>,
                                                     std::span<ReducedWindow<std::uint64_t>>);

void RoutedSorter::Failed(const std::string& message) {
  gl_works_.store(false, std::memory_order_relaxed);
  failures_.fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    last_failure_ = message;
  }
  if (on_failure_) on_failure_(message);
}

std::string RoutedSorter::last_failure() const {
  const std::lock_guard lock(mutex_);
  return last_failure_;
}

}  // namespace tidemark::sort
