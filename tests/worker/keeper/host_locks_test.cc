#include "worker/keeper/host_locks.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "tests/worker/keeper/made_up_host.h"

namespace monarch {
namespace {

class HostLocksOf : public MadeUpHost {
 protected:
  // Another process that holds the thing for a job until it is told to go; it does not let go by itself.
  pid_t other_process(const std::string& job, const std::string& thing) {
    std::array<int, 2> told{};
    EXPECT_EQ(::pipe2(told.data(), O_CLOEXEC), 0);
    const UniqueFd read_end(told[0]);
    UniqueFd write_end(told[1]);
    const pid_t pid = ::fork();
    if (pid == 0) {
      (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
      HostLocks locks({directory()}, job);
      const auto held = locks.hold(thing, LockSharing::kNone);
      const char word = held && !*held ? 'y' : 'n';
      (void)!::write(write_end.get(), &word, 1);
      for (;;) ::pause();
    }
    write_end.reset();
    char word = 0;
    EXPECT_EQ(::read(read_end.get(), &word, 1), 1);
    EXPECT_EQ(word, 'y');
    return pid;
  }
  static void kill(pid_t pid) {
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
  }
  std::string directory() const { return root_ + "/run"; }
  std::size_t files() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory())) ++count;
    return count;
  }
};

TEST_F(HostLocksOf, AreHeldByOneJobAtATime) {
  HostLocks locks({directory()}, "mine-1a2b");
  const pid_t other = other_process("other-3c4d", "gpu-GPU-a");
  const auto held = locks.hold("gpu-GPU-a", LockSharing::kJob);
  ASSERT_TRUE(held.ok());
  ASSERT_TRUE(held->has_value());
  EXPECT_EQ((*held)->job, "other-3c4d");
  EXPECT_EQ((*held)->pid, other);
  EXPECT_FALSE(*locks.hold("gpu-GPU-b", LockSharing::kJob)) << "another GPU is free";
  EXPECT_FALSE(*locks.hold("gpu-GPU", LockSharing::kJob)) << "and one whose name begins alike";
  kill(other);
}

TEST_F(HostLocksOf, AKilledHolderAreTakenOverAndItsFileGoes) {
  HostLocks locks({directory()}, "mine-1a2b");
  kill(other_process("other-3c4d", "gpu-GPU-a"));
  EXPECT_EQ(files(), 1U);
  EXPECT_FALSE(*locks.hold("gpu-GPU-a", LockSharing::kJob));
  EXPECT_EQ(files(), 1U) << "its own";
}

TEST_F(HostLocksOf, KeepersThatHaveTheirsElsewhereAreSeenThere) {
  const pid_t other = other_process("other-3c4d", "gpu-GPU-a");
  HostLocks locks({root_ + "/lasting", directory()}, "mine-1a2b");
  const auto held = locks.hold("gpu-GPU-a", LockSharing::kJob);
  ASSERT_TRUE(held.ok() && held->has_value());
  EXPECT_EQ((*held)->job, "other-3c4d");
  EXPECT_EQ(files(), 1U) << "its own files are in the first";
  kill(other);
  EXPECT_FALSE(*locks.hold("gpu-GPU-a", LockSharing::kJob));
  HostLocks third({directory(), root_ + "/nonesuch", root_ + "/lasting"}, "third-5e6f");
  const auto seen = third.hold("gpu-GPU-a", LockSharing::kJob);
  ASSERT_TRUE(seen.ok() && seen->has_value());
  EXPECT_EQ((*seen)->job, "mine-1a2b");
}

TEST_F(HostLocksOf, OneJobAreSharedByItsKeepersOrNot) {
  HostLocks locks({directory()}, "mine-1a2b");
  const pid_t other = other_process("mine-1a2b", "gpu-GPU-a");
  EXPECT_FALSE(*locks.hold("gpu-GPU-a", LockSharing::kJob));
  const pid_t third = other_process("mine-1a2b", "port-8080");
  const auto held = locks.hold("port-8080", LockSharing::kNone);
  ASSERT_TRUE(held->has_value());
  EXPECT_EQ((*held)->pid, third);
  kill(other);
  kill(third);
}

TEST_F(HostLocksOf, OneKeeperAreHeldUntilTheyWereReleasedAsOften) {
  HostLocks locks({directory()}, "mine-1a2b");
  EXPECT_FALSE(*locks.hold("gpu-GPU-a", LockSharing::kJob));
  EXPECT_FALSE(*locks.hold("gpu-GPU-a", LockSharing::kJob));
  locks.release("gpu-GPU-a");
  EXPECT_EQ(files(), 1U);
  locks.release("gpu-GPU-a");
  locks.release("gpu-GPU-a");
  EXPECT_EQ(files(), 0U);
}

TEST_F(HostLocksOf, ARefusedOneLeavesNothingBehind) {
  const pid_t other = other_process("other-3c4d", "gpu-GPU-a");
  HostLocks locks({directory()}, "mine-1a2b");
  ASSERT_TRUE(locks.hold("gpu-GPU-a", LockSharing::kJob)->has_value());
  EXPECT_EQ(files(), 1U);
  kill(other);
}

TEST_F(HostLocksOf, EndWithTheirOwnerAndArePrivate) {
  {
    HostLocks locks({directory()}, "mine-1a2b");
    EXPECT_FALSE(*locks.hold("gpu-GPU-a", LockSharing::kJob));
    struct stat status {};
    ASSERT_EQ(::stat(directory().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700U);
    const std::string path = directory() + "/gpu-GPU-a.mine-1a2b." + std::to_string(::getpid()) + ".lock";
    ASSERT_EQ(::stat(path.c_str(), &status), 0) << path;
    EXPECT_EQ(status.st_mode & 0777, 0600U);
  }
  EXPECT_EQ(files(), 0U);
}

TEST_F(HostLocksOf, AreNotPutWhereOthersMayWrite) {
  std::filesystem::create_directory(directory());
  ASSERT_EQ(::chmod(directory().c_str(), 0777), 0);
  HostLocks locks({directory()}, "mine-1a2b");
  const auto held = locks.hold("gpu-GPU-a", LockSharing::kJob);
  ASSERT_FALSE(held.ok());
  EXPECT_EQ(held.error().message, directory() + " is not a directory that only this user may write to");
}

TEST_F(HostLocksOf, AreNotPutBehindALink) {
  std::filesystem::create_directory(root_ + "/elsewhere");
  std::filesystem::create_directory_symlink(root_ + "/elsewhere", directory());
  HostLocks locks({directory()}, "mine-1a2b");
  EXPECT_FALSE(locks.hold("gpu-GPU-a", LockSharing::kJob).ok());
}

}  // namespace
}  // namespace monarch
