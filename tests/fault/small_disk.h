// A small disk of its own for a data folder, which can be filled and freed.
#ifndef TIDEMARK_TESTS_FAULT_SMALL_DISK_H_
#define TIDEMARK_TESTS_FAULT_SMALL_DISK_H_

#include <cstdint>
#include <string>

#include "tests/support/temporary_folder.h"

namespace tidemark::fault {

/// A tmpfs, in a mount namespace that this thread, and what it starts from then on, has to itself:
/// it is gone with the process. Needs root. Thread: one.
class SmallDisk {
 public:
  explicit SmallDisk(std::uint64_t bytes);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  /// "", or why there is none.
  const std::string& error() const { return error_; }
  /// Where it is mounted; in it, the folder for the data.
  std::string data_folder() const { return folder_ / "disk/data"; }
  /// Until not one more byte fits.
  void Fill() const;
  void Free() const;
  /// Mounted anew, read-only or not. "", or why not: no file may be open for writing.
  std::string Remount(bool read_only) const;

 private:
  std::string Ballast() const { return folder_ / "disk/ballast"; }

  test::TemporaryFolder folder_;
  std::string error_;
};

}  // namespace tidemark::fault

#endif  // TIDEMARK_TESTS_FAULT_SMALL_DISK_H_
