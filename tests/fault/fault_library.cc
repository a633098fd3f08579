// Preloaded into tidemarkd (LD_PRELOAD): counts its calls on files below one folder, and kills it,
// makes the call fail, or delays it, at the one that a test chose (fault_points.h); makes the
// folder read-only; and shifts the wall clock.
//
// A sync that fails loses what it was to save, as a disk does that drops its cache: bytes behind
// the length of the last good sync become zeros. So whatever was acknowledged in spite of it is
// missed later.
//
// The wall clock: clock_gettime, gettimeofday and time say the shifted time; deadlines of waits by
// the wall clock are shifted back, so that they last as long as they would on a machine whose clock
// was set. A wait that is under way when the clock jumps goes on as if it had not.
//
// Nothing here takes memory or locks but for the first look-up of each function.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tests/fault/fault_points.h"

namespace {

using tidemark::fault::Control;
using tidemark::fault::Deed;
using tidemark::fault::Order;
using tidemark::fault::Point;

// The function of that name behind this library.
template <class Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
#define FAULT_NEXT(name) static auto* const next = Next<decltype(name)>(#name)

enum class File : std::uint8_t { kNone, kLog, kSnapshot, kFolder };

struct Watched {
  std::atomic<File> file{File::kNone};
  std::atomic<std::int64_t> synced{0};  // length at the last good sync
};
constexpr int kDescriptors = 4096;
std::array<Watched, kDescriptors> watched;

struct Setup {
  Control* control = nullptr;
  std::string_view folder;
};

Setup MakeSetup() {
  Setup setup;
  const char* const file = std::getenv(tidemark::fault::kControlVariable);
  const char* const folder = std::getenv(tidemark::fault::kFolderVariable);
  if (file == nullptr || folder == nullptr) return setup;
  FAULT_NEXT(open);
  const int fd = next(file, O_RDWR | O_CLOEXEC);
  if (fd < 0) _exit(126);
  void* const at = mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) _exit(126);
  setup.control = static_cast<Control*>(at);
  setup.folder = folder;
  return setup;
}

const Setup& TheSetup() {
  static const Setup setup = MakeSetup();
  return setup;
}

bool ReadOnly() {
  const Control* const control = TheSetup().control;
  return control != nullptr && control->read_only != 0;
}
bool ReadOnly(const char* path) {
  return ReadOnly() && std::string_view(path).starts_with(TheSetup().folder);
}

File FileOf(const char* path) {
  const std::string_view name(path);
  const Setup& setup = TheSetup();
  if (setup.control == nullptr || !name.starts_with(setup.folder)) return File::kNone;
  const std::string_view base = name.substr(name.rfind('/') + 1);
  if (base.starts_with("log-")) return File::kLog;
  if (base.starts_with("snapshot-")) return File::kSnapshot;
  return base == "store" || name.size() == setup.folder.size() ? File::kFolder : File::kNone;
}
File FileOf(int fd) {
  return fd >= 0 && fd < kDescriptors ? watched[static_cast<std::size_t>(fd)].file.load()
                                      : File::kNone;
}

void Die() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

// What is to be done with one call.
class Visit {
 public:
  Visit(File file, Point log, Point snapshot) {
    if (file == File::kNone) return;
    Begin(file == File::kSnapshot ? snapshot : log);
  }
  // The errno with which the call fails, or 0.
  int error() const { return error_; }
  bool dies_in_the_middle() const { return deed_ == Deed::kKillMiddle; }
  void After() const {
    if (deed_ == Deed::kKillAfter || deed_ == Deed::kKillMiddle) Die();
  }

 private:
  void Begin(Point point) {
    Control& control = *TheSetup().control;
    const std::uint64_t number = ++control.calls[static_cast<std::size_t>(point)];
    if (ReadOnly()) {
      error_ = EROFS;
      return;
    }
    for (const Order& order : control.orders) {
      if (order.point != static_cast<std::uint32_t>(point)) continue;
      if (number < order.first || number > order.last) continue;
      deed_ = static_cast<Deed>(order.deed.load());
      if (deed_ == Deed::kNone) continue;
      ++control.done;
      if (deed_ == Deed::kKillBefore) Die();
      if (deed_ == Deed::kSlow) usleep(static_cast<useconds_t>(control.slow_us));
      if (deed_ == Deed::kFail) error_ = order.error;
      return;
    }
  }

  Deed deed_ = Deed::kNone;
  int error_ = 0;
};

int Refuse(int error) {
  errno = error;
  return -1;
}

// Bytes of a file behind what was synced become zeros.
void Lose(int fd) {
  struct stat about {};
  const std::int64_t synced = watched[static_cast<std::size_t>(fd)].synced;
  if (fstat(fd, &about) != 0 || about.st_size <= synced) return;
  FAULT_NEXT(ftruncate);
  // Cut and grown again: what is between reads as zeros.
  static_cast<void>(next(fd, synced));
  static_cast<void>(next(fd, about.st_size));
}

