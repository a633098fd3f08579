// A real tidemarkd on free ports, for one test or one suite.
#ifndef TIDEMARK_TESTS_E2E_TEST_DAEMON_H_
#define TIDEMARK_TESTS_E2E_TEST_DAEMON_H_

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"
#include "client/tcp_producer.h"
#include "tests/e2e/process.h"

namespace tidemark::test {

struct HttpReply {
  int code = 0;  ///< 0: no answer
  std::string body;
};
/// One HTTP/1.1 request to 127.0.0.1; gives up after ten seconds.
HttpReply Http(std::uint16_t port, const std::string& path, const std::string& method = "GET",
               const std::string& token = "");

/// A port that was free a moment ago.
std::uint16_t FreePort();
/// A free port for a daemon that is down now and then: no outgoing connection is given it, for it
/// is below those that kernels take for them (net.ipv4.ip_local_port_range). Not from a seed:
/// programs that run at the same time have the same one.
std::uint16_t LastingPort();

/// `more`, and unless given there: port 0 everywhere, and the shortest measuring of sorters.
std::vector<std::string> DaemonFlags(const std::vector<std::string>& more = {});

/// The value of a sample in an exposition, as TestDaemon::Metric.
double MetricIn(const std::string& exposition, std::string_view sample);

/// How a call of the client's library ends.
client::Code CodeOf(const auto& call) {
  try {
    call();
  } catch (const client::Error& error) {
    return error.code();
  }
  return client::Code::kOk;
}

/// Starts in the constructor, ready when it returns. Stop, which the destructor calls, sends
/// SIGTERM and expects exit status 0 and no process left. What it logged is printed if a test has
/// failed. Thread: one, except address() and port(). Errors: throws std::runtime_error if it does
/// not start.
class TestDaemon {
 public:
  /// `launcher`: a program that becomes the daemon, which it is given with its arguments.
  explicit TestDaemon(const std::vector<std::string>& flags = {},
                      const std::map<std::string, std::string>& environment = {},
                      const std::string& launcher = "");
  ~TestDaemon();

  std::uint16_t port(const std::string& name) const { return ports_.at(name); }
  std::string address(const std::string& name) const {
    return "127.0.0.1:" + std::to_string(port(name));
  }
  /// Connected to it; the same one each time.
  client::Client& client() { return *client_; }
  std::unique_ptr<client::TcpProducer> Producer(client::TcpProducerOptions options = {}) const;
  HttpReply Get(const std::string& path) const { return Http(port("http"), path); }

  /// The value of a sample such as tidemark_ingest_refused_total{source="tcp",reason="nan"}, labels
  /// in any order; 0 if there is none. Further labels of the sample do not matter, and samples that
  /// differ in them are added.
  double Metric(std::string_view sample) const;

  Process& process() { return process_; }
  std::string ports_file() const { return folder_ / "ports.json"; }
  /// Every line of its log; each must be a JSON object, or this throws.
  std::vector<nlohmann::json> Log() const;
  /// Resident memory, from /proc: now, and at most since it started.
  std::uint64_t RssBytes() const { return StatusBytes("VmRSS:"); }
  std::uint64_t RssPeakBytes() const { return StatusBytes("VmHWM:"); }

  /// SIGTERM; `expected`: the exit status, or 128 and the signal that it ends by.
  void Stop(int expected = 0);
  /// SIGKILL, at whatever it is doing.
  void Kill();

 private:
  std::uint64_t StatusBytes(std::string_view field) const;

  TemporaryFolder folder_;
  Process process_;
  std::map<std::string, std::uint16_t> ports_;
  std::unique_ptr<client::Client> client_;
  bool stopped_ = false;
};

/// Runs `tidemark` against the daemon.
Completed RunTidemark(const TestDaemon& daemon, std::vector<std::string> arguments,
                      const std::optional<std::string>& input = std::nullopt);

/// Such as "s7".
std::string Numbered(std::string prefix, std::uint64_t number);

/// One datagram to 127.0.0.1.
void SendUdp(std::uint16_t port, const std::string& datagram);

/// More StatsD datagrams than any buffer that the kernel may have granted has room for, while the
/// daemon stands still: it loses some, and refuses a line of each of the others.
void LoseDatagrams(TestDaemon& daemon);
inline constexpr int kLostAtMost = 1500;

}  // namespace tidemark::test

#endif  // TIDEMARK_TESTS_E2E_TEST_DAEMON_H_
