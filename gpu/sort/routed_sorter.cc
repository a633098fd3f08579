#include "gpu/sort/routed_sorter.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tidemark::sort {

RoutedSorter::RoutedSorter(std::string name, std::unique_ptr<WindowSorter> cpu,
                           std::unique_ptr<WindowSorter> gl, const RouteTable& table,
                           std::function<void(const std::string&)> on_failure)
    : name_(std::move(name)),
      cpu_(std::move(cpu)),
      gl_(std::move(gl)),
      table_(table),
      on_failure_(std::move(on_failure)) {}

bool RoutedSorter::PrefersGl(std::size_t width_index,
                             const std::array<std::size_t, kChannels>& lengths) const {
  const std::size_t longest = *std::max_element(lengths.begin(), lengths.end());
  if (width_index >= kGlKeyWidths || longest > table_.gl_window_max) return false;
  if (table_.always_gl) return true;
  // GL sorts all four channels at the padded length of the longest, full or not.
  const std::size_t window_class = ClassOf(longest);
  const double gl_seconds = table_.gl_request_seconds[width_index][window_class] *
                            static_cast<double>(std::bit_ceil(longest)) /
                            static_cast<double>(ClassWindow(window_class));
  double cpu_seconds = 0;
  for (const std::size_t n : lengths) {
    cpu_seconds += table_.cpu_key_seconds[width_index][ClassOf(n)] * static_cast<double>(n);
  }
  return gl_seconds < cpu_seconds;
}

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
  if (gl_works_.load(std::memory_order_relaxed)) {
    if (PrefersGl(WidthIndex<Key>(), LengthsOf(channels))) {
      try {
        return gl_->Sort(channels);
      } catch (const SorterRefusal&) {
        // GL works: this request alone is the CPU's.
      } catch (const SorterError& error) {
        Failed(error.what());
      }
    }
  }
  return cpu_->Sort(channels);
}

template <class Key>
std::string_view RoutedSorter::RouteReduced(Channels<Key> channels,
                                            std::span<const WindowNeeds> needs,
                                            std::span<ReducedWindow<Key>> reduced) {
  if (!SortsTogether(WidthIndex<Key>(), LengthsOf(channels))) {
    throw SorterRefusal(name_ + ": these windows go to the cpu, which gives back whole ones alone");
  }
  try {
    return gl_->SortReduced(channels, needs, reduced);
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
