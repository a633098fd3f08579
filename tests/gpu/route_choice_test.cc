// The rule that divides windows between GL and CPU, and the rates that it follows: on simulated
// processors and a simulated GPU of any speed, in simulated time. With real sorters and threads:
// routed_sorter_test.cc.
#include "gpu/sort/route_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <limits>
#include <random>
#include <vector>

namespace tidemark::sort {
namespace {

constexpr std::size_t kWindow = 1 << 16;
constexpr std::size_t kClass = ClassOf(kWindow);
constexpr double kCpuWindow = 1e-3;  // seconds of one window on one CPU thread

RouteChoice::Time At(double seconds) {
  return std::chrono::duration_cast<RouteChoice::Time>(std::chrono::duration<double>(seconds));
}

RouteRequest Windows(std::size_t windows, std::size_t length = kWindow) {
  RouteRequest request;
  std::fill_n(request.lengths.begin(), windows, length);
  return request;
}

// What was measured at start: GL takes `gl_request` for four windows.
RouteTable Measured(double gl_request) {
  RouteTable table;
  table.gl_window_max = 1 << 20;
  for (auto& width : table.gl_request_seconds) width.fill(std::numeric_limits<double>::infinity());
  for (auto& width : table.cpu_key_seconds) width.fill(kCpuWindow / kWindow);
  table.gl_request_seconds[0][kClass] = gl_request;
  return table;
}

// A machine in which windows always wait: workers as those of SortStage, processors that threads
// share, and a GPU that sorts one request after the other.
class Machine {
 public:
  Machine(const RouteTable& table, std::size_t processors, std::size_t workers)
      : choice(table), processors_(static_cast<double>(processors)), workers_(workers) {}

  // Until so many seconds of simulated time have passed; GL takes gl_request for a request that
  // starts now, a window takes a processor cpu_window.
  void Run(double seconds, double gl_request, double cpu_window = kCpuWindow) {
    const double end = now_ + seconds;
    while (now_ < end) {
      while (busy_.size() < workers_) StartOne();
      const double step = Next(gl_request, cpu_window);
      Advance(step, gl_request, cpu_window);
    }
  }

  void ForgetCounts() {
    gl_windows = cpu_windows = 0;
    began_ = now_;
  }
  double PerSecond() const {
    return static_cast<double>(gl_windows + cpu_windows) / (now_ - began_);
  }
  double GlShare() const {
    return static_cast<double>(gl_windows) / static_cast<double>(gl_windows + cpu_windows);
  }
  double now() const { return now_; }

  RouteChoice choice;
  std::uint64_t gl_windows = 0;
  std::uint64_t cpu_windows = 0;

 private:
  struct Job {
    RouteTicket ticket;
    std::size_t windows = 0;
    double left = 1;  // of its work: 1 at first
  };

  void StartOne() {
    std::size_t windows = 4;
    while (windows > 1 && !choice.SortsTogether(Windows(windows), At(now_))) --windows;
    busy_.push_back({choice.Begin(Windows(windows), At(now_)), windows, 1});
  }
  double Share() const {
    const auto on_cpu = std::count_if(
        busy_.begin(), busy_.end(), [](const Job& job) { return job.ticket.route == Route::kCpu; });
    return std::min(1.0, processors_ / static_cast<double>(std::max<std::ptrdiff_t>(1, on_cpu)));
  }
  // GL's first request is the one that began first: jobs are in that order.
  bool Served(const Job& job) const {
    for (const Job& other : busy_) {
      if (other.ticket.route == Route::kGl) return &other == &job;
    }
    return false;
  }
  double Speed(const Job& job, double gl_request, double cpu_window) const {
    if (job.ticket.route == Route::kGl) return Served(job) ? 1 / gl_request : 0;
    return Share() / (cpu_window * static_cast<double>(job.windows));
  }
  double Next(double gl_request, double cpu_window) const {
    double step = std::numeric_limits<double>::infinity();
    for (const Job& job : busy_) {
      const double speed = Speed(job, gl_request, cpu_window);
      if (speed > 0) step = std::min(step, job.left / speed);
    }
    return step;
  }
  void Advance(double step, double gl_request, double cpu_window) {
    std::vector<double> speeds;
    for (const Job& job : busy_) speeds.push_back(Speed(job, gl_request, cpu_window));
    now_ += step;
    std::vector<Job> still;
    for (std::size_t i = 0; i < busy_.size(); ++i) {
      Job& job = busy_[i];
      job.left -= step * speeds[i];
      if (job.left > 1e-9) {
        still.push_back(job);
        continue;
      }
      choice.End(job.ticket, At(now_));
      (job.ticket.route == Route::kGl ? gl_windows : cpu_windows) += job.windows;
    }
    busy_ = std::move(still);
  }

