#include "server/durability/folder_lock.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/support/temporary_folder.h"

namespace tidemark::server {
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

TEST(FolderLock, NamesAFolderThatIsNotThere) {
  const test::TemporaryFolder folder;
  const absl::Status status = FolderLock::Take(folder.path() + "/absent").status();
  EXPECT_NE(status.message().find("/absent/lock: No such file"), std::string::npos) << status;
}

}  // namespace
}  // namespace tidemark::server
