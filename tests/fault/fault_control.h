// The test's side of the preloaded library: a control file, and what to ask for.
#ifndef TIDEMARK_TESTS_FAULT_FAULT_CONTROL_H_
#define TIDEMARK_TESTS_FAULT_FAULT_CONTROL_H_

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "tests/fault/fault_points.h"
#include "tests/support/temporary_folder.h"

namespace tidemark::fault {

inline constexpr std::uint64_t kForEver = std::numeric_limits<std::uint64_t>::max();

/// One at a time for each daemon. Thread: any. Errors: throws std::runtime_error if the file
/// cannot be made.
class FaultControl {
 public:
  /// Of calls on files below `folder`. Segments of the log are linked to `archive` before they are
  /// removed.
  FaultControl(std::string folder, std::string archive);
  ~FaultControl();
  FaultControl(const FaultControl&) = delete;
  FaultControl& operator=(const FaultControl&) = delete;

  /// What a daemon is started with.
  std::map<std::string, std::string> Environment() const;
  /// nullptr, or why the library cannot be used in this build.
  static const char* Unusable();

  /// Calls at a point since the last Reset.
  std::uint64_t calls(Point point) const {
    return control_->calls[static_cast<std::size_t>(point)];
  }
  /// Deeds since the last Reset.
  std::uint64_t done() const { return control_->done; }
  /// Counts begin anew; nothing is armed.
  void Reset();
  /// From the k-th call after the last Reset on, `times` calls. `place`: 0 or 1, of two faults.
  void Arm(Point point, Deed deed, std::uint64_t k, std::uint64_t times = 1, int error = 0,
           std::size_t place = 0);
  /// From the next call on, for ever.
  void ArmNow(Point point, Deed deed, int error = 0, std::size_t place = 0);
  void Disarm();
  void SlowBy(std::chrono::microseconds time) {
    control_->slow_us = static_cast<std::uint64_t>(time.count());
  }
  /// 0: any number.
  void LimitDisk(std::uint64_t bytes) { control_->disk_bytes = bytes; }
  /// The whole data folder, until it is made writable again.
  void MakeReadOnly(bool read_only) { control_->read_only = read_only ? 1 : 0; }
  /// A disk that gives nothing back until it is let go.
  void HoldReads(bool hold) { control_->hold_reads = hold ? 1 : 0; }
  std::uint64_t held_reads() const { return control_->held_reads; }
  void ShiftClock(std::chrono::seconds by) { control_->clock_shift_s = by.count(); }

 private:
  const std::string folder_;
  const std::string archive_;
  test::TemporaryFolder own_;
  Control* control_ = nullptr;
};

}  // namespace tidemark::fault

#endif  // TIDEMARK_TESTS_FAULT_FAULT_CONTROL_H_
