#include "cli/away/remote_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace monarch {

namespace {

namespace fs = std::filesystem;

class RemoteFilesTest : public ::testing::Test {
 protected:
  static fs::path make_folder() {
    std::string made = "/tmp/monarch-remote-files-XXXXXX";
    fs::path folder = ::mkdtemp(made.data());
    fs::create_directory(folder / "artifacts");
    return folder;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string read(const fs::path& name) const {
    std::ifstream file(folder_ / name);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }

  std::shared_ptr<const ReportFile> report() const { return ReportFile::open(folder_ / "report.xml").value(); }

  fs::path folder_ = make_folder();
  RemoteFiles files_{report(), ArtifactFolder::open(folder_ / "artifacts").value()};
};

}  // namespace

TEST_F(RemoteFilesTest, LieWhereTheyWereAskedFor) {
  EXPECT_TRUE(files_.begin({.name = "junit.xml", .size = 6}).ok());
  EXPECT_TRUE(files_.append("<a>").ok());
  EXPECT_FALSE(fs::exists(folder_ / "report.xml")) << "half a report is none";
  EXPECT_FALSE(files_.append("</a>").ok()) << "a byte too many";
  EXPECT_TRUE(files_.append("</>").ok());
  EXPECT_TRUE(files_.begin({.name = "artifacts/logs/m/0.1.out", .size = 2}).ok());
  EXPECT_TRUE(files_.append("ab").ok());
  EXPECT_TRUE(files_.begin({.name = "artifacts/spec.yaml", .size = 0}).ok());
  EXPECT_TRUE(files_.finish().ok());
  EXPECT_EQ(read("report.xml"), "<a></>");
  EXPECT_EQ(read("artifacts/logs/m/0.1.out"), "ab");
  EXPECT_EQ(read("artifacts/spec.yaml"), "");
}

TEST_F(RemoteFilesTest, ThatAreEndlessAreRefusedByNameBeforeTheyAreWritten) {
  const Status endless = files_.begin({.name = "artifacts/log", .size = 1ULL << 63U});
  ASSERT_FALSE(endless.ok());
  EXPECT_TRUE(
      endless.error().message.starts_with("artifacts/log: has 9223372036854775808 bytes, and there is room for "))
      << endless.error().message;
}

TEST_F(RemoteFilesTest, ThatAreOtherThanTheyWereSaidToBeAreRefusedByName) {
  EXPECT_TRUE(files_.begin({.name = "artifacts/a", .size = 3}).ok());
  EXPECT_EQ(files_.append("abcd").error().message, "artifacts/a: is larger than it was said to be");
  EXPECT_EQ(files_.finish().error().message, "artifacts/a: lacks 3 bytes of what it was said to have");
  EXPECT_FALSE(files_.append("x").ok());
}

TEST_F(RemoteFilesTest, AreWrittenThroughNoLinkAndOverNothing) {
  fs::create_directory(folder_ / "outside");
  fs::create_directory_symlink(folder_ / "outside", folder_ / "artifacts" / "logs");
  EXPECT_FALSE(files_.begin({.name = "artifacts/logs/x", .size = 1}).ok());
  fs::create_symlink(folder_ / "outside" / "made", folder_ / "artifacts" / "spec.yaml");
  EXPECT_FALSE(files_.begin({.name = "artifacts/spec.yaml", .size = 1}).ok());
  EXPECT_TRUE(files_.begin({.name = "artifacts/twice", .size = 0}).ok());
  EXPECT_FALSE(files_.begin({.name = "artifacts/twice", .size = 0}).ok());
  EXPECT_TRUE(fs::is_empty(folder_ / "outside"));
}

TEST_F(RemoteFilesTest, ThatNobodyAskedForAreRefused) {
  RemoteFiles none(nullptr, nullptr);
  EXPECT_EQ(none.begin({.name = "junit.xml", .size = 0}).error().message, "junit.xml: a file that nobody asked for");
  EXPECT_FALSE(none.begin({.name = "artifacts/a", .size = 0}).ok());
}

TEST_F(RemoteFilesTest, AReportThatBrokeOffLeavesTheOldOne) {
  std::ofstream(folder_ / "report.xml") << "old";
  {
    RemoteFiles broken(report(), nullptr);
    EXPECT_TRUE(broken.begin({.name = "junit.xml", .size = 3}).ok());
    EXPECT_TRUE(broken.append("ne").ok());
  }
  EXPECT_EQ(read("report.xml"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
}

}  // namespace monarch
