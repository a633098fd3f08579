// What a daemon makes of a store that was repaired: what the repair kept, and all that comes then.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "server/durability/snapshots.h"
#include "server/store/store_check.h"
#include "server/window/concat.h"
#include "tests/server/durability/logged_pipeline.h"
#include "tests/server/durability/some_batches.h"

namespace tidemark::server {
namespace {

constexpr char kOnlySegment[] = "/log/log-00000000000000000001";

// Where the record begins. REQUIRES: one segment, which has it.
std::size_t OffsetOf(const std::string& segment, std::uint64_t sequence) {
  const std::uint64_t log_id = store::DecodeSegmentHeader(segment)->log_id;
  std::size_t at = store::kFileHeaderBytes;
  for (;;) {
    const auto header = store::DecodeRecordHeader(std::string_view(segment).substr(at), log_id);
    if (header->sequence == sequence && header->kind != store::RecordKind::kMark) return at;
    at += store::RecordBytes(header->body_bytes);
  }
}

// The snapshot's image of a stream is from after its position, as it is under load, and the log is
// cut between the two: numbers that the image covers must not be given to what comes then.
TEST(Repair, WhatComesBehindItIsKept) {
  testing::FakeDisk disk;
  const std::vector<double> values = {1, 2, 3};
  std::uint64_t position = 0;
  {
    LoggedPipeline live(disk);
    const auto append = [&](const char* name) {
      ASSERT_TRUE(live.held().Append<double>(name, ValueType::kFloat64, values).status.ok());
    };
    append("early");
    append("quiet");
    Snapshots snapshots(disk, kLogFolder, live.pipeline(), &live.log(), std::nullopt, 0);
    disk.OnCreate([&](const std::string& path) {
      if (path.find("snapshot") == std::string::npos) return;
      for (int i = 0; i < 5; ++i) append("early");
      append("late");
      append("early");
    });
    const absl::StatusOr<SnapshotReport> taken = snapshots.Take();
    disk.OnCreate({});
    ASSERT_TRUE(taken.ok()) << taken.status();
    position = taken->log_position;
    ASSERT_TRUE(live.log().Stop().ok());
    live.pipeline().UseLog(nullptr);
  }
  std::string& segment = disk.bytes(kOnlySegment);
  segment[OffsetOf(segment, position + 3) + 3] ^= 4;
  {
    TestPipeline none(SmallWindows());
    const auto snapshot = LoadSnapshot(disk, kLogFolder, none.pipeline).value();
    EXPECT_TRUE(absl::IsDataLoss(ReplayLog(disk, kLogFolder, none.pipeline, snapshot).status()));
  }
  const absl::StatusOr<store::RepairReport> repaired = store::RepairStore(disk, kLogFolder);
  ASSERT_TRUE(repaired.ok()) << repaired.status();
  EXPECT_FALSE(repaired->lost.empty());

  std::string before;
  {
    LoggedPipeline live(disk);
    EXPECT_EQ(live.pipeline().streams().Find("early").value()->Stats().count, 7 * values.size());
    for (const char* name : {"early", "quiet", "late", "new", "late", "early"}) {
      ASSERT_TRUE(live.held().Append<double>(name, ValueType::kFloat64, values).status.ok());
    }
    ASSERT_TRUE(live.log().Stop().ok());
    live.pipeline().UseLog(nullptr);
    before = Seen(live.pipeline());
  }
  for (int start = 0; start < 2; ++start) {
    LoggedPipeline again(disk);
    EXPECT_EQ(Seen(again.pipeline()), before);
  }
}

// The log's last file is gone: nothing in the log gives that away, the snapshot does.
TEST(Repair, ALogThatEndsBeforeTheSnapshotIsNoticed) {
  testing::FakeDisk disk;
  const std::vector<double> values(500, 1.5);
  {
    LoggedPipeline live(disk);
    const auto append = [&] {
      ASSERT_TRUE(live.held().Append<double>("a", ValueType::kFloat64, values).status.ok());
    };
    append();
    Snapshots snapshots(disk, kLogFolder, live.pipeline(), &live.log(), std::nullopt, 0);
    disk.OnCreate([&](const std::string& path) {
      if (path.find("snapshot") == std::string::npos) return;
      for (int i = 0; i < 50; ++i) append();  // several segments
    });
    ASSERT_TRUE(snapshots.Take().ok());
    disk.OnCreate({});
    ASSERT_TRUE(live.log().Stop().ok());
    live.pipeline().UseLog(nullptr);
  }
  std::string last;
  const std::vector<std::string> names = disk.List(kLogFolder).value();
  for (const std::string& name : names) {
    if (store::SegmentNumber(name)) last = std::max(last, name);
  }
  ASSERT_GT(last, "log-00000000000000000001");
  disk.Drop(Concat(kLogFolder, "/", last));
  const auto report = store::VerifyStore(disk, kLogFolder);
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->faults.size(), 1u);
  EXPECT_NE(report->faults[0].find("but the snapshot holds what came up to"), std::string::npos)
      << report->faults[0];
}

}  // namespace
}  // namespace tidemark::server
