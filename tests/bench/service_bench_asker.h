// A client that asks at a fixed pace, whatever the answers before took.
#ifndef TIDEMARK_TESTS_BENCH_SERVICE_BENCH_ASKER_H_
#define TIDEMARK_TESTS_BENCH_SERVICE_BENCH_ASKER_H_

#include <string>
#include <vector>

#include "client/client.h"
#include "tests/bench/service_bench_report.h"

namespace tidemark::bench {

struct Sample {
  double call_us = 0;     // from the call to its return
  double overdue_us = 0;  // from when the query was due to its return: a late start counts
};

// The asker stands for another machine, but shares these cores with everything else: its own waking
// up is part of what it measures.
enum class Asker {
  kOrdinary,  // as any program beside a full daemon
  kFirst,     // real-time priority: what is left is the daemon's part. Needs privilege
};

// Whether threads of this process may have real-time priority.
bool MayGoFirst();

// Asks for two quantiles 500 times a second at absolute times (no coordinated omission). Throws
// std::runtime_error if an answer is none.
std::vector<Sample> AskPaced(client::Client& client, const std::string& stream, double seconds,
                             Asker asker);

// The figures "`when`, p50" and so on.
void AddQueryTimes(Section& section, const std::string& when, const std::vector<Sample>& samples);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_SERVICE_BENCH_ASKER_H_
