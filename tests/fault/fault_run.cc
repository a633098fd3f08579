#include "tests/fault/fault_run.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <utility>

namespace tidemark::fault {
namespace {

using Bytes = std::map<std::string, std::string>;

void ExpectSame(const Bytes& a, const Bytes& b, const char* what) {
  EXPECT_GE(a.size(), kStreams.size()) << what;
  EXPECT_EQ(a.size(), b.size()) << what;
  for (const auto& [name, bytes] : a) {
    const auto other = b.find(name);
    EXPECT_TRUE(other != b.end() && other->second == bytes) << what << ": stream " << name;
  }
}

}  // namespace

FaultRun::FaultRun(std::uint64_t seed, const RunOptions& options)
    : seed_(seed),
      data_(options.data_folder.empty() ? folder_ / "data" : options.data_folder),
      control_(options.preload ? std::make_unique<FaultControl>(data_, folder_ / "archive")
                               : nullptr),
      daemon_(data_, options.flags,
              control_ ? control_->Environment() : std::map<std::string, std::string>()) {
  const std::string archive = folder_ / "archive";
  for (const std::string& folder : {data_, archive}) std::filesystem::create_directory(folder);
  archive_.emplace(daemon_.store(), archive, !options.data_folder.empty());
  if (!options.start) return;
  daemon_.Start();
  daemon_.CreateStreams();
}

void FaultRun::StartWriters(WritersOptions options) {
  options.seed = seed_;
  options.tcp_port = daemon_.tcp_port();
  options.grpc_address = daemon_.grpc_address();
  writers_ = std::make_unique<Writers>(std::move(options));
}

void FaultRun::AwaitProgress() {
  std::array<std::uint64_t, kWriters> before{};
  for (std::uint8_t i = 0; i < kWriters; ++i) before[i] = writers_->acknowledged(i);
  constexpr std::chrono::minutes kLong{5};  // beside programs that take all of a machine
  const bool all = test::WaitUntil(
      [&] {
        for (std::uint8_t i = 0; i < kWriters; ++i) {
          if (writers_->acknowledged(i) <= before[i]) return false;
        }
        return true;
      },
      kLong);
  EXPECT_TRUE(all) << "a writer gets nothing through";
}

void FaultRun::EndAndJudge(Judged& all) {
  writers_->End();
  if (control_) control_->Disarm();
  daemon_.AwaitGrpc();
  const SentOfAll& sent = writers_->sent();
  ExpectAnswersOf(daemon_->client(), seed_, sent);
  const Bytes live = ExportsOf(daemon_->client());
  daemon_.Kill();
  archive_->Complete();
  const std::string& whole_log = archive_->folder();
  all.batches += ExpectLogOf(whole_log, seed_, sent);
  for (const Sent& feed : sent) all.values += feed.values;
  all.retries += writers_->retries();
  ExpectSame(ImagesOf(daemon_.store(), true), ImagesOf(whole_log, false),
             "what is left, and one run without an interruption");
  daemon_.Start();
  daemon_.AwaitGrpc();
  ExpectSame(live, ExportsOf(daemon_->client()), "exported before and after a kill");
  daemon_.Stop();
}

}  // namespace tidemark::fault
