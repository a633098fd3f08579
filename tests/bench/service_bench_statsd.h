// StatsD lines of 27 bytes under 100 names.
#ifndef TIDEMARK_TESTS_BENCH_SERVICE_BENCH_STATSD_H_
#define TIDEMARK_TESTS_BENCH_SERVICE_BENCH_STATSD_H_

#include <cstddef>
#include <string>

namespace tidemark::bench {

inline constexpr std::size_t kStatsdLineBytes = 27;
/// 1.4 MB, sent again and again.
inline constexpr std::size_t kStatsdLinesPrepared = 53'000;

/// That many lines `metric.name.042:123.456|ms\n`.
std::string StatsdLines(std::size_t count);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_SERVICE_BENCH_STATSD_H_
