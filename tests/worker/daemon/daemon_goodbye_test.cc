#include <gtest/gtest.h>

#include <filesystem>

#include "tests/worker/daemon/daemon_world.h"

namespace monarch::daemon {
namespace {

class DaemonGoodbye : public testing::Test {
 protected:
  void start() {
    world_.start(world_.first_stash());
    (void)world_.admit();
    ASSERT_TRUE(world_.until([&] { return world_.last_beat().has_value(); }));
  }
  void shut_down() {
    world_.supervisor_says(Shutdown{"done"});
    ASSERT_TRUE(world_.until([&] { return world_.keeper_heard<KeeperShutdown>().has_value(); }));
  }
  std::optional<Goodbye> goodbye() const { return world_.supervisor_heard<Goodbye>(); }

  DaemonWorld world_;
};

TEST_F(DaemonGoodbye, IsSaidWhenTheKeeperSaysThatNothingIsLeft) {
  start();
  shut_down();
  // It still serves: what it has to say waits for its keeper's word.
  world_.keeper_says(KeeperPing{7});
  ASSERT_TRUE(world_.until([&] { return world_.keeper_heard<KeeperPong>().has_value(); }));
  EXPECT_FALSE(goodbye().has_value());
  world_.keeper_says(KeeperEnded{});
  ASSERT_TRUE(world_.until([&] { return goodbye().has_value(); }));
  EXPECT_TRUE(goodbye()->orderly);
  EXPECT_EQ(goodbye()->incarnation, 99U);
  EXPECT_FALSE(std::filesystem::exists(world_.directory + "/state")) << "it is the last word";
  EXPECT_EQ(world_.wait_for_end(), 0);
}

TEST_F(DaemonGoodbye, IsNotSaidWhereSomethingCouldNotBeKilled) {
  start();
  shut_down();
  world_.keeper_says(KeeperEnded{.left = 1});
  EXPECT_EQ(world_.wait_for_end(), 0);
  EXPECT_FALSE(goodbye().has_value());
}

TEST_F(DaemonGoodbye, IsNotSaidWithoutTheKeepersWord) {
  start();
  shut_down();
  EXPECT_EQ(world_.wait_for_end(), 0) << "its patience has an end";
  EXPECT_FALSE(goodbye().has_value());
}

TEST_F(DaemonGoodbye, SaysWhenTheKeeperWasKilled) {
  start();
  world_.keeper_dies();
  ASSERT_TRUE(world_.until([&] { return goodbye().has_value(); }));
  EXPECT_FALSE(goodbye()->orderly);
  const auto gone = world_.supervisor_heard<KeeperGone>();
  ASSERT_TRUE(gone.has_value()) << "before it begins to kill what is left";
  EXPECT_EQ(gone->incarnation, 99U);
  EXPECT_EQ(world_.wait_for_end(), 70);
}

}  // namespace
}  // namespace monarch::daemon