void Opened(int fd, const char* path) {
  if (fd < 0 || fd >= kDescriptors) return;
  Watched& about = watched[static_cast<std::size_t>(fd)];
  about.synced = 0;
  about.file = FileOf(path);
}

void AwaitReads(File file) {
  if (file != File::kLog && file != File::kSnapshot) return;
  Control& control = *TheSetup().control;
  if (control.hold_reads == 0) return;
  ++control.held_reads;
  constexpr useconds_t kPollUs = 1'000;
  while (control.hold_reads != 0) usleep(kPollUs);
}

int OpenWith(const auto& open_it, const char* path, int flags) {
  const File file = (flags & O_CREAT) != 0 ? FileOf(path) : File::kNone;
  const Visit visit(file == File::kFolder ? File::kNone : file, Point::kLogCreate,
                    Point::kSnapshotCreate);
  if (const int error = visit.error()) return Refuse(error);
  const bool writes = (flags & O_CREAT) != 0 || (flags & O_ACCMODE) != O_RDONLY;
  if (writes && ReadOnly(path)) return Refuse(EROFS);
  if (!writes) AwaitReads(FileOf(path));
  const int fd = open_it();
  Opened(fd, path);
  visit.After();
  return fd;
}

// Whether `bytes` more behind `offset` are more than the disk may hold; all files but those that
// are open are small.
bool Full(int fd, off_t end) {
  const std::uint64_t limit = TheSetup().control->disk_bytes;
  if (limit == 0) return false;
  std::uint64_t used = 0;
  for (int other = 0; other < kDescriptors; ++other) {
    struct stat about {};
    if (FileOf(other) == File::kNone || FileOf(other) == File::kFolder) continue;
    if (fstat(other, &about) != 0 || about.st_nlink == 0) continue;
    used +=
        other == fd ? static_cast<std::uint64_t>(end) : static_cast<std::uint64_t>(about.st_size);
  }
  if (used <= limit) return false;
  ++TheSetup().control->full;
  return true;
}

// A link to a segment that is about to be removed.
void Keep(const char* path, int (*remove)(const char*)) {
  const char* const archive = std::getenv(tidemark::fault::kArchiveVariable);
  if (archive == nullptr || FileOf(path) != File::kLog) return;
  std::array<char, 4096> kept;
  const int length =
      std::snprintf(kept.data(), kept.size(), "%s%s", archive, std::strrchr(path, '/'));
  if (length < 0 || static_cast<std::size_t>(length) >= kept.size()) return;
  if (std::string_view(kept.data()).ends_with(".tmp")) return;
  static_cast<void>(remove(kept.data()));
  static_cast<void>(link(path, kept.data()));
}

constexpr std::int64_t kNanoseconds = 1'000'000'000;

std::int64_t Shift() {
  const Control* const control = TheSetup().control;
  return control == nullptr ? 0 : control->clock_shift_s.load(std::memory_order_relaxed);
}

// A deadline by the wall clock, on the kernel's; any other is left alone. Monotonic clocks are far
// from 1980.
timespec Unshifted(const timespec& deadline) {
  constexpr time_t kWallClock = 315'532'800;
  timespec out = deadline;
  if (out.tv_sec > kWallClock) out.tv_sec -= Shift();
  return out;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  FAULT_NEXT(open);
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return OpenWith([&] { return next(path, flags, mode); }, path, flags);
}
int open64(const char* path, int flags, ...) {
  FAULT_NEXT(open64);
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return OpenWith([&] { return next(path, flags, mode); }, path, flags);
}
int close(int fd) {
  FAULT_NEXT(close);
  if (fd >= 0 && fd < kDescriptors) watched[static_cast<std::size_t>(fd)].file = File::kNone;
  return next(fd);
}

// Its own open() is not seen here.
int mkstemp(char* path) {
  FAULT_NEXT(mkstemp);
  return ReadOnly(path) ? Refuse(EROFS) : next(path);
}
int mkstemp64(char* path) { return mkstemp(path); }

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  FAULT_NEXT(pwrite);
  const File file = FileOf(fd);
  if (file == File::kNone) return next(fd, bytes, size, offset);
  const Visit visit(file, Point::kLogWrite, Point::kSnapshotWrite);
  constexpr size_t kBlock = 4096;
  const size_t half = size / kBlock / 2 * kBlock;
  if (visit.error() != 0 || visit.dies_in_the_middle()) {
    const bool some = half > 0 && visit.error() != EROFS;
    if (some) static_cast<void>(next(fd, bytes, half, offset));
    visit.After();
    return Refuse(visit.error());
  }
  if (Full(fd, offset + static_cast<off_t>(size))) return Refuse(ENOSPC);
  const ssize_t written = next(fd, bytes, size, offset);
  visit.After();
  return written;
}
ssize_t pwrite64(int fd, const void* bytes, size_t size, off_t offset) {
  return pwrite(fd, bytes, size, offset);
}