  const double processors_;
  const std::size_t workers_;
  std::vector<Job> busy_;
  double now_ = 0;
  double began_ = 0;
};

std::uint64_t CountOf(const RouteChoice& choice, std::string_view sorter, std::string_view reason) {
  const RouteStats stats = choice.stats("cpu", "gl");
  for (const RouteStats::Count& count : stats.counts) {
    if (count.sorter == sorter && count.reason == reason) return count.requests;
  }
  return 0;
}

// Both sort at once, each as much as it can: at least nine tenths of what both together could do,
// whatever the GPU's speed, and more than either alone where they are near each other.
TEST(RouteChoice, DividesWindowsInProportionToTheRates) {
  for (const std::size_t processors : {1, 2, 16}) {
    for (const double gl_windows_a_cpu_window : {0.6, 1.1, 1.5, 2.0, 4.0, 8.0, 16.0, 80.0}) {
      const double gl_request = 4 * kCpuWindow / gl_windows_a_cpu_window;
      Machine machine(Measured(gl_request), processors, processors + 3);
      machine.Run(2, gl_request);
      machine.ForgetCounts();
      machine.Run(2, gl_request);
      const double cpu_alone = static_cast<double>(processors) / kCpuWindow;
      const double gl_alone = 4 / gl_request;
      const double share = machine.PerSecond() / (cpu_alone + gl_alone);
      const std::string what = std::to_string(processors) + " processors, a GPU worth " +
                               std::to_string(gl_windows_a_cpu_window) +
                               " of them: " + std::to_string(share) + " of both, GL's share " +
                               std::to_string(machine.GlShare());
      std::cout << what << "\n";
      EXPECT_LE(share, 1.01) << "the simulation: " << what;
      EXPECT_GE(machine.PerSecond(), 0.95 * std::max(cpu_alone, gl_alone)) << what;
      // Where three requests on GL are done before one window on the CPU, the CPU gets none.
      const bool waits_for_gl = 4 * gl_request < kCpuWindow;
      if (!waits_for_gl) {
        EXPECT_GE(share, 0.95) << what;
      }
    }
  }
}

// Others use the GPU, and then no longer.
TEST(RouteChoice, ASlowedGpuLosesItsWindowsAndGetsThemBack) {
  constexpr double kFast = 4 * kCpuWindow / 8;
  Machine machine(Measured(kFast), 2, 5);
  machine.Run(1, kFast);
  EXPECT_GT(machine.GlShare(), 0.7);

  machine.ForgetCounts();
  machine.Run(0.2, 40 * kFast);  // 20 ms a request where the CPU's threads take 0.5 ms a window
  machine.ForgetCounts();
  machine.Run(5, 40 * kFast);
  EXPECT_LT(machine.GlShare(), 0.04);
  EXPECT_GT(machine.PerSecond(), 0.9 * 2 / kCpuWindow) << "of the two processors";
  EXPECT_GT(CountOf(machine.choice, "gl", "probe"), 1u);

  // Back to what it was: within a second or so of probes.
  machine.Run(1, kFast);
  machine.ForgetCounts();
  machine.Run(1, kFast);
  EXPECT_GT(machine.GlShare(), 0.7);
  EXPECT_GT(machine.PerSecond(), 0.9 * (2 / kCpuWindow + 4 / kFast));
}

// The same for the CPU: measured when the machine was busy, idle now.
TEST(RouteChoice, ACpuThatWasMeasuredTooSlowIsProbed) {
  constexpr double kGl = 8 * kCpuWindow;  // half as fast as one CPU thread
  RouteTable table = Measured(kGl);
  for (auto& width : table.cpu_key_seconds) width.fill(20 * kCpuWindow / kWindow);
  Machine machine(table, 4, 1);  // one worker: GL or CPU
  machine.Run(10, kGl);
  machine.ForgetCounts();
  machine.Run(1, kGl);
  EXPECT_LT(machine.GlShare(), 0.1);
  EXPECT_GT(machine.PerSecond(), 0.9 / kCpuWindow);
  EXPECT_GE(CountOf(machine.choice, "cpu", "probe"), 1u);
}

TEST(RouteChoice, ProbesCostNoMoreThanTheirShare) {
  for (const double slower : {1.0, 2.0, 10.0, 100.0, 1000.0}) {
    // One worker on one processor, so that a probe keeps everything waiting.
    const double gl_request = slower * 4 * kCpuWindow;
    Machine machine(Measured(1.01 * gl_request), 1, 1);
    machine.Run(50, gl_request);
    const double lost = 1 - machine.PerSecond() * kCpuWindow;
    std::cout << slower << " times slower: " << lost << " lost, "
              << CountOf(machine.choice, "gl", "probe") << " probes of "
              << machine.cpu_windows + machine.gl_windows << " windows\n";
    EXPECT_LE(lost, RouteChoice::kProbeShare + (gl_request + kCpuWindow) / 50);
    EXPECT_GE(CountOf(machine.choice, "gl", "probe"), slower < 1000 ? 2u : 0u);
  }
}

// What only a choice with random numbers in it would break.
TEST(RouteChoice, TheSameTimesGiveTheSameChoices) {
  std::vector<std::uint64_t> windows;
  for (int run = 0; run < 2; ++run) {
    Machine machine(Measured(kCpuWindow), 2, 5);
    for (const double gl : {1.0, 10.0, 0.3, 4.1, 1.0}) machine.Run(0.5, gl * kCpuWindow);
    windows.push_back(machine.gl_windows);
    windows.push_back(machine.cpu_windows);
    windows.push_back(CountOf(machine.choice, "gl", "probe"));
    windows.push_back(CountOf(machine.choice, "cpu", "busy"));
  }
  EXPECT_TRUE(std::equal(windows.begin(), windows.begin() + 4, windows.begin() + 4));
}

TEST(RouteChoice, AFurtherRequestGoesToTheCpuIfItIsDoneEarlierThere) {
  // GL: 2 ms for four windows, 4 ms of one CPU thread.
  RouteChoice choice(Measured(2 * kCpuWindow));
  EXPECT_TRUE(choice.SortsTogether(Windows(4), At(0)));
  const RouteTicket first = choice.Begin(Windows(4), At(0));
  EXPECT_EQ(first.route, Route::kGl);
  EXPECT_EQ(first.reason, RouteReason::kFaster);
  // 2 ms to wait and 2 ms of its own are not less than 4 ms.
  EXPECT_FALSE(choice.SortsTogether(Windows(4), At(0)));
  EXPECT_FALSE(choice.GoesToGl(Windows(4), At(0)));
  const RouteTicket beside = choice.Begin(Windows(1), At(0));
  EXPECT_EQ(beside.route, Route::kCpu);
  EXPECT_EQ(choice.Begin(Windows(4), At(0)).reason, RouteReason::kBusy);
  // Half a millisecond later GL would be done earlier.
  EXPECT_TRUE(choice.SortsTogether(Windows(4), At(0.5e-3)));
  // GL is late: expected to take as long again as it is late, and the next to be slower, too.
  EXPECT_TRUE(choice.SortsTogether(Windows(4), At(2e-3)));
  EXPECT_FALSE(choice.SortsTogether(Windows(4), At(3.5e-3)));
  EXPECT_FALSE(choice.SortsTogether(Windows(4), At(1000)));
  choice.Abandon(first, At(1000));
  EXPECT_TRUE(choice.SortsTogether(Windows(4), At(1000))) << "an abandoned request says nothing";
}

TEST(RouteChoice, AFullGlLeavesOneWindowToEachCpuThread) {
  // GL: 0.6 ms for four windows; three requests keep it busy.
  RouteChoice choice(Measured(0.6 * kCpuWindow));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(choice.SortsTogether(Windows(4), At(0))) << i;
    EXPECT_EQ(choice.Begin(Windows(4), At(0)).route, Route::kGl) << i;
  }
  // 1.8 ms to wait: the CPU has sorted one window after 1 ms, four only after 4.
  EXPECT_FALSE(choice.SortsTogether(Windows(4), At(0)));
  EXPECT_TRUE(choice.GoesToGl(Windows(4), At(0)))
      << "who has four already does not sort them alone";
}

TEST(RouteChoice, WhatGlDoesNotTakeIsTheCpusAlone) {
  RouteChoice choice(Measured(kCpuWindow));
  RouteRequest wide = Windows(4);
  wide.width_index = 2;
  const std::vector<RouteRequest> never = {wide, Windows(4, (1 << 20) + 1), Windows(4, 1000)};
  for (const RouteRequest& request : never) {
    EXPECT_FALSE(choice.MayUseGl(request));
    EXPECT_FALSE(choice.PrefersGl(request));
    EXPECT_FALSE(choice.SortsTogether(request, At(0)));
    EXPECT_FALSE(choice.BeginGl(request, At(0)).has_value());
    const RouteTicket ticket = choice.Begin(request, At(0));
    EXPECT_EQ(ticket.route, Route::kCpu);
    choice.End(ticket, At(1));
  }
  EXPECT_EQ(CountOf(choice, "cpu", "only"), never.size());
  EXPECT_TRUE(choice.stats("cpu", "gl").rates.empty());
}

TEST(RouteChoice, BySorterNameNothingIsChosen) {
  RouteTable table = Measured(1000 * kCpuWindow);
  table.always_gl = true;
  RouteChoice choice(table);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(choice.SortsTogether(Windows(4), At(i)));
    const RouteTicket ticket = choice.Begin(Windows(4), At(i));
    EXPECT_EQ(ticket.route, Route::kGl);
    choice.End(ticket, At(i + 0.5));
  }
  const RouteStats stats = choice.stats("cpu", "gl");
  EXPECT_FALSE(stats.chooses);
  EXPECT_EQ(CountOf(choice, "gl", "only"), 100u);
  ASSERT_EQ(stats.rates.size(), 1u);
  EXPECT_NEAR(stats.rates[0].keys_per_second, 4 * kWindow / 0.5, kWindow);
  EXPECT_EQ(stats.rates[0].requests, 100u);
}

