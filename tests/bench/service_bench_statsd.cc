#include "tests/bench/service_bench_statsd.h"

#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <stdexcept>
#include <thread>

#include "tests/bench/service_bench_daemon.h"
#include "tests/bench/service_bench_sections.h"

namespace tidemark::bench {
namespace {

constexpr double kLinesPerSecond = 5e6;
constexpr std::size_t kLinesPerDatagram = 53;
static_assert(kLinesPerDatagram * kStatsdLineBytes <= 1432, "fits an Ethernet frame");
constexpr std::size_t kDatagramsPerCall = 32;
// The daemon is given this long without a new value before what is missing counts as lost.
constexpr std::chrono::milliseconds kQuiet{300};

constexpr std::string_view kTaken = "tidemark_ingest_values_total{source=\"statsd_udp\"";

double Dropped(const Daemon& daemon, std::string_view reason) {
  return daemon.Metric("tidemark_ingest_dropped_total{reason=\"" + std::string(reason) +
                       "\",source=\"statsd_udp\"");
}

struct Paced {
  double lines = 0;
  double seconds = 0;
};

// Calls of sendmmsg at absolute times; one that is late is made up for at once, as a burst.
Paced SendPaced(int socket, const std::string& lines, const Options& options) {
  constexpr std::size_t kDatagramBytes = kLinesPerDatagram * kStatsdLineBytes;
  const std::size_t datagrams = lines.size() / kDatagramBytes;
  const auto interval = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
      static_cast<double>(kDatagramsPerCall * kLinesPerDatagram) / kLinesPerSecond));
  std::array<iovec, kDatagramsPerCall> parts{};
  std::array<mmsghdr, kDatagramsPerCall> messages{};
  for (std::size_t i = 0; i < kDatagramsPerCall; ++i) {
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  std::size_t next = 0;
  std::string text = lines;
  Paced paced;
  const Clock::time_point start = Clock::now();
  Clock::time_point due = start;
  while (SecondsSince(start) < options.seconds) {
    std::this_thread::sleep_until(due);
    due += interval;
    for (iovec& part : parts) {
      part = {text.data() + (next % datagrams) * kDatagramBytes, kDatagramBytes};
      ++next;
    }
    unsigned done = 0;
    while (done < kDatagramsPerCall) {
      const int sent = sendmmsg(socket, messages.data() + done,
                                static_cast<unsigned>(kDatagramsPerCall) - done, 0);
      if (sent < 0) {
        if (errno == EINTR) continue;
        throw std::runtime_error(std::string("sendmmsg: ") + std::strerror(errno));
      }
      done += static_cast<unsigned>(sent);
    }
    paced.lines += static_cast<double>(kDatagramsPerCall * kLinesPerDatagram);
  }
  paced.seconds = SecondsSince(start);
  return paced;
}

}  // namespace

std::string StatsdLines(std::size_t count) {
  std::string lines;
  lines.reserve(count * kStatsdLineBytes);
  std::mt19937 random(1);
  for (std::size_t i = 0; i < count; ++i) {
    std::array<char, 64> line;
    const int bytes = std::snprintf(line.data(), line.size(), "metric.name.%03u:%03u.%03u|ms\n",
                                    static_cast<unsigned>(random() % 100),
                                    static_cast<unsigned>(100 + random() % 900),
                                    static_cast<unsigned>(random() % 1000));
    assert(bytes == static_cast<int>(kStatsdLineBytes));
    lines.append(line.data(), static_cast<std::size_t>(bytes));
  }
  return lines;
}

Section StatsdUdp(const Options& options) {
  Section section("StatsD over UDP, 5 million lines/s");
  const Daemon daemon(options.tidemarkd, options.daemon_flags);
  const std::string lines = StatsdLines(kStatsdLinesPrepared);
  const int socket = ConnectLoopback(SOCK_DGRAM, daemon.statsd());
  const double cpu_before = daemon.CpuSeconds();
  double busy_seconds = 0;
  for (int round = 0; round < options.rounds; ++round) {
    const double before = daemon.Metric(kTaken);
    const double kernel_before = Dropped(daemon, "kernel_buffer");
    const double saturated_before = Dropped(daemon, "saturated");
    const Paced paced = SendPaced(socket, lines, options);
    busy_seconds += paced.seconds;
    double taken = daemon.Metric(kTaken) - before;
    Clock::time_point changed = Clock::now();
    while (taken < paced.lines && Clock::now() - changed < kQuiet) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const double now = daemon.Metric(kTaken) - before;
      if (now > taken) changed = Clock::now();
      taken = now;
    }
    section.Add("sent", "M lines/s", paced.lines / paced.seconds / 1e6);
    section.Add("lost", "lines", paced.lines - taken);
    section.Add("lost, of sent", "%", 100 * (paced.lines - taken) / paced.lines);
    section.Add("dropped by the kernel, as counted", "datagrams",
                Dropped(daemon, "kernel_buffer") - kernel_before);
    section.Add("dropped while saturated, as counted", "datagrams",
                Dropped(daemon, "saturated") - saturated_before);
  }
  close(socket);
  section.Add("processor time of the daemon", "cores",
              (daemon.CpuSeconds() - cpu_before) / busy_seconds);
  section.Note("aim: none lost, as root with the default configuration");
  return section;
}

}  // namespace tidemark::bench
