// The fastest of several candidates for each of several tasks, on a machine that may be busy with
// other things.
#ifndef TIDEMARK_GPU_SORT_INTERLEAVED_ROUNDS_H_
#define TIDEMARK_GPU_SORT_INTERLEAVED_ROUNDS_H_

#include <cstddef>
#include <functional>
#include <vector>

namespace tidemark::sort {

struct RoundRules {
  /// Timings of one candidate at most. The smallest of so many ranks algorithms that differ by a
  /// tenth.
  int rounds = 5;
  /// Timings of a candidate before it may be given up. One alone says little: whatever else ran at
  /// that moment may have made it ten times slower than it is.
  int rounds_before_giving_up = 2;
  /// Given up is who needs this many times the best one's time.
  double hopeless = 1.5;
};

/// Seconds of each candidate for each task, the smallest over the rounds: result[task][candidate].
///
/// A round times every candidate once for every task, so that the timings of one candidate for one
/// task lie a whole round apart, and a disturbance that is shorter than that spoils one of them.
/// The first round is always complete; after it nothing more is timed once `time_left()` is false.
/// `seconds(task, candidate)` runs it once. Thread: the caller's.
inline std::vector<std::vector<double>> BestOfRounds(
    std::size_t tasks, std::size_t candidates, const RoundRules& rules,
    const std::function<double(std::size_t task, std::size_t candidate)>& seconds,
    const std::function<bool()>& time_left) {
  std::vector<std::vector<double>> best(tasks, std::vector<double>(candidates));
  std::vector<double> fastest(tasks);
  for (int round = 0; round < rules.rounds; ++round) {
    for (std::size_t task = 0; task < tasks; ++task) {
      for (std::size_t candidate = 0; candidate < candidates; ++candidate) {
        double& own = best[task][candidate];
        const bool first_round = round == 0;
        if (!first_round) {
          if (!time_left()) return best;
          const bool may_give_up = round >= rules.rounds_before_giving_up;
          if (may_give_up && own > rules.hopeless * fastest[task]) continue;
        }
        const double now = seconds(task, candidate);
        if (first_round || now < own) own = now;
        if ((first_round && candidate == 0) || own < fastest[task]) fastest[task] = own;
      }
    }
  }
  return best;
}

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_INTERLEAVED_ROUNDS_H_