int ftruncate(int fd, off_t size) noexcept {
  FAULT_NEXT(ftruncate);
  const Visit visit(FileOf(fd), Point::kLogCut, Point::kSnapshotCut);
  if (const int error = visit.error()) return Refuse(error);
  const int result = next(fd, size);
  visit.After();
  return result;
}
int ftruncate64(int fd, off_t size) noexcept { return ftruncate(fd, size); }

int fdatasync(int fd) {
  FAULT_NEXT(fdatasync);
  const File file = FileOf(fd);
  const Visit visit(file, Point::kLogSync, Point::kSnapshotSync);
  if (const int error = visit.error()) {
    Lose(fd);
    return Refuse(error);
  }
  const int result = next(fd);
  struct stat about {};
  if (result == 0 && file != File::kNone && fstat(fd, &about) == 0) {
    watched[static_cast<std::size_t>(fd)].synced = about.st_size;
  }
  visit.After();
  return result;
}

int fsync(int fd) {
  FAULT_NEXT(fsync);
  const Visit visit(FileOf(fd) == File::kFolder ? File::kFolder : File::kNone, Point::kFolderSync,
                    Point::kFolderSync);
  if (const int error = visit.error()) return Refuse(error);
  const int result = next(fd);
  visit.After();
  return result;
}

int rename(const char* from, const char* to) noexcept {
  FAULT_NEXT(rename);
  const Visit visit(FileOf(to), Point::kLogRename, Point::kSnapshotRename);
  if (const int error = visit.error()) return Refuse(error);
  if (ReadOnly(to)) return Refuse(EROFS);
  const int result = next(from, to);
  visit.After();
  return result;
}

int unlink(const char* path) noexcept {
  FAULT_NEXT(unlink);
  Keep(path, next);
  const Visit visit(FileOf(path), Point::kLogRemove, Point::kSnapshotRemove);
  if (const int error = visit.error()) return Refuse(error);
  if (ReadOnly(path)) return Refuse(EROFS);
  const int result = next(path);
  visit.After();
  return result;
}

int truncate(const char* path, off_t size) noexcept {
  FAULT_NEXT(truncate);
  const Visit visit(FileOf(path), Point::kLogShorten, Point::kLogShorten);
  if (const int error = visit.error()) return Refuse(error);
  const int result = next(path, size);
  visit.After();
  return result;
}
int truncate64(const char* path, off_t size) noexcept { return truncate(path, size); }

int mkdir(const char* path, mode_t mode) noexcept {
  FAULT_NEXT(mkdir);
  const Visit visit(FileOf(path), Point::kFolderMake, Point::kFolderMake);
  if (const int error = visit.error()) return Refuse(error);
  const int result = next(path, mode);
  visit.After();
  return result;
}

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  FAULT_NEXT(clock_gettime);
  const int result = next(clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    now->tv_sec += Shift();
  }
  return result;
}

int gettimeofday(timeval* __restrict now, void* __restrict zone) noexcept {
  timespec time{};
  static_cast<void>(zone);
  if (clock_gettime(CLOCK_REALTIME, &time) != 0) return -1;
  now->tv_sec = time.tv_sec;
  now->tv_usec = time.tv_nsec / (kNanoseconds / 1'000'000);
  return 0;
}

time_t time(time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t* __restrict condition, pthread_mutex_t* __restrict mutex,
                           const timespec* __restrict deadline) {
  FAULT_NEXT(pthread_cond_timedwait);
  const timespec real = Unshifted(*deadline);
  return next(condition, mutex, &real);
}
int pthread_cond_clockwait(pthread_cond_t* __restrict condition, pthread_mutex_t* __restrict mutex,
                           clockid_t clock, const timespec* __restrict deadline) {
  FAULT_NEXT(pthread_cond_clockwait);
  const timespec real = clock == CLOCK_REALTIME ? Unshifted(*deadline) : *deadline;
  return next(condition, mutex, clock, &real);
}
int sem_timedwait(sem_t* __restrict semaphore, const timespec* __restrict deadline) {
  FAULT_NEXT(sem_timedwait);
  const timespec real = Unshifted(*deadline);
  return next(semaphore, &real);
}

// Of abseil's waits.
long syscall(long number, ...) noexcept {
  FAULT_NEXT(syscall);
  va_list more;
  va_start(more, number);
  std::array<long, 6> arguments{};
  for (long& argument : arguments) argument = va_arg(more, long);
  va_end(more);
  timespec real{};
  if (number == SYS_futex && (arguments[1] & FUTEX_CLOCK_REALTIME) != 0 && arguments[3] != 0) {
    const timespec* deadline = nullptr;
    std::memcpy(&deadline, &arguments[3], sizeof deadline);
    real = Unshifted(*deadline);
    arguments[3] = reinterpret_cast<long>(&real);
  }
  return next(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
              arguments[5]);
}

}  // extern "C"
