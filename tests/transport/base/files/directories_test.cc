#include "transport/base/files/directories.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

namespace monarch {
namespace {

namespace fs = std::filesystem;

class Directories : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/directories-XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    root_ = folder;
    fs::create_directories(root_ + "/outside");
  }
  void TearDown() override { fs::remove_all(root_); }

  static mode_t mode(const std::string& path) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777U : 0;
  }

  std::string root_;
};

TEST_F(Directories, AreTheirOwnersAlone) {
  ASSERT_TRUE(make_own_directories(root_ + "/a/b/c", 2).ok());
  for (const char* level : {"/a", "/a/b", "/a/b/c"}) EXPECT_EQ(mode(root_ + level), 0700U) << level;
  EXPECT_TRUE(make_own_directories(root_ + "/a/b/c", 2).ok()) << "once more changes nothing";
}

TEST_F(Directories, AreMadeWhereALinkOfOnesOwnLeads) {
  fs::create_directory_symlink(root_ + "/outside", root_ + "/a");
  EXPECT_TRUE(make_own_directories(root_ + "/a/b", 2).ok());
  EXPECT_EQ(mode(root_ + "/outside/b"), 0700U);
  ASSERT_EQ(::chmod((root_ + "/outside").c_str(), 0770), 0);
  EXPECT_EQ(make_own_directories(root_ + "/a/c", 2).error().code, ErrorCode::kInvalid) << "others may write there";
  EXPECT_FALSE(fs::exists(root_ + "/outside/c"));
  fs::create_directory_symlink(root_ + "/gone", root_ + "/d");
  EXPECT_EQ(make_own_directories(root_ + "/d", 1).error().code, ErrorCode::kNotFound);
}

TEST_F(Directories, AreNotMadeInAFolderThatIsALinkOfSomebodyElses) {
  fs::create_directory_symlink(root_ + "/outside", root_ + "/a");
  if (::lchown((root_ + "/a").c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root can plant another user's link";
  const Status made = make_own_directories(root_ + "/a/b/c", 3);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(made.error().message.starts_with(root_ + "/a is not a folder that is ours")) << made.error().message;
  EXPECT_TRUE(fs::is_empty(root_ + "/outside"));
  EXPECT_TRUE(make_own_directories(root_ + "/a/b/c", 2).ok()) << "a folder above ours may be one: a home, say";
}

TEST_F(Directories, AreNotMadeInAFolderThatOthersMayWriteTo) {
  fs::create_directory(root_ + "/a");
  ASSERT_EQ(::chmod((root_ + "/a").c_str(), 0770), 0);
  EXPECT_EQ(make_own_directories(root_ + "/a/b", 2).error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(fs::is_empty(root_ + "/a"));
}

TEST_F(Directories, AreNotMadeInAFolderOfSomebodyElses) {
  fs::create_directory(root_ + "/a");
  if (::chown((root_ + "/a").c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root can plant another user's folder";
  EXPECT_EQ(make_own_directories(root_ + "/a/b", 2).error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(fs::is_empty(root_ + "/a"));
}

TEST_F(Directories, SayWhyTheyCouldNotBeMade) {
  errno = 0;
  const Status made = make_own_directories("/proc/none/a", 1);
  const int error = errno;
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(error, ENOENT) << made.error().message;
  EXPECT_EQ(make_own_directories("a/b", 2).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(make_directories("").error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace monarch
