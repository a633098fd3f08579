#include "tests/fault/small_disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

namespace tidemark::fault {

SmallDisk::SmallDisk(std::uint64_t bytes) {
  const std::string at = folder_ / "disk";
  std::filesystem::create_directory(at);
  const std::string options = fmt::format("size={}", bytes);
  const auto failed = [&](std::string_view what) {
    error_ = fmt::format("{} (a tmpfs of {} bytes; it takes root): {}", what, bytes,
                         std::strerror(errno));
  };
  if (unshare(CLONE_NEWNS) != 0) {
    failed("unshare");
  } else if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    failed("mount --make-rprivate /");  // so that what is mounted here is seen nowhere else
  } else if (mount("tmpfs", at.c_str(), "tmpfs", 0, options.c_str()) != 0) {
    failed("mount");
  }
}

SmallDisk::~SmallDisk() {
  if (error_.empty()) umount2((folder_ / "disk").c_str(), MNT_DETACH);
}

void SmallDisk::Fill() const {
  const int fd = open(Ballast().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::vector<char> block(std::size_t{64} << 10);
  std::size_t size = block.size();
  while (size > 0) {
    const ssize_t written = write(fd, block.data(), size);
    if (written <= 0) size /= 2;
  }
  close(fd);
}

void SmallDisk::Free() const { std::filesystem::remove(Ballast()); }

std::string SmallDisk::Remount(bool read_only) const {
  const unsigned long flags = MS_REMOUNT | (read_only ? MS_RDONLY : 0);
  if (mount(nullptr, (folder_ / "disk").c_str(), nullptr, flags, nullptr) == 0) return "";
  return std::strerror(errno);
}

}  // namespace tidemark::fault
