#include "gpu/sort/route_choice.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tidemark::sort {
namespace {

// How far one observation moves a rate; the header says why.
constexpr double kWeightClear = 0.5;
constexpr double kWeight = 0.25;
constexpr double kLargestJump = 4;

// A clock that has not moved says no more than that: rates stay finite.
constexpr double kShortest = 1e-9;

double Seconds(RouteChoice::Time time) { return std::chrono::duration<double>(time).count(); }

std::size_t Longest(const RouteRequest& request) {
  return *std::max_element(request.lengths.begin(), request.lengths.end());
}

// GL sorts all four channels at the padded length of the longest, full or not.
double GlScale(std::size_t longest) {
  return static_cast<double>(std::bit_ceil(longest)) /
         static_cast<double>(ClassWindow(ClassOf(longest)));
}

void Follow(double& rate, double observed, double weight) {
  if (!std::isfinite(rate) || rate <= 0) {
    rate = observed;
  } else {
    rate += weight * (std::min(observed, kLargestJump * rate) - rate);
  }
}

}  // namespace

std::string_view RouteReasonName(RouteReason reason) {
  switch (reason) {
    case RouteReason::kFaster:
      return "faster";
    case RouteReason::kBusy:
      return "busy";
    case RouteReason::kProbe:
      return "probe";
    case RouteReason::kOnly:
      return "only";
  }
  return "";
}

RouteChoice::RouteChoice(const RouteTable& table) : table_(table) {
  for (std::size_t width = 0; width < kGlKeyWidths; ++width) {
    for (std::size_t c = 0; c < kWindowClasses; ++c) {
      cells_[width][c].gl_seconds = table.gl_request_seconds[width][c];
      cells_[width][c].cpu_key_seconds = table.cpu_key_seconds[width][c];
    }
  }
}

bool RouteChoice::MayUseGl(const RouteRequest& request) const {
  const std::size_t longest = Longest(request);
  if (request.width_index >= kGlKeyWidths || longest > table_.gl_window_max) return false;
  return table_.always_gl ||
         std::isfinite(table_.gl_request_seconds[request.width_index][ClassOf(longest)]);
}

RouteChoice::Cell& RouteChoice::CellOf(const RouteRequest& request) {
  return cells_[request.width_index][ClassOf(Longest(request))];
}
const RouteChoice::Cell& RouteChoice::CellOf(const RouteRequest& request) const {
  return cells_[request.width_index][ClassOf(Longest(request))];
}

RouteChoice::Cost RouteChoice::CostOf(const RouteRequest& request) const {
  Cost cost;
  cost.gl = CellOf(request).gl_seconds * GlScale(Longest(request));
  for (const std::size_t n : request.lengths) {
    if (n == 0) continue;
    ++cost.windows;
    cost.cpu += cells_[request.width_index][ClassOf(n)].cpu_key_seconds * static_cast<double>(n);
  }
  return cost;
}

// Seconds until a request that takes GL `seconds` would be done, behind those that it has. One that
// is late already is expected to take as long again as it is late, and those behind it to be as
// much slower than expected.
double RouteChoice::GlDoneAfter(double seconds, double now) const {
  if (on_gl_.empty()) return seconds;
  const double served = std::max(0.0, now - gl_serves_since_);
  const double expected = on_gl_.front().expected;
  const double slower = expected > 0 ? std::max(1.0, served / expected) : 1.0;
  double after = std::abs(expected - served) + slower * seconds;
  for (std::size_t i = 1; i < on_gl_.size(); ++i) after += slower * on_gl_[i].expected;
  return after;
}

