// Where a request goes, GL or CPU, by rates that follow what is observed; and both at once.
//
// Source: Govindaraju, Raghuvanshi, Manocha (SIGMOD 2005), §6: the CPU is idle while the GPU sorts,
// and a hybrid that uses both is twice as fast as the GPU alone. How it divides the work is not
// said; here whole windows are divided, so that nothing has to be merged.
//
// The rule. Let g be the seconds that GL needs for a request, w those until GL is done with the
// requests that it has, c those of the request on one CPU thread, m its windows.
//   GL has fewer than `gl_requests`:   GL if w + g < c,       else CPU.
//   GL has that many:                  GL if w + g < c / m,   else CPU.
// In the first case one more request keeps GL busy without a gap, so that its thread is worth most
// where the whole request is done first. In the second GL sorts no faster for one more, and a CPU
// thread takes one window at a time (SortsTogether then says false). So GL is never left without
// work while windows wait for it, and CPU threads sort what it has no room for: k of them k·m/c
// windows a second beside GL's m/g, which is in proportion to the rates.
//
// No window goes to a CPU thread that is expected to be done later than GL: a stream publishes its
// windows in their order, and one that is late on a CPU thread would hold up those that GL has
// sorted meanwhile. So where GL is done with `gl_requests` and one more before a CPU thread is with
// one window, CPU threads get none and what they could do is lost: at most their share of the rates
// (0.16 of 16 threads beside a GPU worth 80 of them, in the simulation of
// tests/gpu/route_choice_test.cc). Elsewhere that finds 0.98 or more of what both could do.
//
// The rates. GL is taken for a queue: a request is served from when it began or from when the one
// before it ended, whichever is later, until it ends. What overlaps (upload, sort and read-back of
// successive requests) so counts once. Each observation moves the rate of its width and class of
// windows towards it: by half if the request had GL for itself or was a probe, else by a quarter
// (the ends of two that overlap may be seen in a bunch, and the mean is what counts); one of more
// than four times what was expected counts as four times: whatever else ran at that moment says
// little of the next request. Of five requests that have GL for themselves, ten times slower or
// faster than it was taken to be, the last leaves its rate within a third of the truth.
//
// Probes. A route that is not taken is not observed. After kProbeEvery requests of a width and
// class without news of the other route, and once kProbeShare of their seconds have added up to
// what a probe is expected to cost beyond the usual route, one request goes there: so probes cost
// at most that share of the sorters' time, and one probe more. What a probe cost beyond what was
// expected of it is paid back before the next. They follow from counts and observed times alone: no
// random number. GL is probed with two windows or more (one may be a query's, which should not
// wait) and only when it has nothing else to do.
//
// Not promised: that GL's time is right for what comes back reduced and what comes back whole, if
// both are asked for in turns: its rate is that of their mixture. Nor that windows that are counted
// into digests are compared with GL: what is compared is the CPU's sort.
#ifndef TIDEMARK_GPU_SORT_ROUTE_CHOICE_H_
#define TIDEMARK_GPU_SORT_ROUTE_CHOICE_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "gpu/sort/route_stats.h"
#include "gpu/sort/window_class.h"
#include "gpu/sort/window_sorter.h"

namespace tidemark::sort {

/// What the routes are chosen by at first.
struct RouteTable {
  /// Every request goes to GL, whatever it costs (a GL sorter by name).
  bool always_gl = false;
  /// Longest window that GL takes.
  std::size_t gl_window_max = 0;
  /// Seconds for one request of four windows of the class's size on GL, transfers included;
  /// infinity where GL is not to be used, now or later. [key width][window class]
  std::array<std::array<double, kWindowClasses>, kKeyWidths> gl_request_seconds{};
  /// Seconds a key on one CPU thread. [key width][window class]
  std::array<std::array<double, kWindowClasses>, kKeyWidths> cpu_key_seconds{};
  /// Requests under way on GL that keep it busy: one is written, one sorted, one read, as in
  /// gl-compute's slots.
  std::size_t gl_requests = 3;
};

struct RouteRequest {
  std::size_t width_index = 0;  ///< as in WidthIndex
  std::array<std::size_t, kChannels> lengths{};
};

enum class Route : std::uint8_t { kGl, kCpu };
enum class RouteReason : std::uint8_t {
  kFaster,  ///< by the rates alone
  kBusy,    ///< GL is faster, and has so much to do that the CPU is done earlier
  kProbe,   ///< to see how fast it is now
  kOnly,    ///< the other does not take it, or GL was asked for by name
};
inline constexpr std::size_t kRouteReasons = 4;
/// "faster", "busy", "probe", "only"
std::string_view RouteReasonName(RouteReason reason);

/// A request under way.
struct RouteTicket {
  RouteRequest request;
  Route route = Route::kCpu;
  RouteReason reason = RouteReason::kOnly;
  double begun = 0;
  double probe_extra = 0;  ///< seconds that it is expected to cost beyond the usual route
  std::uint64_t gl_id = 0;
  bool observed = false;  ///< whether its time says something that is used
};

/// Times are those of any clock that does not go back. Cost, the reading of the clock included: to
/// ask 50 to 62 ns, Begin and End 110 to 150 ns, under a lock; 3 ns where GL never takes the
/// request (Zen 4 class, 3 runs). Thread: any.
class RouteChoice {
 public:
  using Time = std::chrono::nanoseconds;

