// The crowds that crowd_bench measures beside a client who asks.
#ifndef TIDEMARK_TESTS_BENCH_CROWD_BENCH_SCENES_H_
#define TIDEMARK_TESTS_BENCH_CROWD_BENCH_SCENES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/crowd_bench_crowd.h"
#include "tests/bench/service_bench_daemon.h"

namespace tidemark::bench {

/// What of the daemon must be so while a crowd is there, and after it.
struct Sight {
  /// Daemon::Metric, whether or not that is behind TLS.
  double Metric(std::string_view prefix) const;
  const Daemon& daemon;
  const Crowd& crowd;
  std::string ca = {};  ///< of the metrics' TLS; empty: there is none
};

struct Scene {
  std::string name;  ///< as given on the command line
  std::string what;  ///< in a table
  std::size_t members = 10'000;
  std::vector<std::string> flags;
  std::uint16_t (Daemon::*port)() const;
  Script script;
  /// Resident bytes that one member may cost.
  double bytes_max = 0;
  /// Those by which one may grow while all are there.
  double growth_max = 0;
  /// Those that the daemon may take, or grow by, besides: its threads' buffers, pages of its
  /// allocator.
  double bytes_besides = 12e6;
  /// Waited for while the crowd is there: true when what should be refused, paused or counted is.
  std::function<bool(const Sight&)> seen = {};
  /// The daemon closes them by itself, which is waited for at the end of each round, and then that
  /// each of these samples has counted them, once.
  bool ends_them = false;
  std::vector<std::string> counted = {};
  /// Some are closed as soon as they come.
  bool refuses_some = false;
  /// The asker speaks TLS.
  bool tls_asker = false;
  /// HTTP speaks TLS.
  bool tls_metrics = false;
};

/// `folder` holds server.pem and server.key; the daemon ends what is slow after `timeout_s`
/// seconds, and handshakes that gRPC begins one after the other (tls.grpc_handshakes_per_s)
/// `pace_s` later.
std::vector<Scene> Scenes(const std::string& folder, int timeout_s, int pace_s);

/// The stream that everybody speaks of.
inline constexpr char kCrowdStream[] = "crowd";

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_CROWD_BENCH_SCENES_H_
