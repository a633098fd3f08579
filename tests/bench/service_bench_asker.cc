#include "tests/bench/service_bench_asker.h"

#include <pthread.h>
#include <sched.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "tests/bench/service_bench_sections.h"

namespace tidemark::bench {
namespace {

constexpr double kQueriesPerSecond = 500;
// One query outstanding each; with four a query may take 8 ms before the next one of its thread is
// late.
constexpr int kThreads = 4;

// Whether this thread may have real-time priority; it has it then.
bool GoFirst() {
  const sched_param lowest{.sched_priority = 1};
  return pthread_setschedparam(pthread_self(), SCHED_RR, &lowest) == 0;
}

}  // namespace

bool MayGoFirst() {
  bool may = false;
  std::thread([&] { may = GoFirst(); }).join();
  return may;
}

std::vector<Sample> AskPaced(client::Client& client, const std::string& stream, double seconds,
                             Asker asker) {
  const auto interval = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(1 / kQueriesPerSecond));
  const auto queries = static_cast<int>(seconds * kQueriesPerSecond);
  const Clock::time_point start = Clock::now() + interval;
  std::vector<std::vector<Sample>> samples(kThreads);
  std::vector<std::string> errors(kThreads);
  std::vector<std::jthread> threads;  // joined whatever is thrown
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      const auto at = static_cast<std::size_t>(thread);
      try {
        if (asker == Asker::kFirst && !GoFirst()) throw std::runtime_error("no priority");
        for (int query = thread; query < queries; query += kThreads) {
          const Clock::time_point due = start + query * interval;
          std::this_thread::sleep_until(due);
          const Clock::time_point asked = Clock::now();
          if (client.Quantiles(stream, {0.5, 0.99}).answers.size() != 2) {
            throw std::runtime_error("an answer without quantiles");
          }
          samples[at].push_back({1e6 * SecondsSince(asked), 1e6 * SecondsSince(due)});
        }
      } catch (const std::exception& error) {
        errors[at] = error.what();
      }
    });
  }
  std::vector<Sample> all;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    threads[thread].join();
    if (!errors[thread].empty()) throw std::runtime_error(errors[thread]);
    all.insert(all.end(), samples[thread].begin(), samples[thread].end());
  }
  return all;
}

void AddQueryTimes(Section& section, const std::string& when, const std::vector<Sample>& samples) {
  std::vector<double> calls;
  std::vector<double> overdue;
  for (const Sample& sample : samples) {
    calls.push_back(sample.call_us);
    overdue.push_back(sample.overdue_us);
  }
  section.Add(when + ", p50", "µs", Quantile(calls, 0.5));
  section.Add(when + ", p99", "µs", Quantile(calls, 0.99));
  section.Add(when + ", p99 from when it was due", "µs", Quantile(overdue, 0.99));
}

}  // namespace tidemark::bench
