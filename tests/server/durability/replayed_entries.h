// Logs of any records, whether a pipeline would write them or not, replayed.
#ifndef TIDEMARK_TESTS_SERVER_DURABILITY_REPLAYED_ENTRIES_H_
#define TIDEMARK_TESTS_SERVER_DURABILITY_REPLAYED_ENTRIES_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/store/log_writer.h"
#include "tests/server/durability/logged_pipeline.h"
#include "tests/server/durability/some_batches.h"

namespace tidemark::server {

struct ReplayedEntries {
  absl::Status status;
  std::string seen;  ///< of the streams that were made
  friend bool operator==(const ReplayedEntries&, const ReplayedEntries&) = default;
};

inline ReplayedEntries ReplayEntries(const std::vector<store::LogEntry>& entries) {
  testing::FakeDisk disk;
  store::LogOptions options;
  options.folder = kLogFolder;
  store::LogWriter writer(disk, options, {}, 5, {});
  for (const store::LogEntry& entry : entries) EXPECT_TRUE(writer.Append(entry, {}).ok());
  EXPECT_TRUE(writer.Close().ok());
  TestPipeline fresh(SmallWindows());
  absl::Status status = ReplayLog(disk, kLogFolder, fresh.pipeline).status();
  return {status, Seen(fresh.pipeline)};
}

}  // namespace tidemark::server

#endif  // TIDEMARK_TESTS_SERVER_DURABILITY_REPLAYED_ENTRIES_H_
