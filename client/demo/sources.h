// Real values without any download: what the machine itself does, in nanoseconds and names.
// Each call takes a bounded time. Errors: std::system_error where the system refuses.
#ifndef TIDEMARK_CLIENT_DEMO_SOURCES_H_
#define TIDEMARK_CLIENT_DEMO_SOURCES_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/value.h"

namespace tidemark::demo {

/// CLOCK_MONOTONIC in nanoseconds.
std::uint64_t ClockNs();

/// Appends the gaps between `count` successive clock readings, fewer once `most` time has passed.
/// A gap above 2^32 - 1 ns (the machine slept) counts as that.
void AppendClockGaps(std::size_t count, std::chrono::nanoseconds most,
                     std::vector<std::uint32_t>* gaps);

/// Sleeps for `pause` and says how much later than asked the thread ran again, in nanoseconds.
double WakeDelayNs(std::chrono::nanoseconds pause);

/// A datagram over 127.0.0.1 to another socket and back.
class Loopback {
 public:
  Loopback();
  ~Loopback();
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;

  /// Nanoseconds there and back; nullopt if the kernel lost a datagram (waits 100 ms for it).
  std::optional<float> RoundTripNs();

 private:
  bool Pass(int from, int to);

  int first_ = -1;
  int second_ = -1;
  std::uint64_t sequence_ = 0;
};

/// "name state" of every thread of every process that can be seen, e.g. "bash S", "ninja R".
std::vector<std::string> ThreadStates();
/// From one line of /proc/PID/task/TID/stat; "?" for a name that is not UTF-8, nullopt for no such
/// line.
std::optional<std::string> ParseThreadState(const std::string& stat);

/// The other end of each open IPv4 TCP connection.
std::vector<client::Ipv4> TcpPeers();
/// From one line of /proc/net/tcp or tcp6; nullopt for the heading, sockets without a peer, and
/// IPv6 peers.
std::optional<client::Ipv4> ParseTcpPeer(const std::string& line);

}  // namespace tidemark::demo

#endif  // TIDEMARK_CLIENT_DEMO_SOURCES_H_
