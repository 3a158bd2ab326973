#include "transport/wire/runtime_directory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "transport/base/text.h"

namespace monarch {

namespace {

class RuntimeDirectory : public testing::Test {
 protected:
  RuntimeDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "monarch-runtime-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~RuntimeDirectory() override { std::filesystem::remove_all(root_); }

  std::string of(const std::string& variable) const {
    return runtime_directory({.xdg_runtime_dir = variable, .uid = uid_, .logins = root_ + "/logins"});
  }
  void log_in() const { std::filesystem::create_directories(text(root_, "/logins/", uid_)); }

  const std::uint32_t uid_ = ::geteuid();
  std::string root_;
};

TEST_F(RuntimeDirectory, IsWhereTheVariableSays) {
  log_in();
  EXPECT_EQ(of(root_), root_ + "/monarch");
}

TEST_F(RuntimeDirectory, IsNotTheLoginsWhichIsRemovedAtTheLogOut) {
  log_in();
  EXPECT_EQ(of(text(root_, "/logins/", uid_)), text("/tmp/monarch-", uid_));
  EXPECT_EQ(of(""), text("/tmp/monarch-", uid_));
}

TEST_F(RuntimeDirectory, IsBelowTmpWithoutTheVariable) {
  for (const char* useless : {"", "relative", "/nonexistent/monarch-runtime", "/dev/null"}) {
    EXPECT_EQ(of(useless), text("/tmp/monarch-", uid_)) << useless;
  }
}

// Whoever is faster in a folder of everybody's keeps nobody from starting jobs.
TEST_F(RuntimeDirectory, IsInASecondPlaceWhereSomebodyElseHasTheFirst) {
  const std::string first = root_ + "/first";
  const std::string second = root_ + "/second";
  std::filesystem::create_directories(text(first, "/monarch-", uid_ + 1));  // of the user who runs this test
  std::filesystem::create_directories(second);
  const RuntimeUser user{.xdg_runtime_dir = "", .uid = uid_ + 1, .logins = root_, .lasting = {first, second}};
  EXPECT_EQ(runtime_directory(user), text(second, "/monarch-", uid_ + 1));
  EXPECT_EQ(squatted_directory(user), text(first, "/monarch-", uid_ + 1));
  EXPECT_EQ(lasting_directories(user).size(), 1U);

  std::filesystem::create_directories(text(second, "/monarch-", uid_ + 1));
  EXPECT_EQ(runtime_directory(user), text(first, "/monarch-", uid_ + 1)) << "told by whoever makes it";
  std::filesystem::remove_all(second);
  EXPECT_EQ(lasting_directories(user).front(), text(first, "/monarch-", uid_ + 1));

  const RuntimeUser own{.xdg_runtime_dir = "", .uid = uid_, .logins = root_, .lasting = {first, root_}};
  EXPECT_EQ(lasting_directories(own),
            (std::vector<std::string>{text(first, "/monarch-", uid_), text(root_, "/monarch-", uid_)}));
  EXPECT_EQ(squatted_directory(own), std::nullopt);
}

TEST_F(RuntimeDirectory, IsInNoFolderOfAnotherUsers) {
  EXPECT_EQ(runtime_directory({.xdg_runtime_dir = root_, .uid = uid_ + 1, .logins = root_}),
            text("/tmp/monarch-", uid_ + 1));
}

}  // namespace

}  // namespace monarch
