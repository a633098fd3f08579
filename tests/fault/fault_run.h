// One data folder's life under faults: a daemon, its writers, every segment of its log, and at the
// end the verdict.
#ifndef TIDEMARK_TESTS_FAULT_FAULT_RUN_H_
#define TIDEMARK_TESTS_FAULT_FAULT_RUN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/fault/fault_control.h"
#include "tests/fault/fault_daemon.h"
#include "tests/fault/log_archive.h"
#include "tests/fault/verdict.h"
#include "tests/fault/writers.h"
#include "tests/support/temporary_folder.h"

namespace tidemark::fault {

/// What runs counted for.
struct Judged {
  std::uint64_t batches = 0;
  std::uint64_t values = 0;
  std::uint64_t retries = 0;
};

struct RunOptions {
  std::vector<std::string> flags = {};
  /// With the preloaded library, whose control is then there.
  bool preload = false;
  /// Where the data folder is, such as a small disk; it exists. "": a temporary folder.
  std::string data_folder = {};
  /// The daemon at once, and its streams created.
  bool start = true;
};

/// Thread: one. Failures of the running test.
class FaultRun {
 public:
  /// `seed`: of what is sent.
  explicit FaultRun(std::uint64_t seed, const RunOptions& options = {});

  FaultDaemon& daemon() { return daemon_; }
  FaultControl& control() { return *control_; }
  Writers& writers() { return *writers_; }

  /// Until EndAndJudge. `options`: how many and how fast; the rest is filled in.
  void StartWriters(WritersOptions options = {});
  /// Waits until every writer has got more acknowledged than at the call.
  void AwaitProgress();
  /// Until all that was begun is acknowledged; then the daemon's answers, its exported bytes before
  /// and after a kill, the log record by record, and the state that is left against that of an
  /// uninterrupted run.
  void EndAndJudge(Judged& all);

 private:
  test::TemporaryFolder folder_;
  const std::uint64_t seed_;
  const std::string data_;
  std::unique_ptr<FaultControl> control_;
  FaultDaemon daemon_;
  std::optional<LogArchive> archive_;
  std::unique_ptr<Writers> writers_;
};

}  // namespace tidemark::fault

#endif  // TIDEMARK_TESTS_FAULT_FAULT_RUN_H_
