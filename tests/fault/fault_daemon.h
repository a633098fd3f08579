// A daemon in mode log that is ended and started again on one data folder and the same ports, so
// that its producers find it again.
#ifndef TIDEMARK_TESTS_FAULT_FAULT_DAEMON_H_
#define TIDEMARK_TESTS_FAULT_FAULT_DAEMON_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/test_daemon.h"
#include "tests/fault/feeds.h"

namespace tidemark::fault {

/// Small, so that few values make many windows.
inline constexpr std::uint32_t kWindowMin = 16;
inline constexpr std::uint32_t kWindowMax = 1024;

class FaultDaemon {
 public:
  /// Does not start it. `flags`: more than those of every fault run (small windows and segments, a
  /// snapshot every second).
  explicit FaultDaemon(std::string data_folder, std::vector<std::string> flags = {},
                       std::map<std::string, std::string> environment = {});

  /// Ready when it returns. Throws std::runtime_error if it ends before.
  void Start();
  /// As often as it takes: where a fault ends it before it is ready. How often it was started.
  int StartAgainAndAgain();
  /// SIGKILL.
  void Kill();
  /// Waits for an end that a fault brings: SIGKILL. False if it does not come.
  bool AwaitKill(std::chrono::milliseconds patience = test::kPatience);
  /// SIGTERM.
  void Stop();
  bool running() { return daemon_ != nullptr && daemon_->process().running(); }
  /// REQUIRES: started.
  test::TestDaemon& operator*() { return *daemon_; }
  test::TestDaemon* operator->() { return daemon_.get(); }

  /// The streams of kStreams and kProbeStream, in spite of a disk that fails at first. Waits until
  /// gRPC connects again.
  void CreateStreams();
  void AwaitGrpc();

  std::uint16_t tcp_port() const { return tcp_port_; }
  const std::string& grpc_address() const { return grpc_address_; }
  const std::string& data_folder() const { return data_folder_; }
  std::string store() const { return data_folder_ + "/store"; }

 private:
  const std::string data_folder_;
  const std::uint16_t tcp_port_;
  const std::string grpc_address_;
  const std::map<std::string, std::string> environment_;
  std::vector<std::string> flags_;
  std::unique_ptr<test::TestDaemon> daemon_;
};

}  // namespace tidemark::fault

#endif  // TIDEMARK_TESTS_FAULT_FAULT_DAEMON_H_
