// The one interface behind which every sorter of Tidemark stands.
//
// A request holds up to four windows, one for each channel of an RGBA texel (Govindaraju,
// Raghuvanshi, Manocha (SIGMOD 2005), §4: four lists are sorted at once, one in each colour
// channel). A CPU sorter sorts them one by one, a GPU sorter all at once, in whichever layout it
// likes. The result is the same to the bit: each channel ascending, unsigned.
#ifndef TIDEMARK_GPU_SORT_WINDOW_SORTER_H_
#define TIDEMARK_GPU_SORT_WINDOW_SORTER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "gpu/sort/reduced_window.h"
#include "gpu/sort/route_stats.h"

namespace tidemark::sort {

/// A key of 128 bits: an IPv6 address as a number. Sorted on the CPU, whatever the sorter: no GL
/// sorter takes it.
__extension__ typedef unsigned __int128 Key128;

/// Windows that one request may hold: one in each channel of an RGBA texel.
inline constexpr std::size_t kChannels = 4;
static_assert(kChannels == reduce::kReducedChannels);

/// The windows of one request: 1 to kChannels of them, of any lengths (0 included), not
/// overlapping. Keys are order-preserving unsigned integers (summaries/key_codec.h maps values to
/// them).
template <class Key>
using Channels = std::span<const std::span<Key>>;

/// A sorter could not do its work: a lost context, a driver error, not enough device memory.
/// The message names the step and the driver's error.
class SorterError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The sorter works, but does not take this request: a window that is too long, keys that it cannot
/// carry. The message says what was wrong and what it takes.
class SorterRefusal : public SorterError {
 public:
  using SorterError::SorterError;
};

/// Thread: every method may be called from any thread, from several at once. A sorter that owns a
/// GL context runs it on a thread of its own and lets callers wait. Ownership: the caller's memory
/// is sorted in place and not kept. Errors: Sort throws SorterError; every channel then still holds
/// the keys that it held, in some order, so that the caller can sort them elsewhere.
class WindowSorter {
 public:
  WindowSorter() = default;
  WindowSorter(const WindowSorter&) = delete;
  WindowSorter& operator=(const WindowSorter&) = delete;
  virtual ~WindowSorter() = default;

  /// As configured and shown: "cpu", "gl-compute", "gl-bitonic", "auto".
  virtual std::string_view name() const = 0;

  /// Sorts each channel ascending. Returns the name of the sorter that did it: its own, or that of
  /// the one to which it gave the request ("auto" sorts nothing itself). Valid as long as the
  /// sorter.
  virtual std::string_view Sort(Channels<std::uint32_t> channels) = 0;
  virtual std::string_view Sort(Channels<std::uint64_t> channels) = 0;
  /// Throws SorterError unless overridden: a GL sorter stands behind one that sends these keys to
  /// the CPU (routed_sorter.h).
  virtual std::string_view Sort(Channels<Key128> /*channels*/) {
    throw SorterError(std::string(name()) + " does not sort keys of 128 bits");
  }

  /// Sorts the channels and gives back what is needed of each: `needs` and `reduced` have an
  /// element for each channel, and `reduced` is overwritten. A channel that was sorted as a whole
  /// says so; the others keep their keys, in some order. Returns as Sort does. Errors: as Sort; one
  /// that throws has changed nothing of `reduced`. Refuses (SorterRefusal) unless overridden, so
  /// that the caller sorts whole windows; ask Reduces first.
  virtual std::string_view SortReduced(Channels<std::uint32_t> /*channels*/,
                                       std::span<const WindowNeeds> /*needs*/,
                                       std::span<ReducedWindow<std::uint32_t>> /*reduced*/) {
    throw SorterRefusal(std::string(name()) + " gives back whole windows alone");
  }
  virtual std::string_view SortReduced(Channels<std::uint64_t> /*channels*/,
                                       std::span<const WindowNeeds> /*needs*/,
                                       std::span<ReducedWindow<std::uint64_t>> /*reduced*/) {
    throw SorterRefusal(std::string(name()) + " gives back whole windows alone");
  }
  /// Whether SortReduced is expected to take windows of these lengths, now. Arguments as below.
  virtual bool Reduces(std::size_t /*width_index*/,
                       const std::array<std::size_t, kChannels>& /*lengths*/) const {
    return false;
  }

  /// Whether windows of these lengths (0: no window in that channel) are better sorted as one
  /// request than each by itself, which leaves the others to other threads: now, and whatever it
  /// said before. `width_index` as in WidthIndex.
  virtual bool SortsTogether(std::size_t /*width_index*/,
                             const std::array<std::size_t, kChannels>& /*lengths*/) const {
    return false;
  }

  /// Memory that windows are best written to, from which the sorter takes them without a copy; null
  /// where any will do. It outlives the sorter if a block of it does.
  virtual std::shared_ptr<std::pmr::memory_resource> window_memory() const { return nullptr; }

  /// Requests that the GPU failed to sort and that were sorted on the CPU instead; it stays there
  /// from the first failure on. For the metric; 0 in sorters that do not fall back.
  virtual std::uint64_t failures() const { return 0; }
  /// What the last of them failed with; empty without one.
  virtual std::string last_failure() const { return {}; }
  /// Of one that sends requests to others: what it has seen of them.
  virtual std::optional<RouteStats> routes() const { return std::nullopt; }
};

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_WINDOW_SORTER_H_
