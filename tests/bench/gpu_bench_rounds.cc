#include "tests/bench/gpu_bench_rounds.h"

#include <epoxy/gl.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "gpu/gl/fence.h"
#include "gpu/sort/window_sorter.h"
#include "tests/bench/measuring.h"

namespace tidemark::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kDeviceLimit{60};

double SumOfDevice(const std::map<std::string, double>& steps) {
  double sum = 0;
  for (const auto& [step, seconds] : steps) {
    if (step != "upload" && step.rfind("read", 0) != 0) sum += seconds;
  }
  return sum;
}

sort::SortCounts CountsOf(const Entrant& entrant) {
  return entrant.counted == nullptr ? sort::SortCounts{} : entrant.counted->counts();
}

// Of one of `requests` equal ones.
sort::SortCounts Difference(const sort::SortCounts& after, const sort::SortCounts& before,
                            double requests) {
  const auto n = static_cast<std::uint64_t>(requests);
  return {(after.comparisons - before.comparisons) / n, (after.passes - before.passes) / n,
          (after.copies - before.copies) / n, (after.draw_calls - before.draw_calls) / n,
          (after.bytes_moved - before.bytes_moved) / n};
}

}  // namespace

struct StepTimer::State {
  bool has_timer = false;
  std::mutex mutex;
  bool armed = false;       // all below guarded by mutex
  std::string step;         // under way; empty: none
  Clock::time_point since;  // it began
  GLuint begin_query = 0;   // when it began, by the device
  Times times;

  GLuint Stamp() const {
    GLuint query = 0;
    if (!has_timer) return query;
    glGenQueries(1, &query);
    glQueryCounter(query, GL_TIMESTAMP);
    return query;
  }
  static double TakeSeconds(GLuint begin, GLuint end) {
    GLuint64 from = 0;
    GLuint64 to = 0;
    glGetQueryObjectui64v(begin, GL_QUERY_RESULT, &from);
    glGetQueryObjectui64v(end, GL_QUERY_RESULT, &to);
    const GLuint queries[] = {begin, end};
    glDeleteQueries(2, queries);
    return 1e-9 * static_cast<double>(to - from);
  }

  void Step(std::string_view next) {
    const std::lock_guard lock(mutex);
    if (!armed) return;
    const GLuint end = Stamp();
    if (!gl::Fence::Insert().Wait(kDeviceLimit)) throw std::runtime_error("the device hangs");
    // What lies between two requests is no step of either.
    const bool counts = !step.empty() && next != "upload";
    if (counts) {
      times.by_clock[step] += std::chrono::duration<double>(Clock::now() - since).count();
    }
    if (has_timer) {
      if (begin_query == 0) {
        glDeleteQueries(1, &end);
      } else if (const double seconds = TakeSeconds(begin_query, end); counts) {
        times.by_timer[step] += seconds;
      }
    }
    // Nothing comes behind the wait for the last step: it is told before it begins.
    step = next == "wait" ? std::string() : std::string(next);
    begin_query = step.empty() ? 0 : Stamp();
    since = Clock::now();
  }
};

StepTimer::StepTimer(bool has_timer) : state_(std::make_shared<State>()) {
  state_->has_timer = has_timer;
}

std::function<void(std::string_view)> StepTimer::Observer() const {
  return [state = state_](std::string_view step) { state->Step(step); };
}

void StepTimer::Arm() {
  const std::lock_guard lock(state_->mutex);
  state_->armed = true;
  state_->step.clear();
  state_->times = {};
}

StepTimer::Times StepTimer::Disarm() {
  const std::lock_guard lock(state_->mutex);
  state_->armed = false;
  return std::exchange(state_->times, {});
}

double StepTimer::Times::device() const { return SumOfDevice(by_clock); }
double StepTimer::Times::device_by_timer() const { return SumOfDevice(by_timer); }

