#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/file_system.h"
#include "server/store/write_all.h"

namespace tidemark::store {
namespace {

/// Owns a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
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

class PosixFile final : public WritableFile {
 public:
  PosixFile(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Write(std::uint64_t offset, std::string_view bytes) override {
    const int error = WriteAll(bytes, offset, [&](std::string_view rest, std::uint64_t at) {
      return pwrite(file_.get(), rest.data(), rest.size(), static_cast<off_t>(at));
    });
    return error == 0 ? absl::OkStatus() : FileError("write", path_, error);
  }

  // EINTR is an error here: whether the pages of an interrupted fdatasync were written is unknown.
  absl::Status Sync() override {
    return fdatasync(file_.get()) == 0 ? absl::OkStatus() : FileError("fdatasync", path_, errno);
  }

 private:
  const std::string path_;
  const Descriptor file_;
};

class Posix final : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    Descriptor file = Open(path, O_WRONLY | O_CREAT | O_EXCL);
    if (file.get() < 0) return FileError("create", path, errno);
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
