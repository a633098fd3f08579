// A tidemarkd of our own, as a process on free ports, and what is seen of it from outside.
#ifndef TIDEMARK_TESTS_BENCH_SERVICE_BENCH_DAEMON_H_
#define TIDEMARK_TESTS_BENCH_SERVICE_BENCH_DAEMON_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::bench {

/// Started by the constructor, stopped (SIGTERM, waited for) by the destructor. Errors: every
/// method throws std::runtime_error. Its log goes to a file in a temporary folder that is removed
/// at the end, and is part of the message when the daemon does not start.
class Daemon {
 public:
  /// `arguments` come after our own, so that they win.
  Daemon(const std::string& program, const std::vector<std::string>& arguments);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  std::uint16_t tcp() const { return tcp_; }
  std::uint16_t grpc() const { return grpc_; }
  std::uint16_t http() const { return http_; }
  std::uint16_t statsd() const { return statsd_; }
  std::string grpc_address() const { return "127.0.0.1:" + std::to_string(grpc_); }

  /// The exposition of /metrics.
  std::string Metrics() const;
  /// SumOfSamples of it.
  double Metric(std::string_view prefix) const;
  /// Resident memory, bytes, as the kernel counts it.
  double ResidentBytes() const;
  /// How many descriptors it has open.
  std::size_t Descriptors() const;
  /// Processor time of all its threads, seconds.
  double CpuSeconds() const;

 private:
  void WaitUntilReady();
  void Stop();

  std::string folder_;
  pid_t pid_ = -1;
  std::uint16_t grpc_ = 0;
  std::uint16_t tcp_ = 0;
  std::uint16_t http_ = 0;
  std::uint16_t statsd_ = 0;
};

/// The sum of the samples in an exposition that begin with `prefix`, e.g.
/// `tidemark_ingest_values_total{source="tcp"`.
double SumOfSamples(const std::string& exposition, std::string_view prefix);

/// A socket connected to 127.0.0.1:port; SOCK_STREAM or SOCK_DGRAM.
int ConnectLoopback(int type, std::uint16_t port);
/// Sends all of it.
void SendAll(int socket, std::string_view bytes);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_SERVICE_BENCH_DAEMON_H_
