// The points of the daemon's way to the disk at which a fault can be put, and the memory through
// which a test tells the preloaded library (fault_library.cc) about it.
//
//   test ──arms──► Control, one mapped file ◄──reads, counts── library in tidemarkd
//
// Every call that changes something in the data folder is counted at its point before it is made.
// Thread: any; each field is one atomic. What a test changes takes effect with the next call.
#ifndef TIDEMARK_TESTS_FAULT_FAULT_POINTS_H_
#define TIDEMARK_TESTS_FAULT_FAULT_POINTS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tidemark::fault {

/// What is done, and to what. A segment's and a snapshot's file are created and written under
/// another name ("….tmp").
enum class Point : std::uint32_t {
  kLogCreate,
  kLogWrite,
  kLogCut,     ///< ftruncate to the length that counts
  kLogSync,    ///< fdatasync: what comes back OK is committed, and acknowledged
  kLogRename,  ///< a segment gets its name
  kLogRemove,
  kSnapshotCreate,
  kSnapshotWrite,
  kSnapshotCut,
  kSnapshotSync,
  kSnapshotRename,  ///< commits the snapshot
  kSnapshotRemove,
  kFolderMake,
  kFolderSync,  ///< fsync of a folder: names are durable
  kLogShorten,  ///< truncate of a segment that was given up
  kCount,
};
inline constexpr std::size_t kPoints = static_cast<std::size_t>(Point::kCount);
inline constexpr std::array<std::string_view, kPoints> kPointNames{
    "log create",      "log write",       "log cut",        "log sync",     "log rename",
    "log remove",      "snapshot create", "snapshot write", "snapshot cut", "snapshot sync",
    "snapshot rename", "snapshot remove", "folder make",    "folder sync",  "log shorten"};

enum class Deed : std::uint32_t {
  kNone,
  kKillBefore,  ///< SIGKILL instead of the call
  kKillMiddle,  ///< of a write: when half of its blocks are written; else as kKillBefore
  kKillAfter,
  kFail,  ///< with `error`, and of writes half may be done; what a sync was to save is lost
  kSlow,  ///< by `slow_us`, then made
};

/// One fault.
struct Order {
  std::atomic<std::uint32_t> point;
  std::atomic<std::uint32_t> deed;
  std::atomic<std::uint64_t> first, last;  ///< at the calls with these numbers, from 1 on
  std::atomic<std::int32_t> error;
};

/// Zeros are a library that only counts.
struct Control {
  std::array<std::atomic<std::uint64_t>, kPoints> calls;
  std::array<Order, 2> orders;  ///< the first one that fits a call is followed
  std::atomic<std::uint64_t> slow_us;
  std::atomic<std::uint64_t> done;  ///< deeds
  std::atomic<std::uint64_t> full;  ///< writes that failed because of disk_bytes
  /// Added to CLOCK_REALTIME.
  std::atomic<std::int64_t> clock_shift_s;
  /// Not 0: all files of the store together may have so many bytes; beyond, writes fail with
  /// ENOSPC.
  std::atomic<std::uint64_t> disk_bytes;
  /// Not 0: a file system that the kernel made read-only. Whatever would change something below the
  /// folder fails with EROFS, and nothing of it is done; unsynced bytes are lost.
  std::atomic<std::uint64_t> read_only;
  /// Not 0: who opens a segment or a snapshot to read it waits until it is 0; and how many have.
  std::atomic<std::uint64_t> hold_reads;
  std::atomic<std::uint64_t> held_reads;
};

/// The variables of the environment from which the library knows its file and the folder; without
/// them it does nothing; and a folder to which each segment of the log is linked before it is
/// removed.
inline constexpr char kControlVariable[] = "FAULT_CONTROL";
inline constexpr char kFolderVariable[] = "FAULT_FOLDER";
inline constexpr char kArchiveVariable[] = "FAULT_ARCHIVE";

}  // namespace tidemark::fault

#endif  // TIDEMARK_TESTS_FAULT_FAULT_POINTS_H_
