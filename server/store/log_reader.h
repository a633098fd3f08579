// Reads a log: which segments belong to it, which of their records, and what is wrong with them.
//
// What is promised, for any bytes in any files of the folder
//   1. The records given are a prefix of those that were appended, behind those that the snapshot
//      covers, each once and in order, but for a gap that a repair left. (And for a checksum of 64
//      bits that fits by chance.)
//   2. The prefix ends early without an error only in the last segment, at a record that no later
//      one says was synced: a write that a crash cut off. What was left out is told in
//      LogEnd::notes.
//   3. Everything else is DATA_LOSS, and the message names the file, the offset and the records
//      that are lost. So is a segment that is missing, or shorter than its successor says, and a
//      log that ends before what the snapshot holds of it.
// What is not: that a loss is noticed which no bytes that are left give away. Those are the last
// segment as a whole, and records at the end of the last segment behind the last one that says they
// were synced: those of the last sync, if the daemon was killed before it had time to add a mark.
//
// How segments belong together: each names its predecessor and how many bytes of that count. The
// last one is the one with the highest number; those that the chain from there does not meet were
// abandoned by the writer (after a failed sync, say) and hold nothing that is missing.
//
// Thread: any. Costs the memory of one segment. The folder must not be written meanwhile.
#ifndef TIDEMARK_SERVER_STORE_LOG_READER_H_
#define TIDEMARK_SERVER_STORE_LOG_READER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/file_system.h"
#include "server/store/log_format.h"

namespace tidemark::store {

/// A place behind which the log goes on.
struct LogPosition {
  std::uint64_t segment = 0;   ///< its number; 0: before the first
  std::uint64_t bytes = 0;     ///< of it
  std::uint64_t sequence = 0;  ///< of the last record before the place
  friend bool operator==(const LogPosition&, const LogPosition&) = default;
};

struct SegmentPlace {
  std::uint64_t number = 0;
  std::uint64_t first_sequence = 0;
};

/// What a LogWriter needs to know in order to go on.
struct LogEnd {
  std::uint64_t log_id = 0;  ///< 0: there is no log yet
  /// Behind the last record that is known to be synced.
  LogPosition durable;
  /// Of the last record that could be read.
  std::uint64_t last_sequence = 0;
  /// Whole records behind `durable`: they may be in the kernel's memory alone.
  std::vector<std::string> tail;
  /// Ascending; the last is durable.segment.
  std::vector<SegmentPlace> segments;
  /// Segments that count for nothing once `tail` is written again.
  std::vector<std::uint64_t> abandoned;
  std::uint64_t highest_number = 0;  ///< of any segment's file
  /// What was ignored, and why: a line each.
  std::vector<std::string> notes;
};

/// Told each record. Not OK: reading ends with that status. The views live until it returns.
using LogVisitor = std::function<absl::Status(std::uint64_t sequence, const LogEntry& entry)>;

/// What a snapshot holds of a log.
struct SnapshotCover {
  constexpr SnapshotCover(std::uint64_t all_in,
                          std::uint64_t reaches_in = 0)  // NOLINT: its records
      : all(all_in), reaches(reaches_in) {}
  /// Records up to this one are not visited, need not be whole, and segments that hold no others
  /// need not exist.
  std::uint64_t all;
  /// Some effect of records up to this one: a log that ends before it is damaged.
  std::uint64_t reaches;
};

/// Errors: DATA_LOSS (see above; also if the log ends before what the snapshot holds of it),
/// FAILED_PRECONDITION for a log of another version, the visitor's, the file system's. After an
/// error what was visited must not be used.
absl::StatusOr<LogEnd> ReadLog(FileSystem& files, const std::string& folder, SnapshotCover cover,
                               const LogVisitor& visit);

/// One segment's file, as far as it was looked at.
struct SegmentCheck {
  std::uint64_t number = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t whole_bytes = 0;  ///< of the header and the records in front that are whole
  std::uint64_t first_sequence = 0;
  std::uint64_t last_sequence = 0;  ///< of those records; first_sequence - 1: there is none
  absl::Status status;              ///< what is wrong behind them, with the file's name
};

/// The same for those who look at a damaged log, and repair it.
struct LogReading {
  absl::Status status;
  /// Of the prefix before the damage. `end.durable` may lie in the middle of a segment that has a
  /// successor.
  LogEnd end;
  /// Segments that cannot be used because of the damage: those behind it.
  std::vector<std::uint64_t> unusable;
  /// Whether `end` was reached by reading. Otherwise the damage is in how segments belong together,
  /// and without those in `unusable` there may be a longer prefix.
  bool reached = false;
  /// The segments that were read, ascending.
  std::vector<SegmentCheck> read;
};
LogReading ReadLogPrefix(FileSystem& files, const std::string& folder, SnapshotCover cover,
                         const LogVisitor& visit);

/// One segment. Pure: what the fuzzer calls.
struct SegmentReading {
  /// DATA_LOSS without the file's name, or the visitor's status.
  absl::Status status;
  std::uint64_t last_sequence = 0;     ///< first_sequence - 1 if there is no record
  std::uint64_t durable_sequence = 0;  ///< highest that a record says is synced; 0: none does
  std::uint64_t bytes = 0;             ///< of the header and whole records in front
  /// Of the first record behind the last damage that did not matter; else of the first record.
  std::uint64_t whole_from = 0;
};
/// `bytes`: the file, `header` as decoded from it. `limit`: how many bytes of it count, all of
/// which must be whole records; nullopt for the last segment, which may end in the middle of a
/// record. Marks are not visited. `covered`: damage up to this record does not matter where the one
/// behind it is found.
SegmentReading ReadSegment(std::string_view bytes, const SegmentHeader& header,
                           std::optional<std::uint64_t> limit, const LogVisitor& visit,
                           std::uint64_t covered = 0);

/// Every record header from `from` on, a multiple of 8, whatever lies between; `body` is nullopt
/// where it is not whole.
using RecordVisitor = std::function<void(std::uint64_t offset, const RecordHeader& header,
                                         std::optional<std::string_view> body)>;
void ScanRecords(std::string_view bytes, std::uint64_t from, std::uint64_t log_id,
                 const RecordVisitor& visit);

}  // namespace tidemark::store

#endif  // TIDEMARK_SERVER_STORE_LOG_READER_H_
