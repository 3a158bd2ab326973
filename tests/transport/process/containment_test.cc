#include "transport/process/containment.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "tests/transport/process/process_fixture.h"
#include "transport/base/sanitizers.h"

namespace monarch {
namespace {

// With cgroups (skipped where none can be written) and without.
class ContainmentOf : public ProcessTest, public testing::WithParamInterface<CgroupUse> {
 protected:
  void SetUp() override {
    ProcessTest::SetUp();
    options_.job = text("test", ::getpid(), "x", ++made_);
    options_.host = "v1";
    options_.host_lines = {"MONARCH_JOB_UUID=" + options_.job, "MONARCH_HOST=v1"};
    options_.rank_variable = "MONARCH_RANK_KEY";
    containment_ = std::make_unique<Containment>(options_, GetParam());
    if (GetParam() == CgroupUse::kIfWritable && !containment_->uses_cgroup()) {
      GTEST_SKIP() << "no writable cgroup v2: " << containment_->without_cgroup_because();
    }
  }
  void TearDown() override {
    containment_.reset();
    ProcessTest::TearDown();
  }

  Child* start_in(const std::string& key, const std::string& line) {
    const std::unique_ptr<CgroupFolder> group = containment_->prepare(key).value();
    SpawnOptions options = shell(line);
    for (const std::string& more : options_.host_lines) options.environment.push_back(more);
    options.environment.push_back("MONARCH_RANK_KEY=" + key);
    options.group = group.get();
    Child* child = start(options);
    containment_->set_leader(key, child->pid());
    return child;
  }
  // A grandchild in a session of its own, whose parents are gone: it writes its pid and then waits.
  std::string escape(const std::string& file) const {
    return "(setsid sh -c 'echo $$ > " + path(file) + ".new; mv " + path(file) + ".new " + path(file) +
           "; exec sleep 1000' &)";
  }
  pid_t await_pid(const std::string& file) {
    EXPECT_TRUE(until([&] { return std::filesystem::exists(path(file)); }));
    return static_cast<pid_t>(std::stol(read(file)));
  }
  static bool alive(pid_t pid) {
    const auto entry = read_process(pid);
    return entry && !entry->dead();
  }
  bool emptied(const std::string& key) {
    return until([&] {
      watch_->reap_adopted();
      return containment_->empty(key);
    });
  }