std::string Rounds::NameOf(const Row& row) {
  return row.subject + "|" + row.form + "|" + row.parameter + "|" + std::to_string(row.key_bits) +
         "|" + std::to_string(row.payload_bits);
}

bool Rounds::LeftOut(Entrant& entrant, double growth) const {
  // Eight times its budget: what it would cost a run to have one more size.
  constexpr double kPatience = 8;
  if (budget_.over()) {
    entrant.row.result = "left out: no time left";
    return true;
  }
  const auto last = last_seconds_.find(NameOf(entrant.row));
  if (last == last_seconds_.end()) return false;
  const double expected = last->second * growth * entrant.requests;
  if (expected <= kPatience * budget_.seconds) return false;
  char text[64];
  std::snprintf(text, sizeof text, "left out: %.1f s expected", expected);
  entrant.row.result = text;
  return true;
}

bool Rounds::Turn(Entrant& entrant, bool warm_up) const {
  Row& row = entrant.row;
  try {
    entrant.prepare();
    const sort::SortCounts before = CountsOf(entrant);
    const double seconds = entrant.run();
    if (entrant.counted != nullptr) {
      row.counts = Difference(CountsOf(entrant), before, entrant.requests);
    }
    if (const std::string wrong = entrant.check(); !wrong.empty()) {
      row.result = "WRONG: " + wrong;
      return false;
    }
    const bool slow = warm_up && seconds * entrant.requests > budget_.seconds;
    if (!warm_up || slow) row.seconds.push_back(seconds);
    if (entrant.timer != nullptr) {
      entrant.prepare();
      entrant.timer->Arm();
      entrant.run();
      const StepTimer::Times times = entrant.timer->Disarm();
      if (!warm_up || slow) {
        row.device.push_back(times.device() / entrant.requests);
        if (!times.by_timer.empty()) {
          row.by_timer.push_back(times.device_by_timer() / entrant.requests);
        }
      }
    }
    return !slow;
  } catch (const sort::SorterRefusal& refusal) {
    row.result = std::string("refused: ") + refusal.what();
  } catch (const std::exception& error) {
    row.result = std::string("failed: ") + error.what();
  }
  return false;
}

bool Rounds::OutOfTime(int log2_keys) const {
  if (!budget_.over()) return false;
  report_->Say("\nLeft out, no time left: windows of 2^" + std::to_string(log2_keys) + " keys.");
  return true;
}

double Rounds::Limit(std::size_t entrants) {
  const std::chrono::duration<double> left = budget_.deadline - Clock::now();
  const double share = left.count() / static_cast<double>(std::max<std::size_t>(cells_left_, 1));
  if (cells_left_ > 0) --cells_left_;
  return std::min(share, budget_.seconds * static_cast<double>(entrants));
}

std::vector<Row> Rounds::Run(std::vector<Entrant> entrants, double growth) {
  std::vector<Entrant*> running;
  for (Entrant& entrant : entrants) {
    if (!LeftOut(entrant, growth)) running.push_back(&entrant);
  }
  const std::chrono::duration<double> limit(Limit(running.size()));
  auto start = Clock::now();
  for (std::size_t round = 0; round <= budget_.rounds_max; ++round) {
    const bool spent = Clock::now() - start > limit;
    if (round > budget_.rounds_min && (spent || budget_.over())) break;
    for (std::size_t i = 0; i < running.size();) {
      if (Turn(*running[i], round == 0)) {
        ++i;
      } else {
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if (round == 0) start = Clock::now();
  }
  std::vector<Row> rows;
  for (Entrant& entrant : entrants) {
    const std::vector<double>& seconds = entrant.row.seconds;
    if (!seconds.empty()) {
      last_seconds_[NameOf(entrant.row)] = SpreadOf(seconds).median;
    }
    report_->Add(entrant.row);
    rows.push_back(std::move(entrant.row));
  }
  return rows;
}

}  // namespace tidemark::bench
