// The machine's files: what is written is read, errors name operation, file and errno, short and
// interrupted writes are gone on with.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "server/store/file_system.h"
#include "server/store/folder_lock.h"
#include "server/store/write_all.h"
#include "tests/support/temporary_folder.h"

namespace tidemark::store {
namespace {

TEST(WriteAllTest, ShortAndInterruptedWrites) {
  std::string out;
  int calls = 0;
  const auto write = [&](std::string_view bytes, std::uint64_t offset) -> long {
    EXPECT_EQ(offset, 10 + out.size());
    if (++calls % 2 == 0) {
      errno = EINTR;
      return -1;
    }
    out.append(bytes.substr(0, 3));
    return static_cast<long>(std::min<std::size_t>(3, bytes.size()));
  };
  EXPECT_EQ(WriteAll("0123456789", 10, write), 0);
  EXPECT_EQ(out, "0123456789");
}

TEST(WriteAllTest, Errors) {
  const auto full = [](std::string_view, std::uint64_t) -> long {
    errno = ENOSPC;
    return -1;
  };
  EXPECT_EQ(WriteAll("x", 0, full), ENOSPC);
  EXPECT_EQ(WriteAll("x", 0, [](std::string_view, std::uint64_t) { return 0L; }), EIO);
}

TEST(PosixFileSystemTest, WhatIsWrittenIsRead) {
  FileSystem& files = PosixFileSystem();
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/a";
  {
    const auto file = files.Create(path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE((*file)->Write(0, "hello").ok());
    EXPECT_TRUE((*file)->Sync().ok());
    EXPECT_EQ(*files.Read(path, 0, 100), "hello");
    EXPECT_EQ((*file)->Write(3, "p").code(), absl::StatusCode::kInternal);
    EXPECT_TRUE((*file)->Write(5, " me").ok());
    EXPECT_TRUE((*file)->Sync().ok());
  }
  EXPECT_EQ(*files.Size(path), 8u);
  EXPECT_EQ(*files.Read(path, 0, 100), "hello me");
  EXPECT_EQ(*files.Read(path, 2, 2), "ll");
  EXPECT_EQ(*files.Read(path, 9, 2), "");
  EXPECT_TRUE(files.Truncate(path, 4).ok());
  EXPECT_TRUE(files.Rename(path, folder.path() + "/b").ok());
  EXPECT_TRUE(files.MakeFolder(folder.path() + "/c").ok());
  EXPECT_TRUE(files.MakeFolder(folder.path() + "/c").ok());
  EXPECT_TRUE(files.SyncFolder(folder.path()).ok());
  EXPECT_EQ(*files.List(folder.path()), std::vector<std::string>{"b"});
  EXPECT_EQ(*files.Read(folder.path() + "/b", 0, 100), "hell");
  const auto mode = std::filesystem::status(folder.path() + "/b").permissions();
  EXPECT_EQ(mode, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_TRUE(files.Remove(folder.path() + "/b").ok());
  EXPECT_TRUE(files.List(folder.path())->empty());
}

// Pieces of all sizes around the blocks in which a file is written, synced now and then.
TEST(PosixFileSystemTest, PiecesOfAllSizes) {
  FileSystem& files = PosixFileSystem();
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/a";
  const auto file = files.Create(path);
  ASSERT_TRUE(file.ok()) << file.status();
  std::mt19937_64 random(20261122);
  std::string all;
  for (int i = 0; i < 60; ++i) {
    const std::size_t sizes[] = {1, 4095, 4096, 4097, (std::size_t{1} << 20) - 1, 3'000'000};
    std::string piece(random() % (sizes[random() % std::size(sizes)] + 1), '\0');
    for (char& byte : piece) byte = static_cast<char>(random());
    ASSERT_TRUE((*file)->Write(all.size(), piece).ok());
    all += piece;
    if (random() % 2 == 0) continue;
    ASSERT_TRUE((*file)->Sync().ok());
    const absl::StatusOr<std::string> read = files.Read(path, 0, all.size() + 1);
    ASSERT_TRUE(read.ok());
    ASSERT_TRUE(*read == all) << "after " << all.size() << " bytes";
  }
}

void ExpectError(const absl::Status& status, absl::StatusCode code, const std::string& message) {
  EXPECT_EQ(status.code(), code);
  EXPECT_EQ(status.message(), message);
}

TEST(PosixFileSystemTest, ErrorsNameOperationFileAndErrno) {
  FileSystem& files = PosixFileSystem();
  const test::TemporaryFolder folder;
  const std::string none = folder.path() + "/none";
  const std::string there = folder.path() + "/there";
  std::ofstream(there) << "x";
  const std::string missing = none + ": No such file or directory (errno 2)";
  ExpectError(files.Read(none, 0, 1).status(), absl::StatusCode::kNotFound, "open " + missing);
  ExpectError(files.Size(none).status(), absl::StatusCode::kNotFound, "stat " + missing);
  ExpectError(files.List(none).status(), absl::StatusCode::kNotFound, "list " + missing);
  ExpectError(files.Remove(none), absl::StatusCode::kNotFound, "remove " + missing);
  ExpectError(files.Truncate(none, 1), absl::StatusCode::kNotFound, "truncate " + missing);
  ExpectError(files.SyncFolder(none), absl::StatusCode::kNotFound, "open " + missing);
  ExpectError(files.Rename(none, there), absl::StatusCode::kNotFound,
              "rename to " + there + " of " + missing);
  ExpectError(files.Create(there).status(), absl::StatusCode::kAlreadyExists,
              "create " + there + ": File exists (errno 17)");
  ExpectError(files.MakeFolder(there), absl::StatusCode::kAlreadyExists,
              "mkdir " + there + ": File exists (errno 17)");
  ExpectError(FileError("write", "f", ENOSPC), absl::StatusCode::kResourceExhausted,
              "write f: No space left on device (errno 28)");
  ExpectError(FileError("fdatasync", "f", EIO), absl::StatusCode::kInternal,
              "fdatasync f: Input/output error (errno 5)");
}

// What root's repair writes must be read by a daemon that is not root.
TEST(PosixFileSystemTest, RootGivesNewFilesToTheFoldersOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const test::TemporaryFolder folder;
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(chown(folder.path().c_str(), kNobody, kNobody), 0);
  ASSERT_TRUE(PosixFileSystem().Create(folder / "new").ok());
  ASSERT_TRUE(FolderLock::Take(folder.path()).ok());
  for (const char* name : {"new", "lock"}) {
    struct stat about {};
    ASSERT_EQ(stat((folder / name).c_str(), &about), 0);
    EXPECT_EQ(about.st_uid, kNobody) << name;
    EXPECT_EQ(about.st_mode & 0777, 0600u) << name;
  }
}

}  // namespace
}  // namespace tidemark::store
