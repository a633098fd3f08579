#include "tests/fault/fault_daemon.h"

#include <gtest/gtest.h>

#include <csignal>
#include <stdexcept>
#include <utility>

namespace tidemark::fault {
namespace {

std::string OnLoopback(std::uint16_t port) {
  std::string address = "127.0.0.1:";
  address += std::to_string(port);
  return address;
}

}  // namespace

FaultDaemon::FaultDaemon(std::string data_folder, std::vector<std::string> flags,
                         std::map<std::string, std::string> environment)
    : data_folder_(std::move(data_folder)),
      tcp_port_(test::LastingPort()),
      grpc_address_(OnLoopback(test::LastingPort())),
      environment_(std::move(environment)),
      flags_({"--data-dir", data_folder_, "--sorter", "cpu", "--durability", "log",
              "--log-segment-bytes", "1048576", "--snapshot-interval-s", "1", "--window-min",
              std::to_string(kWindowMin), "--window-max", std::to_string(kWindowMax), "--grpc",
              grpc_address_, "--tcp", OnLoopback(tcp_port_)}) {
  flags_.insert(flags_.end(), flags.begin(), flags.end());
}

void FaultDaemon::Start() {
  daemon_.reset();
  daemon_ = std::make_unique<test::TestDaemon>(flags_, environment_);
}

int FaultDaemon::StartAgainAndAgain() {
  constexpr int kStartsMax = 20;
  for (int starts = 1;; ++starts) {
    try {
      Start();
      return starts;
    } catch (const std::runtime_error&) {
      if (starts == kStartsMax) throw;
    }
  }
}

void FaultDaemon::Kill() { daemon_->Kill(); }

bool FaultDaemon::AwaitKill(std::chrono::milliseconds patience) {
  if (daemon_->process().Wait(patience) != 128 + SIGKILL) return false;
  daemon_->Kill();  // it is over
  return true;
}

void FaultDaemon::Stop() { daemon_->Stop(); }

void FaultDaemon::AwaitGrpc() {
  // gRPC shares connections to one address: this one may be to a daemon that was killed.
  EXPECT_TRUE(test::WaitUntil(
      [&] { return test::CodeOf([&] { daemon_->client().ListStreams(); }) == client::Code::kOk; }));
}

void FaultDaemon::CreateStreams() {
  AwaitGrpc();
  std::vector<FaultStream> streams(kStreams.begin(), kStreams.end());
  streams.push_back({Kind::kShared, kProbeStream});
  for (const FaultStream& stream : streams) {
    client::Code code{};
    const auto created = [&] {
      code = test::CodeOf(
          [&] { daemon_->client().CreateStream(std::string(stream.name), ConfigOf(stream.kind)); });
      return code != client::Code::kUnavailable;
    };
    EXPECT_TRUE(test::WaitUntil(created));
    // What was answered UNAVAILABLE may have been done.
    EXPECT_TRUE(code == client::Code::kOk || code == client::Code::kAlreadyExists)
        << stream.name << ": code " << static_cast<int>(code);
  }
}

}  // namespace tidemark::fault