  static inline int made_ = 0;
  ContainmentOptions options_;
  std::unique_ptr<Containment> containment_;
};

TEST_P(ContainmentOf, KillsWhatForkedTwiceAndLeftTheSession) {
  Child* child = start_in("0.0.1.1", escape("escaped") + "; exec sleep 1000");
  const pid_t escaped = await_pid("escaped");
  containment_->kill("0.0.1.1");
  EXPECT_EQ(end_of(child).value, SIGKILL);
  EXPECT_TRUE(emptied("0.0.1.1"));
  EXPECT_FALSE(alive(escaped));
}

TEST_P(ContainmentOf, IsNotEmptyWhileAnythingOfALeaderThatExitedLives) {
  Child* child = start_in("0.0.1.1", escape("escaped"));
  const pid_t escaped = await_pid("escaped");
  EXPECT_EQ(end_of(child).value, 0);
  EXPECT_FALSE(containment_->empty("0.0.1.1"));
  EXPECT_TRUE(alive(escaped));
  containment_->kill("0.0.1.1");
  EXPECT_TRUE(emptied("0.0.1.1"));
}

TEST_P(ContainmentOf, LeavesOtherRanksAlone) {
  Child* one = start_in("0.1.1.1", escape("one") + "; exec sleep 1000");
  Child* other = start_in("0.11.1.1", escape("other") + "; exec sleep 1000");
  await_pid("one");
  const pid_t spared = await_pid("other");
  containment_->kill("0.1.1.1");
  end_of(one);
  EXPECT_TRUE(emptied("0.1.1.1"));
  EXPECT_TRUE(alive(spared));
  EXPECT_TRUE(alive(other->pid()));
  containment_->kill("0.11.1.1");
  EXPECT_TRUE(emptied("0.11.1.1"));
}

TEST_P(ContainmentOf, KillsAStoppedProcess) {
  Child* child = start_in("0.0.1.1", "touch " + path("up") + "; exec sleep 1000");
  ASSERT_TRUE(until([&] { return std::filesystem::exists(path("up")); }));
  ASSERT_TRUE(send_signal(child->pidfd(), SIGSTOP));
  ASSERT_TRUE(until([&] { return read_process(child->pid())->state == 'T'; }));
  containment_->kill("0.0.1.1");
  EXPECT_EQ(end_of(child).value, SIGKILL);
}

TEST_P(ContainmentOf, FreezesAndThawsTheWholeTree) {
  const std::string count = "while :; do echo >> " + path("ticks") + "; sleep 0.005; done";
  Child* child = start_in("0.0.1.1", "(setsid sh -c '" + count + "' &); exec sleep 1000");
  const auto ticks = [&] { return read("ticks").size(); };
  ASSERT_TRUE(until([&] { return ticks() > 2; }));
  containment_->freeze("0.0.1.1");
  // Frozen is what makes no tick in the time of forty.
  EXPECT_TRUE(until([&] {
    const std::size_t before = ticks();
    const Instant end = boot_now() + Duration::milliseconds(200);
    EXPECT_TRUE(until([&] { return boot_now() >= end; }));
    return ticks() == before;
  }));
  const std::size_t frozen = ticks();
  containment_->thaw("0.0.1.1");
  EXPECT_TRUE(until([&] { return ticks() > frozen; }));
  containment_->freeze("0.0.1.1");
  containment_->kill("0.0.1.1");  // also while it is frozen
  EXPECT_EQ(end_of(child).value, SIGKILL);
  EXPECT_TRUE(emptied("0.0.1.1"));
}

TEST_P(ContainmentOf, KillsAHundredProcessesOfATree) {
  Child* child =
      start_in("0.0.1.1", "for i in $(seq 100); do setsid sleep 1000 & done; touch " + path("up") + "; wait");
  ASSERT_TRUE(until([&] { return std::filesystem::exists(path("up")); }));
  containment_->kill("0.0.1.1");
  end_of(child);
  EXPECT_TRUE(emptied("0.0.1.1"));
}

TEST_P(ContainmentOf, KillEverythingFindsTheRanksOfAKeeperThatIsGone) {
  start_in("0.0.1.1", escape("a") + "; exec sleep 1000");
  start_in("0.1.1.1", "touch " + path("up") + "; exec sleep 1000");
  const pid_t escaped = await_pid("a");
  ASSERT_TRUE(until([&] { return std::filesystem::exists(path("up")); }));  // it is what it will be found by
  EXPECT_EQ(kill_everything(options_, GetParam(), Duration::seconds(5)), 0U);
  EXPECT_FALSE(alive(escaped));
  for (const auto& child : children_) EXPECT_EQ(end_of(child.get()).value, SIGKILL);
}

INSTANTIATE_TEST_SUITE_P(Cgroup, ContainmentOf, testing::Values(CgroupUse::kIfWritable));
INSTANTIATE_TEST_SUITE_P(Scan, ContainmentOf, testing::Values(CgroupUse::kNever));

TEST(Containment, LeavesNoFolderBehind) {
  const ContainmentOptions options{{"A=b"}, "K", text("gone", ::getpid()), "v1"};
  {
    Containment containment(options, CgroupUse::kIfWritable);
    if (!containment.uses_cgroup()) GTEST_SKIP() << containment.without_cgroup_because();
    ASSERT_TRUE(containment.prepare("0.0.1.1").ok());
  }
  const auto own = CgroupFolder::own();
  ASSERT_TRUE(own.ok());
  EXPECT_FALSE(own.value()->open(text("monarch-gone", ::getpid())).ok());
}

// A supervisor that was killed as it started has left a keeper, and the next one starts another for the same host.
TEST(Containment, GoesOnWhereAnEarlierOneOfItsHostRemovesTheFolderAsItEnds) {
  const ContainmentOptions options{{"A=b"}, "K", text("again", ::getpid()), "v1"};
  auto earlier = std::make_unique<Containment>(options, CgroupUse::kIfWritable);
  if (!earlier->uses_cgroup()) GTEST_SKIP() << earlier->without_cgroup_because();
  Containment later(options, CgroupUse::kIfWritable);
  earlier.reset();
  const auto group = later.prepare("0.0.1.1");
  ASSERT_TRUE(group.ok()) << group.error().message;
  EXPECT_TRUE((*group)->can_be_joined());
}

// With a folder in this process's own, which is empty.
class CgroupFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    auto own = CgroupFolder::own();
    if (!own.ok()) GTEST_SKIP() << own.error().message;
    own_ = std::move(own).value();
    auto made = own_->make(name_);
    if (!made.ok()) GTEST_SKIP() << made.error().message;
    folder_ = std::move(made).value();
    if (!folder_->can_be_joined()) GTEST_SKIP() << "no child can be moved into " << name_;
  }
  void TearDown() override {
    if (own_) own_->remove(name_);
  }
  static int status_of(pid_t pid) {
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  const std::string name_ = text("monarch-test-", ::getpid());
  std::unique_ptr<CgroupFolder> own_;
  std::unique_ptr<CgroupFolder> folder_;
};

// Two look after it at a time: the daemon of a killed keeper, and the launcher on its machine.
TEST_F(CgroupFolderTest, HoldsNobodyOnceSomebodyElseRemovedIt) {
  EXPECT_FALSE(folder_->populated());
  own_->remove(name_);
  EXPECT_FALSE(folder_->populated());
}

TEST_F(CgroupFolderTest, HasAChildFromItsFirstMoment) {
  if (kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer has to hear of each fork";
  if (::syscall(SYS_clone3, nullptr, 0) != -1 || errno != EINVAL) GTEST_SKIP() << "clone3 is forbidden here";
  const auto child = folder_->fork();
  if (child.pid == 0) {
    for (;;) ::pause();
  }
  ASSERT_GT(child.pid, 0);
  EXPECT_TRUE(child.inside);
  EXPECT_TRUE(folder_->populated());
  (void)folder_->kill();
  EXPECT_EQ(status_of(child.pid), -SIGKILL);
}

// As a container's filter of system calls does, and a kernel before 5.3.
bool forbid_clone3() {
  std::array<sock_filter, 4> lines = {{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
                                       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                                       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  const sock_fprog program{static_cast<unsigned short>(lines.size()), lines.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(CgroupFolderTest, IsJoinedByTheChildWhereTheKernelForbidsIt) {
  const pid_t forbidden = ::fork();
  ASSERT_GE(forbidden, 0);
  if (forbidden == 0) {
    if (!forbid_clone3()) ::_exit(3);
    const auto child = folder_->fork();
    if (child.pid < 0) ::_exit(4);
    if (child.pid == 0)
      ::_exit(child.inside || folder_->populated() ? 5 : folder_->join() && folder_->populated() ? 0 : 6);
    ::_exit(status_of(child.pid));
  }
  EXPECT_EQ(status_of(forbidden), 0);
}

TEST(Containment, FoldersOfAKilledKeeperAreFoundWhereverTheyAreAndRemoved) {
  const ContainmentOptions options{{"A=b"}, "K", text("dead", ::getpid()), "v1"};
  const auto own = CgroupFolder::own();
  if (!own.ok()) GTEST_SKIP() << own.error().message;
  // As if that keeper had run in a session of its own.
  const std::string session = text("monarch-test-", ::getpid());
  const auto elsewhere = own.value()->make(session);
  if (!elsewhere.ok()) GTEST_SKIP() << elsewhere.error().message;
  const auto job = elsewhere.value()->make(text("monarch-", options.job));
  ASSERT_TRUE(job.ok());
  for (const char* host : {"v1", "v2"}) ASSERT_TRUE(job.value()->make(host).value()->make("0.0.1.1").ok());
  EXPECT_EQ(count_job_groups(options.job), 2U);
  EXPECT_EQ(remove_job_groups(text(options.job, "0"), Duration::zero()), 0U) << "another job's";
  EXPECT_EQ(remove_job_groups(options.job, Duration::seconds(5)), 2U);
  EXPECT_EQ(count_job_groups(options.job), 0U);
  EXPECT_TRUE(elsewhere.value()->names().empty());
  own.value()->remove(session);
}

}  // namespace
}  // namespace monarch
