#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/file_system.h"
#include "server/store/folder_owner.h"
#include "server/store/write_all.h"

namespace tidemark::store {
namespace {

/// Owns a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// open, again while a signal interrupts it.
Descriptor Open(const std::string& path, int flags) {
  int fd = -1;
  do {
    fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
  } while (fd < 0 && errno == EINTR);
  return Descriptor(fd);
}

// What O_DIRECT wants of addresses, offsets and lengths, on every disk that we know of.
constexpr std::size_t kBlockBytes = 4096;
// Written at once: larger writes are no faster (measured: 1 MiB reaches the disk's rate).
constexpr std::size_t kStagedBytes = std::size_t{1} << 20;
static_assert(kStagedBytes % kBlockBytes == 0);

// A file that is appended to past the page cache, which costs the processor as much as the disk
// takes. Bytes are gathered in blocks; Sync writes the last block with zeros behind it and cuts the
// file to its length, and the next write begins with that block again, as the page cache would.
// Where the file system has no O_DIRECT (tmpfs), the same goes through the page cache.
class PosixFile final : public WritableFile {
 public:
  PosixFile(std::string path, Descriptor file)
      : path_(std::move(path)),
        file_(std::move(file)),
        staged_(static_cast<char*>(::operator new (kStagedBytes, std::align_val_t{kBlockBytes}))) {}

  absl::Status Write(std::uint64_t offset, std::string_view bytes) override {
    if (offset != start_ + fill_) {
      return FileError("write (not at its end) to", path_, EINVAL);
    }
    while (!bytes.empty()) {
      const std::size_t taken = std::min(bytes.size(), kStagedBytes - fill_);
      std::copy_n(bytes.data(), taken, staged_.get() + fill_);
      fill_ += taken;
      bytes.remove_prefix(taken);
      if (fill_ < kStagedBytes) break;
      if (absl::Status status = WriteStaged(fill_); !status.ok()) return status;
      start_ += fill_;
      fill_ = 0;
    }
    return absl::OkStatus();
  }

  // EINTR is an error here: whether the pages of an interrupted fdatasync were written is unknown.
  absl::Status Sync() override {
    const std::size_t blocks = (fill_ + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    std::fill(staged_.get() + fill_, staged_.get() + blocks, '\0');
    if (absl::Status status = WriteStaged(blocks); !status.ok()) return status;
    if (blocks != fill_ && ftruncate(file_.get(), static_cast<off_t>(start_ + fill_)) != 0) {
      return FileError("ftruncate", path_, errno);
    }
    if (fdatasync(file_.get()) != 0) return FileError("fdatasync", path_, errno);
    const std::size_t whole = fill_ / kBlockBytes * kBlockBytes;
    std::copy(staged_.get() + whole, staged_.get() + fill_, staged_.get());
    start_ += whole;
    fill_ -= whole;
    return absl::OkStatus();
  }

 private:
  struct Free {
    void operator()(char* block) const { ::operator delete (block, std::align_val_t{kBlockBytes}); }
  };

  absl::Status WriteStaged(std::size_t bytes) {
    const auto write = [&](std::string_view rest, std::uint64_t at) {
      return pwrite(file_.get(), rest.data(), rest.size(), static_cast<off_t>(at));
    };
    const int error = WriteAll({staged_.get(), bytes}, start_, write);
    return error == 0 ? absl::OkStatus() : FileError("write", path_, error);
  }

  const std::string path_;
  const Descriptor file_;
  const std::unique_ptr<char, Free> staged_;
  std::uint64_t start_ = 0;  // of the staged bytes in the file; a multiple of kBlockBytes
  std::size_t fill_ = 0;
};

class Posix final : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    Descriptor file = Open(path, O_WRONLY | O_CREAT | O_EXCL | O_DIRECT);
    if (file.get() < 0 && errno == EINVAL) {
      // Some create the file before they refuse.
      unlink(path.c_str());
      file = Open(path, O_WRONLY | O_CREAT | O_EXCL);
    }
    if (file.get() < 0) return FileError("create", path, errno);
    GiveToFolderOwner(file.get(), std::filesystem::path(path).parent_path().string());
    return std::make_unique<PosixFile>(path, std::move(file));
  }

  absl::StatusOr<std::string> Read(const std::string& path, std::uint64_t offset,
                                   std::size_t bytes) override {
    const Descriptor file = Open(path, O_RDONLY);
    struct stat about {};
    if (file.get() < 0 || fstat(file.get(), &about) != 0) return FileError("open", path, errno);
    const auto size = static_cast<std::uint64_t>(about.st_size);
    std::string out(std::min<std::uint64_t>(bytes, size - std::min(size, offset)), '\0');
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t got = pread(file.get(), out.data() + done, out.size() - done,
                                static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return FileError("read", path, errno);
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    out.resize(done);
    return out;
  }

  absl::StatusOr<std::uint64_t> Size(const std::string& path) override {
    struct stat about {};
    if (stat(path.c_str(), &about) != 0) return FileError("stat", path, errno);
    return static_cast<std::uint64_t>(about.st_size);
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    std::vector<std::string> names;
    std::error_code error;
    std::filesystem::directory_iterator at(folder, error);
    for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
      if (!at->is_directory(error)) names.push_back(at->path().filename().string());
      if (error) break;
    }
    if (error) return FileError("list", folder, error.value());
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::Status MakeFolder(const std::string& folder) override {
    if (mkdir(folder.c_str(), 0700) == 0) return absl::OkStatus();
    const int error = errno;
    struct stat about {};
    if (error == EEXIST && stat(folder.c_str(), &about) == 0 && S_ISDIR(about.st_mode)) {
      return absl::OkStatus();
    }
    return FileError("mkdir", folder, error);
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
    return FileError(absl::StrCat("rename to ", to, " of"), from, errno);
  }

  absl::Status Remove(const std::string& path) override {
    return unlink(path.c_str()) == 0 ? absl::OkStatus() : FileError("remove", path, errno);
  }

  absl::Status Truncate(const std::string& path, std::uint64_t bytes) override {
    while (truncate(path.c_str(), static_cast<off_t>(bytes)) != 0) {
      if (errno != EINTR) return FileError("truncate", path, errno);
    }
    return absl::OkStatus();
  }

  absl::Status SyncFolder(const std::string& folder) override {
    const Descriptor file = Open(folder, O_RDONLY | O_DIRECTORY);
    if (file.get() < 0) return FileError("open", folder, errno);
    return fsync(file.get()) == 0 ? absl::OkStatus() : FileError("fsync", folder, errno);
  }
};

}  // namespace

absl::Status FileError(std::string_view operation, const std::string& path, int error) {
  const std::string message =
      absl::StrCat(std::string(operation), " ", path, ": ", std::generic_category().message(error),
                   " (errno ", error, ")");
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(message);
    case EEXIST:
      return absl::AlreadyExistsError(message);
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::InternalError(message);
  }
}

FileSystem& PosixFileSystem() {
  static Posix instance;
  return instance;
}

}  // namespace tidemark::store
