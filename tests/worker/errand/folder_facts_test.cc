#include "worker/errand/folder_facts.h"

#include <sys/mount.h>
#include <unistd.h>

#include "tests/worker/keeper/made_up_host.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

namespace fs = std::filesystem;
constexpr Duration kPatience = Duration::seconds(10);

class Folders : public MadeUpHost {
 protected:
  FolderFacts look(const std::string& path) const {
    return look_at_folder({.name = "storage", .path = root_ + path, .written = true}, kPatience);
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(root_), fs::directory_iterator()));
  }
};

TEST_F(Folders, ThatAreWellAreToldWithTheirRoomAndLeftAsTheyWere) {
  const FolderFacts facts = look("");
  EXPECT_TRUE(facts.there);
  EXPECT_EQ(facts.error, "");
  EXPECT_GT(facts.total_bytes, 0U);
  EXPECT_EQ(files(), 0U);
}

TEST_F(Folders, ThatAreMissingOrNoFoldersAreToldApart) {
  EXPECT_FALSE(look("/nothing").there);
  file("/file", "x");
  const FolderFacts facts = look("/file");
  EXPECT_TRUE(facts.there);
  EXPECT_NE(facts.error.find("Not a directory"), std::string::npos) << facts.error;
}

TEST_F(Folders, ThatCannotBeWrittenToSayWhy) {
  if (::geteuid() == 0) {
    EXPECT_NE(look_at_folder({.name = "storage", .path = "/proc", .written = true}, kPatience).error, "");
    return;
  }
  fs::permissions(root_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_NE(look("").error.find("Permission denied"), std::string::npos);
  fs::permissions(root_, fs::perms::owner_all);
}

TEST_F(Folders, ThatAreNotMadeYetAreLookedAtByTheNearestParent) {
  const FolderFacts facts = look_at_place({.name = "state", .path = root_ + "/a/b/c", .written = true}, kPatience);
  EXPECT_TRUE(facts.there);
  EXPECT_EQ(facts.error, "");
  EXPECT_EQ(facts.path, root_ + "/a/b/c");
  EXPECT_EQ(files(), 0U);
}

TEST_F(Folders, ShowATokenToWhoeverHasTheSameOne) {
  const TokenOrder order{.folder = root_, .name = text(kTokenPrefix, "1-a"), .content = "the word"};
  EXPECT_EQ(write_token(order, kPatience).error, "");
  EXPECT_NE(write_token(order, kPatience).error, "") << "nobody's file is written over";
  EXPECT_EQ(read_token(order, kPatience).content, "the word");
  remove_token(order, kPatience);
  EXPECT_NE(read_token(order, kPatience).error, "");
  EXPECT_EQ(files(), 0U);
}

TEST_F(Folders, LoseTheTokensOfKilledDoctorsAndNothingElse) {
  const auto now = wall_now().nanoseconds_since_epoch / 1'000'000'000;
  const std::string young = text("/", kTokenPrefix, now - 60, "-a");
  const std::string old = text("/", kTokenPrefix, now - 7200, "-b");
  for (const std::string& name : {young, old, std::string("/.other"), std::string("/.monarch-doctor-notes")})
    file(name, "");
  fs::create_directory(root_ + old + "-folder");
  remove_old_tokens(root_, kPatience);
  EXPECT_FALSE(fs::exists(root_ + old));
  for (const std::string& name :
       {young, std::string("/.other"), std::string("/.monarch-doctor-notes"), old + "-folder"}) {
    EXPECT_TRUE(fs::exists(root_ + name)) << name;
  }
}

}  // namespace
}  // namespace monarch
