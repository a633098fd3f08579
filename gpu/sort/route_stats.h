// What a sorter that sends requests to others has seen of them: for people and metrics.
#ifndef TIDEMARK_GPU_SORT_ROUTE_STATS_H_
#define TIDEMARK_GPU_SORT_ROUTE_STATS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tidemark::sort {

/// Texts live as long as the sorter that gave them.
struct RouteStats {
  /// By how fast each route is taken to be now. Only what was observed at least once.
  struct Rate {
    std::string_view sorter;
    int key_bits = 0;
    std::size_t window = 0;  ///< ClassWindow of the class
    /// On GL of a request of four windows that has GL for itself or waits for its turn there; on
    /// the CPU of one thread.
    double keys_per_second = 0;
    std::uint64_t requests = 0;  ///< observed
  };
  /// Requests begun, by where they went and why (RouteReasonName).
  struct Count {
    std::string_view sorter;
    std::string_view reason;
    std::uint64_t requests = 0;
  };
  /// False: all that GL takes goes to GL, as it was asked for by name.
  bool chooses = false;
  std::vector<Rate> rates;
  std::vector<Count> counts;
};

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_ROUTE_STATS_H_
