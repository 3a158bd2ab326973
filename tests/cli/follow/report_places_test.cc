#include "cli/follow/report_places.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace monarch {
namespace {

namespace fs = std::filesystem;

class ReportPlaces : public ::testing::Test {
 protected:
  static fs::path make_folder() {
    std::string made = "/tmp/monarch-report-places-XXXXXX";
    return ::mkdtemp(made.data());
  }
  void SetUp() override { fs::create_directory(folder_ / "theirs"); }
  void TearDown() override { fs::remove_all(folder_); }

  // Somebody else moves our folder away, and puts a link in its place.
  void plant(const std::string& name) const {
    fs::rename(folder_ / name, folder_ / "moved");
    fs::create_directory_symlink(folder_ / "theirs", folder_ / name);
  }
  static std::string read(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string refusal(const std::string& name, fs::perms mode) const {
    fs::create_directory(folder_ / name);
    fs::permissions(folder_ / name, mode);
    const auto opened = ArtifactFolder::open(folder_ / name);
    return opened.ok() ? "" : opened.error().message;
  }

  const fs::path folder_ = make_folder();
};

TEST_F(ReportPlaces, ArtifactsGoIntoTheFolderThatWasOpenedWhateverIsInItsPlace) {
  const auto artifacts = ArtifactFolder::open(folder_ / "out" / "deep").value();
  plant("out");
  EXPECT_TRUE(artifacts->make_file("logs/m/0.1.out").ok());
  EXPECT_TRUE(fs::exists(folder_ / "moved" / "deep" / "logs" / "m" / "0.1.out"));
  EXPECT_TRUE(fs::is_empty(folder_ / "theirs"));
}

TEST_F(ReportPlaces, AReportReplacesALinkAndGoesIntoTheFolderThatWasOpened) {
  fs::create_directory(folder_ / "out");
  const auto report = ReportFile::open(folder_ / "out" / "junit.xml").value();
  std::ofstream(folder_ / "theirs" / "target") << "theirs";
  fs::create_symlink(folder_ / "theirs" / "target", folder_ / "out" / "junit.xml");
  plant("out");
  EXPECT_TRUE(write_report(report, "<a/>").ok());
  EXPECT_EQ(read(folder_ / "moved" / "junit.xml"), "<a/>");
  EXPECT_EQ(read(folder_ / "theirs" / "target"), "theirs");
  EXPECT_FALSE(fs::exists(folder_ / "theirs" / "junit.xml"));
}

TEST_F(ReportPlaces, AFolderThatOthersMayWriteToIsRefusedByName) {
  const auto all = fs::perms::owner_all;
  EXPECT_EQ(refusal("own", all | fs::perms::group_read), "");
  EXPECT_EQ(refusal("group", all | fs::perms::group_all), "") << "the user's own group";
  EXPECT_EQ(refusal("open", all | fs::perms::others_write),
            (folder_ / "open").string() + ": everybody may write to it");
}

}  // namespace
}  // namespace monarch
