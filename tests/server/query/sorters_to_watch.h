// Sorters for tests of what a pipeline does with them: one that lends another and counts, one that
// takes std::sort, one that reduces and fails.
#ifndef TIDEMARK_TESTS_SERVER_QUERY_SORTERS_TO_WATCH_H_
#define TIDEMARK_TESTS_SERVER_QUERY_SORTERS_TO_WATCH_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "gpu/sort/window_sorter.h"

namespace tidemark::server {

/// Hands every width to the templates SortAll and, where it has one, Reduce of `Sorter`.
template <class Sorter>
class OfEveryWidth : public sort::WindowSorter {
 public:
  std::string_view Sort(sort::Channels<std::uint32_t> channels) override {
    return self().SortAll(channels);
  }
  std::string_view Sort(sort::Channels<std::uint64_t> channels) override {
    return self().SortAll(channels);
  }
  std::string_view Sort(sort::Channels<Key128> channels) override {
    return self().SortAll(channels);
  }
  std::string_view SortReduced(sort::Channels<std::uint32_t> channels,
                               std::span<const sort::WindowNeeds> needs,
                               std::span<sort::ReducedWindow<std::uint32_t>> reduced) override {
    return ReduceAny(channels, needs, reduced);
  }
  std::string_view SortReduced(sort::Channels<std::uint64_t> channels,
                               std::span<const sort::WindowNeeds> needs,
                               std::span<sort::ReducedWindow<std::uint64_t>> reduced) override {
    return ReduceAny(channels, needs, reduced);
  }

 private:
  Sorter& self() { return static_cast<Sorter&>(*this); }
  template <class Key>
  std::string_view ReduceAny(sort::Channels<Key> channels, std::span<const sort::WindowNeeds> needs,
                             std::span<sort::ReducedWindow<Key>> reduced) {
    if constexpr (requires { self().Reduce(channels, needs, reduced); }) {
      return self().Reduce(channels, needs, reduced);
    } else {
      return WindowSorter::SortReduced(channels, needs, reduced);
    }
  }
};

/// A pipeline owns its sorter; this one lends it a sorter that several pipelines use, and counts
/// the windows that came by.
class Lent final : public OfEveryWidth<Lent> {
 public:
  struct Seen {
    std::atomic<int> windows{0};
    std::atomic<int> short_windows{0};  ///< of a length that is no capacity: closed early
    std::atomic<int> reduced{0};        ///< that came back so
    std::atomic<int> kept_whole{0};     ///< sorted whole though less was needed
  };
  Lent(sort::WindowSorter& sorter, Seen& seen) : sorter_(sorter), seen_(seen) {}
  std::string_view name() const override { return sorter_.name(); }
  bool SortsTogether(std::size_t width_index,
                     const std::array<std::size_t, sort::kChannels>& lengths) const override {
    return sorter_.SortsTogether(width_index, lengths);
  }
  bool Reduces(std::size_t width_index,
               const std::array<std::size_t, sort::kChannels>& lengths) const override {
    return sorter_.Reduces(width_index, lengths);
  }

  template <class Key>
  std::string_view Reduce(sort::Channels<Key> channels, std::span<const sort::WindowNeeds> needs,
                          std::span<sort::ReducedWindow<Key>> reduced) {
    const std::string_view by = sorter_.SortReduced(channels, needs, reduced);
    for (std::size_t c = 0; c < channels.size(); ++c) {
      ++seen_.windows;
      (reduced[c].whole ? seen_.kept_whole : seen_.reduced) += needs[c].whole() ? 0 : 1;
    }
    return by;
  }
  template <class Key>
  std::string_view SortAll(sort::Channels<Key> channels) {
    for (const auto& channel : channels) {
      ++seen_.windows;
      seen_.short_windows += std::has_single_bit(channel.size()) ? 0 : 1;
    }
    return sorter_.Sort(channels);
  }

 private:
  sort::WindowSorter& sorter_;
  Seen& seen_;
};

class StdSorter final : public OfEveryWidth<StdSorter> {
 public:
  std::string_view name() const override { return "std-sort"; }

  template <class Key>
  std::string_view SortAll(sort::Channels<Key> channels) {
    for (const auto& channel : channels) std::sort(channel.begin(), channel.end());
    return name();
  }
};

/// std::sort, and on the CPU what is left of a window where that is less: now and then it gives
/// back a whole window all the same, and now and then it fails before it did anything. Keys of
/// reduced windows are lost: nobody may look at them.
class StdReducer final : public OfEveryWidth<StdReducer> {
 public:
  std::string_view name() const override { return "std-reduce"; }
  bool SortsTogether(std::size_t /*width_index*/,
                     const std::array<std::size_t, sort::kChannels>& /*lengths*/) const override {
    return true;
  }
  bool Reduces(std::size_t width_index,
               const std::array<std::size_t, sort::kChannels>& /*lengths*/) const override {
    return width_index < 2;
  }

  template <class Key>
  std::string_view Reduce(sort::Channels<Key> channels, std::span<const sort::WindowNeeds> needs,
                          std::span<sort::ReducedWindow<Key>> reduced) {
    const int request = requests_++;
    if (request % 9 == 3) throw sort::SorterRefusal("std-reduce: refused");
    if (request % 9 == 6) throw sort::SorterError("std-reduce: failed");
    plain_.SortAll(channels);
    for (std::size_t c = 0; c < channels.size(); ++c) {
      const bool whole = (static_cast<std::size_t>(request) + c) % 5 == 0;
      reduced[c] = sort::ReduceSorted<Key>(channels[c], whole ? sort::WindowNeeds() : needs[c]);
      if (!reduced[c].whole) std::fill(channels[c].begin(), channels[c].end(), Key{0});
    }
    return name();
  }
  template <class Key>
  std::string_view SortAll(sort::Channels<Key> channels) {
    return plain_.SortAll(channels);
  }

 private:
  StdSorter plain_;
  std::atomic<int> requests_{0};
};

}  // namespace tidemark::server

#endif  // TIDEMARK_TESTS_SERVER_QUERY_SORTERS_TO_WATCH_H_