TEST(RouteChoice, OneObservationDecidesNothingAndFiveDo) {
  // A request that takes a hundred times as long, once.
  RouteChoice choice(Measured(kCpuWindow));
  double now = 0;
  const auto sort = [&](double seconds) {
    const std::optional<RouteTicket> ticket = choice.BeginGl(Windows(4), At(now));
    if (!ticket) return false;
    now += seconds;
    choice.End(*ticket, At(now));
    return true;
  };
  const auto rate = [&] { return choice.stats("cpu", "gl").rates.at(0).keys_per_second; };
  const double usual = 4 * kWindow / kCpuWindow;
  ASSERT_TRUE(sort(100 * kCpuWindow));
  EXPECT_NEAR(usual / rate(), 2.5, 0.01);
  EXPECT_TRUE(sort(kCpuWindow)) << "still faster than the CPU";

  RouteTable named = Measured(kCpuWindow);
  named.always_gl = true;
  for (const double change : {10.0, 0.1}) {
    RouteChoice follows(named);
    for (int i = 0; i < 5; ++i) {
      const RouteTicket ticket = follows.Begin(Windows(4), At(i));
      follows.End(ticket, At(i + change * kCpuWindow));
    }
    const double now_rate = follows.stats("cpu", "gl").rates.at(0).keys_per_second;
    EXPECT_NEAR(std::log(usual / change / now_rate), 0, std::log(4.0 / 3)) << change;
  }
}