RouteChoice::Decision RouteChoice::Decide(const RouteRequest& request, double now,
                                          bool formed) const {
  if (!MayUseGl(request)) return {Route::kCpu, RouteReason::kOnly};
  if (table_.always_gl) return {Route::kGl, RouteReason::kOnly};
  const Cell& cell = CellOf(request);
  const Cost cost = CostOf(request);
  const bool gl_faster = cost.gl < cost.cpu;
  const double extra = std::abs(cost.gl - cost.cpu);
  if (cell.without_probe >= kProbeEvery && cell.probe_credit >= extra) {
    // The CPU is probed by whoever has a request already: making one of a single window for that
    // would change what is done with it (SortStage's digests).
    if (gl_faster && formed) return {Route::kCpu, RouteReason::kProbe, extra};
    if (!gl_faster && cost.windows > 1 && on_gl_.empty()) {
      return {Route::kGl, RouteReason::kProbe, extra};
    }
  }
  if (!gl_faster) return {Route::kCpu, RouteReason::kFaster};
  const bool full = on_gl_.size() >= table_.gl_requests;
  const double on_cpu = full && !formed ? cost.cpu / static_cast<double>(cost.windows) : cost.cpu;
  if (GlDoneAfter(cost.gl, now) < on_cpu) return {Route::kGl, RouteReason::kFaster};
  return {Route::kCpu, RouteReason::kBusy};
}

bool RouteChoice::PrefersGl(const RouteRequest& request) const {
  if (!MayUseGl(request)) return false;
  if (table_.always_gl) return true;
  const std::lock_guard lock(mutex_);
  const Cost cost = CostOf(request);
  return cost.gl < cost.cpu;
}

bool RouteChoice::SortsTogether(const RouteRequest& request, Time now) const {
  if (!MayUseGl(request)) return false;
  if (table_.always_gl) return true;
  const std::lock_guard lock(mutex_);
  return Decide(request, Seconds(now), false).route == Route::kGl;
}

bool RouteChoice::GoesToGl(const RouteRequest& request, Time now) const {
  if (!MayUseGl(request)) return false;
  if (table_.always_gl) return true;
  const std::lock_guard lock(mutex_);
  return Decide(request, Seconds(now), true).route == Route::kGl;
}

RouteTicket RouteChoice::BeginAs(const RouteRequest& request, const Decision& decision,
                                 double now) {
  Count(decision.route, decision.reason);
  RouteTicket ticket{request, decision.route, decision.reason, now, decision.probe_extra, 0, true};
  if (decision.reason == RouteReason::kProbe) {
    Cell& cell = CellOf(request);
    cell.probe_credit -= decision.probe_extra;
    cell.without_probe = 0;
  }
  if (decision.route == Route::kGl) {
    if (on_gl_.empty()) gl_serves_since_ = now;
    for (UnderWay& other : on_gl_) other.alone = false;
    ticket.gl_id = next_id_++;
    on_gl_.push_back({ticket.gl_id, CostOf(request).gl, on_gl_.empty()});
  }
  return ticket;
}

RouteTicket RouteChoice::Begin(const RouteRequest& request, Time now) {
  if (!MayUseGl(request)) {
    CountCpuAlone();
    return {};
  }
  const std::lock_guard lock(mutex_);
  return BeginAs(request, Decide(request, Seconds(now), true), Seconds(now));
}

