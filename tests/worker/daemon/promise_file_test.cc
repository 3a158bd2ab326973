#include "worker/daemon/promise_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace monarch::daemon {
namespace {

struct PromiseFile : testing::Test {
  PromiseFile() {
    std::string name = std::filesystem::temp_directory_path() / "promise-XXXXXX";
    root = ::mkdtemp(name.data());
    directory = root + "/hosts/job/v1";
  }
  ~PromiseFile() override { std::filesystem::remove_all(root); }
  std::string root;
  std::string directory;
};

TEST_F(PromiseFile, KeepsTheTermThatWasPromisedLast) {
  EXPECT_EQ(read_promise(directory).value(), Term());
  ASSERT_TRUE(write_promise(directory, Term(3)).ok());
  EXPECT_EQ(read_promise(directory).value(), Term(3));
  ASSERT_TRUE(write_promise(directory, Term(8)).ok());
  EXPECT_EQ(read_promise(directory).value(), Term(8));
}

TEST_F(PromiseFile, PromisesNothingWhereItOnlyTriesWhetherItCould) {
  ASSERT_TRUE(prepare_promise(directory, Term(3)).ok());
  EXPECT_EQ(read_promise(directory).value(), Term());
  std::ofstream(root + "/file") << "x";
  EXPECT_FALSE(prepare_promise(root + "/file/v1", Term(3)).ok());
}

// The bytes of the first one and its name become durable side by side: a loss of power may leave the name alone.
TEST_F(PromiseFile, HasNothingOfAFirstPromiseThatALossOfPowerCut) {
  ASSERT_TRUE(prepare_promise(directory, Term(3)).ok());
  std::ofstream(directory + "/promise").close();
  EXPECT_EQ(read_promise(directory).value(), Term());
  std::ofstream(directory + "/promise") << "three\n";
  EXPECT_EQ(read_promise(directory).error().code, ErrorCode::kInvalid);
}

TEST_F(PromiseFile, LeavesNothingBehind) {
  ASSERT_TRUE(write_promise(directory, Term(3)).ok());
  remove_promise(directory);
  EXPECT_FALSE(std::filesystem::exists(root + "/hosts/job"));
}

}  // namespace
}  // namespace monarch::daemon