// Three at once, done one after the other: each is served from when the one before it ended.
TEST(RouteChoice, AWaitBehindOthersIsNotServiceTime) {
  RouteTable table = Measured(kCpuWindow);
  table.always_gl = true;
  RouteChoice choice(table);
  for (int round = 0; round < 20; ++round) {
    std::vector<RouteTicket> tickets;
    for (int i = 0; i < 3; ++i) tickets.push_back(choice.Begin(Windows(4), At(round)));
    for (int i = 0; i < 3; ++i) {
      choice.End(tickets[static_cast<std::size_t>(i)], At(round + (i + 1) * kCpuWindow));
    }
  }
  EXPECT_NEAR(choice.stats("cpu", "gl").rates.at(0).keys_per_second * kCpuWindow, 4 * kWindow,
              0.01 * kWindow);
}

TEST(RouteChoice, ClassesOfWindowsDoNotDisturbOneAnother) {
  RouteTable table = Measured(kCpuWindow);
  table.gl_request_seconds[1][kClass] = 2 * kCpuWindow;
  RouteChoice choice(table);
  RouteRequest wide = Windows(4);
  wide.width_index = 1;
  double now = 0;
  for (int i = 0; i < 40; ++i, now += 1) {
    const RouteTicket ticket = choice.Begin(Windows(4), At(now));
    choice.End(ticket, At(now + (ticket.route == Route::kGl ? 100 : 4) * kCpuWindow));
  }
  EXPECT_FALSE(choice.PrefersGl(Windows(4)));
  EXPECT_TRUE(choice.PrefersGl(wide)) << "64-bit keys";
}

// Random loads and speeds: the choice never does worse than the slower half of the CPU, never
// starves, and no request is left under way.
TEST(RouteChoice, AnySpeedsAreSurvived) {
  const std::uint64_t seed = 20051114;
  std::mt19937_64 random(seed);
  const auto between = [&](double low, double high) {
    return std::exp(std::uniform_real_distribution<double>(std::log(low), std::log(high))(random));
  };
  for (int round = 0; round < 60; ++round) {
    const std::size_t processors = 1 + random() % 4;
    Machine machine(Measured(between(1e-5, 1)), processors, 1 + random() % 8);
    for (int change = 0; change < 3; ++change) {
      const double gl_request = between(1e-4, 0.1);
      const double cpu_window = between(2e-4, 5e-3);
      machine.Run(2, gl_request, cpu_window);
      machine.ForgetCounts();
      machine.Run(2, gl_request, cpu_window);
      EXPECT_GT(machine.PerSecond() * cpu_window, 0.5)
          << "seed " << seed << ", round " << round << ": GL " << gl_request << " s, CPU "
          << cpu_window << " s, GL's share " << machine.GlShare();
    }
  }
}

}  // namespace
}  // namespace tidemark::sort