std::optional<RouteTicket> RouteChoice::BeginGl(const RouteRequest& request, Time now) {
  if (!MayUseGl(request)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const Decision decision = Decide(request, Seconds(now), true);
  if (decision.route != Route::kGl) return std::nullopt;
  return BeginAs(request, decision, Seconds(now));
}

// Takes it off GL's queue; `served`: for how long GL was at it.
RouteChoice::UnderWay RouteChoice::LeaveGl(const RouteTicket& ticket, double now, double& served) {
  const auto own = std::find_if(on_gl_.begin(), on_gl_.end(),
                                [&](const UnderWay& one) { return one.id == ticket.gl_id; });
  const UnderWay left = *own;
  on_gl_.erase(own);
  served = std::max(0.0, now - std::max(ticket.begun, gl_serves_since_));
  gl_serves_since_ = now;
  return left;
}

void RouteChoice::ObserveGl(const RouteTicket& ticket, double served, bool alone) {
  Cell& cell = CellOf(ticket.request);
  Follow(cell.gl_seconds, std::max(served, kShortest) / GlScale(Longest(ticket.request)),
         alone ? kWeightClear : kWeight);
  ++cell.gl_observed;
}

void RouteChoice::ObserveCpu(const RouteTicket& ticket, double seconds) {
  const double expected = CostOf(ticket.request).cpu;
  std::size_t keys = 0;
  for (const std::size_t n : ticket.request.lengths) keys += n;
  if (keys == 0) return;
  const double took = std::max(seconds, kShortest);
  const double weight = ticket.reason == RouteReason::kProbe ? kWeightClear : kWeight;
  // Windows of several classes: each rate is wrong by the same factor, for all that is known.
  std::array<bool, kWindowClasses> followed{};
  for (const std::size_t n : ticket.request.lengths) {
    if (n == 0 || followed[ClassOf(n)]) continue;
    followed[ClassOf(n)] = true;
    Cell& cell = cells_[ticket.request.width_index][ClassOf(n)];
    const double observed =
        expected > 0 ? cell.cpu_key_seconds * (took / expected) : took / static_cast<double>(keys);
    Follow(cell.cpu_key_seconds, observed, weight);
    ++cell.cpu_observed;
  }
}

void RouteChoice::PayForProbes(const RouteTicket& ticket, double seconds, const Cost& expected) {
  Cell& cell = CellOf(ticket.request);
  if (ticket.reason == RouteReason::kProbe) {
    const double usual = ticket.route == Route::kGl ? expected.cpu : expected.gl;
    cell.probe_credit -= std::max(0.0, seconds - usual - ticket.probe_extra);
    return;
  }
  // Beside a busy GL the CPU is observed without probes.
  cell.without_probe = ticket.reason == RouteReason::kBusy ? 0 : cell.without_probe + 1;
  // No more than what one probe costs: many at once after a long time would be no small share.
  const double most = std::max(expected.gl, static_cast<double>(kChannels) * expected.cpu);
  cell.probe_credit = std::min(cell.probe_credit + kProbeShare * seconds, most);
}

void RouteChoice::End(const RouteTicket& ticket, Time now) {
  if (!ticket.observed) return;
  const double end = Seconds(now);
  const double seconds = std::max(0.0, end - ticket.begun);
  const std::lock_guard lock(mutex_);
  const Cost expected = CostOf(ticket.request);
  if (ticket.route == Route::kGl) {
    double served = 0;
    const UnderWay left = LeaveGl(ticket, end, served);
    ObserveGl(ticket, served, left.alone);
  } else {
    ObserveCpu(ticket, seconds);
  }
  if (!table_.always_gl) PayForProbes(ticket, seconds, expected);
}

void RouteChoice::Abandon(const RouteTicket& ticket, Time now) {
  if (!ticket.observed || ticket.route != Route::kGl) return;
  const std::lock_guard lock(mutex_);
  double served = 0;
  LeaveGl(ticket, Seconds(now), served);
}

RouteStats RouteChoice::stats(std::string_view cpu, std::string_view gl) const {
  RouteStats stats;
  stats.chooses = !table_.always_gl;
  const std::lock_guard lock(mutex_);
  for (std::size_t width = 0; width < kGlKeyWidths; ++width) {
    for (std::size_t c = 0; c < kWindowClasses; ++c) {
      const Cell& cell = cells_[width][c];
      const std::size_t window = ClassWindow(c);
      if (cell.gl_observed > 0) {
        stats.rates.push_back({gl, WidthBits(width), window,
                               static_cast<double>(kChannels * window) / cell.gl_seconds,
                               cell.gl_observed});
      }
      if (cell.cpu_observed > 0) {
        stats.rates.push_back(
            {cpu, WidthBits(width), window, 1 / cell.cpu_key_seconds, cell.cpu_observed});
      }
    }
  }
  for (std::size_t route = 0; route < counts_.size(); ++route) {
    for (std::size_t reason = 0; reason < kRouteReasons; ++reason) {
      const std::uint64_t requests = counts_[route][reason].load(std::memory_order_relaxed);
      if (requests == 0) continue;
      stats.counts.push_back({route == static_cast<std::size_t>(Route::kGl) ? gl : cpu,
                              RouteReasonName(static_cast<RouteReason>(reason)), requests});
    }
  }
  return stats;
}

}  // namespace tidemark::sort
