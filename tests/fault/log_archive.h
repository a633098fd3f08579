// Every segment that a log ever had, by hard links or copies: what a replay from the first batch on
// needs, after snapshots have let the daemon remove the older ones.
#ifndef TIDEMARK_TESTS_FAULT_LOG_ARCHIVE_H_
#define TIDEMARK_TESTS_FAULT_LOG_ARCHIVE_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <utility>

namespace tidemark::fault {

/// Links what appears in `store` into `archive`, often enough that nothing is removed before: a
/// segment lives for two snapshots at least, and these are a second apart. On a machine that lets
/// it wait for longer it would miss one; the preloaded library misses none.
class LogArchive {
 public:
  /// `archive` exists; on the same file system unless `copies`.
  LogArchive(std::string store, std::string archive, bool copies);
  ~LogArchive();
  LogArchive(const LogArchive&) = delete;
  LogArchive& operator=(const LogArchive&) = delete;

  /// Ends the watching; links what is there, and takes out what counts for nothing: segments above
  /// the highest that is left, which a daemon began and abandoned. The store is not written.
  void Complete();
  const std::string& folder() const { return archive_; }

 private:
  void Link();

  const std::string store_;
  const std::string archive_;
  const bool copies_;
  // Of copies: size and time of the last write; of the thread until Complete has ended it.
  std::map<std::string, std::pair<std::uintmax_t, std::filesystem::file_time_type>> seen_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace tidemark::fault

#endif  // TIDEMARK_TESTS_FAULT_LOG_ARCHIVE_H_
