// A client that asks at a fixed pace.
#ifndef TIDEMARK_TESTS_BENCH_SERVICE_BENCH_ASKER_H_
#define TIDEMARK_TESTS_BENCH_SERVICE_BENCH_ASKER_H_

#include <string>
#include <vector>

#include "client/client.h"
#include "tests/bench/service_bench_report.h"
#include "tests/bench/service_bench_sections.h"

namespace tidemark::bench {

struct QueryTime {
  double call_us = 0;     ///< from the call to its return
  double overdue_us = 0;  ///< from when the query was due to its return: a late start counts
};

/// The asker stands for another machine, but shares these cores with everything else: its own
/// waking up is part of what it measures.
enum class Asker {
  kOrdinary,  ///< as any program beside a full daemon
  kFirst,     ///< real-time priority: what is left is the daemon's part. Needs privilege
};
bool MayAskFirst();

/// 500 queries a second at absolute times, whatever the answers before them took (no coordinated
/// omission), for as long as a measurement takes. Errors: throws std::runtime_error, also for an
/// answer without quantiles.
std::vector<QueryTime> AskPaced(client::Client& client, const std::string& stream,
                                const Options& options, Asker asker);

/// p50 and p99 of them, as the figures "`when`, p50", ...
void AddQueryTimes(Section& section, const std::string& when, const std::vector<QueryTime>& times);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_SERVICE_BENCH_ASKER_H_