  /// Requests of a width and class without news of the other route before it is probed: what a
  /// probe tells is then late by so many requests at most, where it costs next to nothing.
  static constexpr std::uint32_t kProbeEvery = 16;
  /// Most that probes may cost, as a share of the time of all requests of their width and class.
  static constexpr double kProbeShare = 1.0 / 32;

  explicit RouteChoice(const RouteTable& table);

  /// Whether GL may get requests of these lengths at all.
  bool MayUseGl(const RouteRequest& request) const;
  /// Whether GL would get it if it had nothing else to do, without probes.
  bool PrefersGl(const RouteRequest& request) const;
  /// Whether these windows should be made one request, for GL, now.
  bool SortsTogether(const RouteRequest& request, Time now) const;
  /// Whether Begin would send it to GL now.
  bool GoesToGl(const RouteRequest& request, Time now) const;

  RouteTicket Begin(const RouteRequest& request, Time now);
  /// Only if it goes to GL.
  std::optional<RouteTicket> BeginGl(const RouteRequest& request, Time now);
  /// It is sorted.
  void End(const RouteTicket& ticket, Time now);
  /// It was refused or has failed.
  void Abandon(const RouteTicket& ticket, Time now);
  /// Counts a request that the CPU sorts since GL cannot.
  void CountCpuAlone() { Count(Route::kCpu, RouteReason::kOnly); }

  /// `cpu` and `gl` are the sorters' names.
  RouteStats stats(std::string_view cpu, std::string_view gl) const;

 private:
  // Of one key width and window class.
  struct Cell {
    double gl_seconds = 0;  // of a request of four windows
    double cpu_key_seconds = 0;
    double probe_credit = 0;          // seconds that a probe may cost; negative: to be paid back
    std::uint32_t without_probe = 0;  // requests since the route that is not preferred was observed
    std::uint64_t gl_observed = 0;
    std::uint64_t cpu_observed = 0;
  };
  struct Cost {
    double gl = 0;
    double cpu = 0;
    std::size_t windows = 0;
  };
  struct Decision {
    Route route = Route::kCpu;
    RouteReason reason = RouteReason::kOnly;
    double probe_extra = 0;
  };
  struct UnderWay {
    std::uint64_t id = 0;
    double expected = 0;
    bool alone = false;
  };

  // All with mutex_ held.
  Cell& CellOf(const RouteRequest& request);
  const Cell& CellOf(const RouteRequest& request) const;
  Cost CostOf(const RouteRequest& request) const;
  double GlDoneAfter(double seconds, double now) const;
  // `formed`: if it goes to the CPU, all of it does, not its first window alone.
  Decision Decide(const RouteRequest& request, double now, bool formed) const;
  RouteTicket BeginAs(const RouteRequest& request, const Decision& decision, double now);
  void ObserveGl(const RouteTicket& ticket, double served, bool alone);
  void ObserveCpu(const RouteTicket& ticket, double seconds);
  void PayForProbes(const RouteTicket& ticket, double seconds, const Cost& expected);
  UnderWay LeaveGl(const RouteTicket& ticket, double now, double& served);

  void Count(Route route, RouteReason reason) {
    counts_[static_cast<std::size_t>(route)][static_cast<std::size_t>(reason)].fetch_add(
        1, std::memory_order_relaxed);
  }

  const RouteTable table_;
  std::array<std::array<std::atomic<std::uint64_t>, kRouteReasons>, 2> counts_{};

  mutable std::mutex mutex_;
  // The rest is guarded by mutex_.
  std::array<std::array<Cell, kWindowClasses>, kGlKeyWidths> cells_;
  std::vector<UnderWay> on_gl_;  // in the order in which they began
  double gl_serves_since_ = 0;   // when the first of them began, or the last request ended
  std::uint64_t next_id_ = 1;
};

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_ROUTE_CHOICE_H_
