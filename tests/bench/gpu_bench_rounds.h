// How gpu_bench measures: in turns, within a budget, and never at the cost of the rest of a run.
#ifndef TIDEMARK_TESTS_BENCH_GPU_BENCH_ROUNDS_H_
#define TIDEMARK_TESTS_BENCH_GPU_BENCH_ROUNDS_H_

#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/sort/gl_texel_sorter.h"
#include "tests/bench/gpu_bench_report.h"

namespace tidemark::bench {

/// Seconds of what `work` does.
template <class Work>
double Seconds(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return seconds.count();
}

/// Times the steps of GL engines, which call Observer() before each. Unless armed it does nothing.
/// Armed, it waits at every step until the device has done what was told before (a fence), so that
/// each step is measured alone and with its data resident; what the whole request then takes is not
/// what it takes usually.
///
/// By the clock a step is what lies between two such waits, the telling of its commands included;
/// by timer queries, what lies between the time stamps that the device takes at its first and
/// behind its last command.
///
/// Thread: the observer runs on the GL thread, the rest on that of the requests, which wait for it.
class StepTimer {
 public:
  explicit StepTimer(bool has_timer);
  std::function<void(std::string_view step)> Observer() const;

  void Arm();
  struct Times {
    std::map<std::string, double> by_clock, by_timer;  ///< seconds of each step, of all requests
    /// The steps that run on the device: not the bus's.
    double device() const;
    double device_by_timer() const;
  };
  Times Disarm();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Someone who takes part in rounds.
struct Entrant {
  Row row;
  /// Makes the input; not timed.
  std::function<void()> prepare;
  /// What is timed: seconds of one request.
  std::function<double()> run;
  /// Empty if the result is right, else what is wrong; not timed.
  std::function<std::string()> check;
  /// Of a GL engine: device times are measured too, in runs of their own.
  StepTimer* timer = nullptr;
  /// Where requests are counted, by the sorter itself.
  const sort::GlTexelSorter* counted = nullptr;
  double requests = 1;  ///< in one run
};

struct Budget {
  double seconds = -1;  ///< for each entrant in a cell; negative: not set
  std::size_t rounds_min = 3;
  std::size_t rounds_max = 21;
  /// Nothing is begun after it.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();

  bool over() const { return std::chrono::steady_clock::now() >= deadline; }
};

/// Runs the cells of a section. What time there is until the deadline is shared out evenly among
/// the cells that are left, so that the last ones, which are the largest, have theirs too.
///
/// Runs all of a cell's entrants in each round, one after the other; the first round makes buffers
/// and programs and is not counted, unless it takes longer than the budget: then it is the only
/// one. Leaves out who would take too long by what the last smaller cell took: `growth` times as
/// long. An entrant that throws, or is wrong, is out; the others go on. Adds each row to the
/// report.
class Rounds {
 public:
  /// `cells`: how many calls of Run there will be.
  Rounds(Report& report, const Budget& budget, std::size_t cells)
      : report_(&report), budget_(budget), cells_left_(cells) {}

  /// Whether nothing is begun any more; then says that windows of 2^log2_keys are left out.
  bool OutOfTime(int log2_keys) const;
  /// Returns the rows as reported. `growth`: of the work, since this entrant's last cell.
  std::vector<Row> Run(std::vector<Entrant> entrants, double growth);

 private:
  // False: it takes no further part.
  bool Turn(Entrant& entrant, bool warm_up) const;
  bool LeftOut(Entrant& entrant, double growth) const;
  // Seconds for a cell of so many; counts it.
  double Limit(std::size_t entrants);
  static std::string NameOf(const Row& row);

  Report* report_;
  Budget budget_;
  std::size_t cells_left_;
  std::map<std::string, double> last_seconds_;  // of one request
};

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_GPU_BENCH_ROUNDS_H_
