#include "server/store/folder_lock.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

#include "tests/support/temporary_folder.h"

namespace tidemark::store {
namespace {

TEST(FolderLock, OneAtATime) {
  const test::TemporaryFolder folder;
  std::optional<absl::StatusOr<FolderLock>> first(FolderLock::Take(folder.path()));
  ASSERT_TRUE(first->ok()) << first->status();
  const absl::Status second = FolderLock::Take(folder.path()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(second)) << second;
  first.reset();
  EXPECT_TRUE(FolderLock::Take(folder.path()).ok());
}

TEST(FolderLock, ReadersShareItAndKeepWritersOut) {
  const test::TemporaryFolder folder;
  // Nobody ever wrote there, and a reader writes nothing.
  EXPECT_TRUE(FolderLock::TakeToRead(folder.path()).ok());
  EXPECT_FALSE(std::filesystem::exists(folder / "lock"));
  {
    const auto writer = FolderLock::Take(folder.path());
    ASSERT_TRUE(writer.ok());
    EXPECT_TRUE(absl::IsFailedPrecondition(FolderLock::TakeToRead(folder.path()).status()));
  }
  const auto first = FolderLock::TakeToRead(folder.path());
  const auto second = FolderLock::TakeToRead(folder.path());
  EXPECT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(FolderLock::Take(folder.path()).status()));
}

// Whoever may write to the folder could have root lock, or give away, any file.
TEST(FolderLock, FollowsNoLink) {
  const test::TemporaryFolder folder;
  const std::string other = folder.Write("other", "");
  std::filesystem::create_symlink(other, folder / "lock");
  EXPECT_FALSE(FolderLock::Take(folder.path()).ok());
  EXPECT_FALSE(FolderLock::TakeToRead(folder.path()).ok());
}

TEST(FolderLock, NamesAFolderThatIsNotThere) {
  const test::TemporaryFolder folder;
  const absl::Status status = FolderLock::Take(folder.path() + "/absent").status();
  EXPECT_NE(status.message().find("/absent/lock: No such file"), std::string::npos) << status;
}

}  // namespace
}  // namespace tidemark::store
