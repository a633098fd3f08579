// What service_bench measures: one function for each section.
#ifndef TIDEMARK_TESTS_BENCH_SERVICE_BENCH_SECTIONS_H_
#define TIDEMARK_TESTS_BENCH_SERVICE_BENCH_SECTIONS_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/service_bench_report.h"

namespace tidemark::bench {

struct Options {
  std::string tidemarkd;                  ///< the program to measure
  std::vector<std::string> daemon_flags;  ///< for it, beside addresses
  int rounds = 7;
  double seconds = 1.0;  ///< of one measurement
  bool smoke = false;    ///< small amounts: does it run, is nothing lost
  std::string only;      ///< of throughput: only figures whose name holds this text
  std::string folder;    ///< of durability: where data folders are made

  std::chrono::duration<double> duration() const { return std::chrono::duration<double>(seconds); }
  bool Wants(std::string_view figure) const { return figure.find(only) != figure.npos; }
};

/// Framed TCP, gRPC and StatsD over TCP, the sort alone, and the same senders into a reader that
/// only counts: one after the other in each round.
Section Throughput(const Options& options);
/// StatsD over UDP at a fixed pace: what is lost.
Section StatsdUdp(const Options& options);
/// A paced client's queries while nothing comes in, and while framed TCP is full.
Section Latency(const Options& options);
/// What one stream holds as it grows, and what ten thousand quiet ones add.
Section Memory(const Options& options);
/// What it costs that values outlive the process: framed TCP and queries with each mode of
/// store.durability, beside raw writing to the same disk.
Section Durability(const Options& options);

// Shared by the sections.

/// Uniform in [0, 1), the same in every run. 2^21 values are 8 MiB: more than a core's L2 holds, so
/// that the sender reads them from further away, as a real one would.
const std::vector<float>& UniformValues();

/// Steady, unaffected by the wall clock.
using Clock = std::chrono::steady_clock;
inline double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_SERVICE_BENCH_SECTIONS_H_
