// A daemon's folder that was damaged: what the start says, what `tidemark store` says, and what a
// daemon answers after the repair.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/test_daemon.h"

namespace tidemark::test {
namespace {

class StoreCommandTest : public testing::Test {
 protected:
  std::vector<std::string> Flags() const {
    return {"--data-dir", data_.path(), "--durability", "log"};
  }
  Completed Store(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "store");
    arguments.push_back(data_.path());
    return RunProgram({.program = TIDEMARK_PROGRAM, .arguments = std::move(arguments)});
  }

  TemporaryFolder data_;
};

void Push(TestDaemon& daemon, const std::string& stream, std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> values(count);
  std::iota(values.begin(), values.end(), first);
  client::Pusher pusher = daemon.client().Push(stream);
  pusher.Write(values);
  ASSERT_EQ(pusher.Finish().accepted, count);
}

// Without a log nothing leads from the snapshot before to what the newest one held.
TEST_F(StoreCommandTest, ADamagedSnapshotIsNotPassedOverInSilence) {
  const std::vector<std::string> flags = {"--data-dir", data_.path(), "--durability", "snapshot"};
  for (int life = 0; life < 2; ++life) {
    TestDaemon daemon(flags);
    Push(daemon, "s", 0, 100);
  }
  std::set<std::string> snapshots;
  for (const auto& entry : std::filesystem::directory_iterator(data_ / "store")) {
    snapshots.insert(entry.path().string());
  }
  ASSERT_EQ(snapshots.size(), 2u);
  const std::string newest = *snapshots.rbegin();
  std::fstream file(newest, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(100);
  file.put('\x5a');
  file.close();
  for (const char* mode : {"snapshot", "log"}) {
    const Completed start =
        RunProgram({.program = TIDEMARKD_PROGRAM,
                    .arguments = DaemonFlags({"--data-dir", data_.path(), "--durability", mode})});
    EXPECT_EQ(start.status, 1);
    EXPECT_NE(start.err.find(newest), std::string::npos) << start.err;
    EXPECT_NE(start.err.find("tidemark store repair"), std::string::npos) << start.err;
  }
  EXPECT_EQ(Store({"repair", "--yes"}).status, 0);
  TestDaemon daemon(flags);
  EXPECT_EQ(daemon.client().DescribeStream("s").count, 100u);
}

TEST_F(StoreCommandTest, ADamagedLogIsNamedRepairedAndGoesOn) {
  constexpr std::uint64_t kBefore = 40'000, kAfter = 3'000;
  std::string exported;
  {
    TestDaemon daemon(Flags());
    Push(daemon, "s", 0, kBefore);
    Push(daemon, "other", 0, 100);
    // What was taken in up to here is the prefix that is left.
    exported = daemon.client().ExportStream("s");
    Push(daemon, "s", kBefore, kAfter);
    Push(daemon, "late", 0, 10);
    for (const char* command : {"verify", "dump", "repair"}) {
      const Completed used = Store({command});
      EXPECT_EQ(used.status, 1);
      EXPECT_EQ(used.out, "");
      EXPECT_NE(used.err.find("is in use by another process"), std::string::npos) << used.err;
    }
    daemon.Stop();
  }
  const Completed whole = Store({"verify"});
  EXPECT_EQ(whole.status, 0) << whole.out << whole.err;

  // The first record behind the prefix: the first batch of what came then.
  const Completed dump = Store({"dump"});
  EXPECT_EQ(dump.status, 0) << dump.err;
  std::istringstream lines(dump.out);
  std::uint64_t values = 0, offset = 0, damaged_sequence = 0, last_sequence = 0;
  for (std::string text; std::getline(lines, text);) {
    const nlohmann::json line = nlohmann::json::parse(text);
    last_sequence = line["sequence"];
    if (line["kind"] != "batch" || line["id"] != 1) continue;
    if (values == kBefore && damaged_sequence == 0) {
      offset = line["offset"];
      damaged_sequence = line["sequence"];
    }
    values += line["count"].get<std::uint64_t>();
  }
  EXPECT_EQ(values, kBefore + kAfter);
  ASSERT_NE(offset, 0u);
  ASSERT_GT(last_sequence, damaged_sequence);
  const std::string segment = data_ / "store/log-00000000000000000001";
  {
    std::fstream file(segment, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset + 90));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(offset + 90));
    file.put(static_cast<char>(byte ^ 1));
  }

  const std::string fault = segment + ": offset " + std::to_string(offset) + ": record " +
                            std::to_string(damaged_sequence) + " is damaged";
  const Completed start =
      RunProgram({.program = TIDEMARKD_PROGRAM, .arguments = DaemonFlags(Flags())});
  EXPECT_EQ(start.status, 1);
  EXPECT_NE(start.err.find(fault), std::string::npos) << start.err;
  EXPECT_NE(start.err.find("tidemark store verify " + data_.path()), std::string::npos)
      << start.err;
  EXPECT_NE(start.err.find("tidemark store repair " + data_.path()), std::string::npos)
      << start.err;

  const Completed verify = Store({"verify"});
  EXPECT_EQ(verify.status, 1);
  EXPECT_NE(verify.out.find("damaged: " + fault), std::string::npos) << verify.out;
  const std::string lost = "lost: records " + std::to_string(damaged_sequence) + " to " +
                           std::to_string(last_sequence) + " of the log";
  EXPECT_NE(verify.out.find(lost), std::string::npos) << verify.out;
  EXPECT_EQ(Store({"repair"}).status, 1);
  EXPECT_EQ(Store({"verify"}).out, verify.out) << "a repair without --yes changed something";

  const Completed repair = Store({"repair", "--yes"});
  EXPECT_EQ(repair.status, 0) << repair.err;
  EXPECT_NE(repair.out.find(lost), std::string::npos) << repair.out;
  const Completed repaired = Store({"verify"});
  EXPECT_EQ(repaired.status, 0) << repaired.out;

  for (std::uint64_t start_again = 0; start_again < 2; ++start_again) {
    SCOPED_TRACE(start_again);
    TestDaemon daemon(Flags());
    EXPECT_EQ(daemon.client().DescribeStream("s").count, kBefore + start_again);
    if (start_again == 0) {
      EXPECT_EQ(daemon.client().ExportStream("s"), exported);
    }
    EXPECT_EQ(daemon.client().DescribeStream("other").count, 100u);
    EXPECT_EQ(CodeOf([&] { daemon.client().DescribeStream("late"); }), client::Code::kNotFound);
    const client::RankAnswer rank =
        daemon.client().Ranks("s", {client::Value{kBefore - 1}}).answers.at(0);
    EXPECT_LE(rank.rank_low, kBefore);
    EXPECT_GE(rank.rank_high, kBefore);
    Push(daemon, "s", kBefore + start_again, 1);
    daemon.Kill();
  }
}

}  // namespace
}  // namespace tidemark::test
