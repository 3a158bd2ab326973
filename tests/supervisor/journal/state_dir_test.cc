#include "supervisor/journal/state_dir.h"

#include <gtest/gtest.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>

#include "supervisor/journal/runtime_dir.h"
#include "tests/supervisor/journal/child_process.h"
#include "tests/supervisor/journal/temporary_directory.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

using testing::TemporaryDirectory;

unsigned mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777U;
}

void expect_refused(const std::string& root, std::string_view named) {
  const auto refused = StateDir::open_for_writing(root);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid) << refused.error().message;
  EXPECT_NE(refused.error().message.find(named), std::string::npos) << refused.error().message;
}

TEST(StateRoot, IsTheFirstOfThreePlaces) {
  const StateEnvironment all{.monarch_state_dir = "/m", .xdg_state_home = "/x", .xdg_runtime_dir = {}, .home = "/h"};
  EXPECT_EQ(state_root(all).value(), "/m");
  EXPECT_EQ(state_root({.monarch_state_dir = {}, .xdg_state_home = "/x", .xdg_runtime_dir = {}, .home = "/h"}).value(),
            "/x/monarch");
  EXPECT_EQ(state_root({.monarch_state_dir = {}, .xdg_state_home = {}, .xdg_runtime_dir = {}, .home = "/h"}).value(),
            "/h/.local/state/monarch");
  EXPECT_FALSE(state_root({}).ok());
}

TEST(StateRoot, RefusesRelativeAndTooLongPaths) {
  StateEnvironment environment;
  environment.monarch_state_dir = "state";
  EXPECT_NE(state_root(environment).error().message.find("MONARCH_STATE_DIR"), std::string::npos);
  environment.monarch_state_dir = "/" + std::string(PATH_MAX, 'x');
  EXPECT_EQ(state_root(environment).error().code, ErrorCode::kInvalid);
}

// C11: modes do not depend on the umask.
TEST(StateDir, MakesDirectories0700AndFiles0600UnderAnyUmask) {
  for (const mode_t mask : {0U, 022U, 077U}) {
    const TemporaryDirectory directory;
    const std::string root = directory.path() + "/deep/er/monarch";
    const mode_t before = ::umask(mask);
    const auto state = StateDir::open_for_writing(root);
    ASSERT_TRUE(state.ok()) << state.error().message;
    const auto job = state->create_job("train");
    ASSERT_TRUE(job.ok()) << job.error().message;
    EXPECT_TRUE(job->directory.child_or_create("logs").ok());
    EXPECT_TRUE(job->directory.write_file("spec.yaml", "version: 1\n").ok());
    EXPECT_TRUE(job->directory.open_file("supervisor.log", O_WRONLY | O_CREAT | O_APPEND).ok());
    ::umask(before);
    const std::string path = job->directory.path();
    EXPECT_EQ(path, root + "/jobs/" + job->id);
    for (const std::string& each : {directory.path() + "/deep", root, root + "/jobs", path, path + "/logs"}) {
      EXPECT_EQ(mode_of(each), 0700U) << each << " under umask " << mask;
    }
    for (const char* file : {"/spec.yaml", "/supervisor.log"}) {
      EXPECT_EQ(mode_of(path + file), 0600U) << file << " under umask " << mask;
    }
    EXPECT_EQ(job->directory.read_file("spec.yaml", 100).value(), "version: 1\n");
    EXPECT_EQ(job->directory.read_file("spec.yaml", 5).error().code, ErrorCode::kInvalid);
    EXPECT_EQ(job->directory.read_file("missing", 5).error().code, ErrorCode::kNotFound);
  }
}

TEST(StateDir, FindsItsJobsAgain) {
  const TemporaryDirectory directory;
  EXPECT_EQ(StateDir::open(directory.path() + "/none").error().code, ErrorCode::kNotFound);
  const auto state = StateDir::open_for_writing(directory.path());
  ASSERT_TRUE(state.ok());
  std::set<std::string> made;
  for (int i = 0; i < 50; ++i) {
    const auto job = state->create_job("a_job1");
    ASSERT_TRUE(job.ok());
    EXPECT_TRUE(is_job_id(job->id)) << job->id;
    EXPECT_TRUE(made.insert(job->id).second);
  }
  ASSERT_EQ(::mkdir((state->path() + "/not a job").c_str(), 0700), 0);
  const auto reopened = StateDir::open(directory.path());
  ASSERT_TRUE(reopened.ok());
  const auto jobs = reopened->list_jobs();
  ASSERT_TRUE(jobs.ok());
  EXPECT_EQ(std::set<std::string>(jobs->begin(), jobs->end()), made);
  EXPECT_TRUE(reopened->open_job(*made.begin()).ok());
  EXPECT_EQ(reopened->open_job("a_job1-zzzz").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(reopened->open_job("../etc-abcd").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(reopened->open_job("gone-abcd").error().code, ErrorCode::kNotFound);
}

TEST(StateDir, TriesAnotherIdWhenOneIsTakenAndGivesUpAfterMany) {
  const TemporaryDirectory directory;
  const auto state = StateDir::open_for_writing(directory.path());
  ASSERT_TRUE(state.ok());
  int asked = 0;
  const auto first_always = [&]() -> Result<std::string> {
    ++asked;
    return std::string("0000");
  };
  ASSERT_TRUE(state->create_job("j", first_always).ok());
  const auto later_another = [&]() -> Result<std::string> { return std::string(++asked < 10 ? "0000" : "0001"); };
  const auto second = state->create_job("j", later_another);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->id, "j-0001");
  const auto refused = state->create_job("j", first_always);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kBusy);
  EXPECT_LT(asked, 100);
}

TEST(StateDir, KnowsWhatAJobIdIs) {
  for (const char* good : {"a-0000", "qwen3-ab12", "a_b-ffff", "abcdefghijklmnopqrstuvwxyz012345-0123"}) {
    EXPECT_TRUE(is_job_id(good)) << good;
  }
  for (const char* bad : {"", "-", "-abcd", "a", "a-", "a-abc", "a-abcde", "a-ABCD", "A-abcd", "1a-abcd", "a/b-abcd",
                          "..-abcd", "a-b-abcd", "abcdefghijklmnopqrstuvwxyz0123456-0123"}) {
    EXPECT_FALSE(is_job_id(bad)) << bad;
  }
}

// X17, C12: for each component of ours.
TEST(StateDir, RefusesASymbolicLinkInAnyPlaceOfOurs) {
  const TemporaryDirectory elsewhere;
  {
    const TemporaryDirectory directory;
    const std::string root = directory.path() + "/monarch";
    ASSERT_EQ(::symlink(elsewhere.path().c_str(), root.c_str()), 0);
    expect_refused(root, root + " is a symbolic link");
    expect_refused(root + "/", root + " is a symbolic link");
  }
  {
    const TemporaryDirectory directory;
    ASSERT_EQ(::symlink(elsewhere.path().c_str(), (directory.path() + "/jobs").c_str()), 0);
    expect_refused(directory.path(), directory.path() + "/jobs is a symbolic link");
  }
  const TemporaryDirectory directory;
  const auto state = StateDir::open_for_writing(directory.path());
  ASSERT_TRUE(state.ok());
  ASSERT_EQ(::symlink(elsewhere.path().c_str(), (state->path() + "/x-abcd").c_str()), 0);
  EXPECT_EQ(state->open_job("x-abcd").error().code, ErrorCode::kInvalid);
  const auto job = state->create_job("x");
  ASSERT_TRUE(job.ok());
  const std::string secret = elsewhere.path() + "/secret";
  ASSERT_EQ(::symlink(secret.c_str(), (job->directory.path() + "/lock").c_str()), 0);
  const auto opened = job->directory.open_file("lock", O_RDWR | O_CREAT);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().message.find("/lock is a symbolic link"), std::string::npos) << opened.error().message;
  EXPECT_NE(::access(secret.c_str(), F_OK), 0) << "nothing was made through the link";
  // A link in the place of a file that is replaced is itself replaced.
  ASSERT_EQ(::symlink(secret.c_str(), (job->directory.path() + "/key").c_str()), 0);
  EXPECT_TRUE(job->directory.write_file("key", "k").ok());
  EXPECT_NE(::access(secret.c_str(), F_OK), 0);
}

TEST(StateDir, RefusesWhatOthersMayWriteToOrOwn) {
  {
    const TemporaryDirectory directory;
    ASSERT_EQ(::chmod(directory.path().c_str(), 0770), 0);
    expect_refused(directory.path(), directory.path() + " can be written by others");
    ASSERT_EQ(::chmod(directory.path().c_str(), 0702), 0);
    expect_refused(directory.path(), directory.path());
    ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
    EXPECT_TRUE(StateDir::open_for_writing(directory.path()).ok()) << "reading it is the user's to allow";
  }
  {
    const TemporaryDirectory directory;
    const std::string file = directory.path() + "/file";
    ASSERT_GE(UniqueFd(::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)).get(), 0);
    expect_refused(file, file + " is not a directory");
  }
  if (::geteuid() != 0) GTEST_SKIP() << "giving a directory to another user needs root";
  const TemporaryDirectory directory;
  ASSERT_EQ(::chown(directory.path().c_str(), 65534, 65534), 0);
  expect_refused(directory.path(), "belongs to user 65534");
}

TEST(StateDir, SaysAtOnceWhatItCannotWriteTo) {
  const TemporaryDirectory directory;
  const bool root = ::geteuid() == 0;
  if (root) {
    ASSERT_EQ(::chown(directory.path().c_str(), 65534, 65534), 0);
  }
  ASSERT_EQ(::chmod(directory.path().c_str(), 0500), 0);
  const int outcome = testing::in_child([&] {
    if (root && (::setgid(65534) != 0 || ::setuid(65534) != 0)) return 10;
    const auto refused = StateDir::open_for_writing(directory.path());
    if (refused.ok()) return 1;
    if (refused.error().code != ErrorCode::kInvalid) return 2;
    return refused.error().message.find(directory.path()) == std::string::npos ? 3 : 0;
  });
  EXPECT_EQ(outcome, 0);
  EXPECT_EQ(StateDir::open_for_writing("/proc/monarch").ok(), false);
}

TEST(RuntimeDir, IsBelowXdgRuntimeDirIfThatIsOurs) {
  const TemporaryDirectory directory;
  StateEnvironment environment;
  environment.uid = ::geteuid();
  environment.xdg_runtime_dir = directory.path();
  const auto runtime = open_runtime_dir(environment);
  ASSERT_TRUE(runtime.ok()) << runtime.error().message;
  EXPECT_EQ(runtime->path(), directory.path() + "/monarch");
  EXPECT_EQ(mode_of(runtime->path()), 0700U);
}

TEST(RuntimeDir, RefusesALinkPlantedInItsPlace) {
  const TemporaryDirectory directory;
  const TemporaryDirectory elsewhere;
  ASSERT_EQ(::symlink(elsewhere.path().c_str(), (directory.path() + "/monarch").c_str()), 0);
  StateEnvironment environment;
  environment.uid = ::geteuid();
  environment.xdg_runtime_dir = directory.path();
  const auto refused = open_runtime_dir(environment);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find(directory.path() + "/monarch"), std::string::npos);
}

// As where the root is read-only and an earlier job has made the folder.
TEST(RuntimeDir, NamesTheVariableWhereItCannotBeWritten) {
  const TemporaryDirectory directory;
  const std::string folder = directory.path() + "/monarch";
  ASSERT_EQ(::mkdir(folder.c_str(), 0500), 0);
  const bool root = ::geteuid() == 0;  // nothing is refused to it
  for (const std::string& path : {directory.path(), folder}) {
    if (root) {
      ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
    }
  }
  const int outcome = testing::in_child([&] {
    if (root && (::setgid(65534) != 0 || ::setuid(65534) != 0)) return 10;
    StateEnvironment environment;
    environment.uid = ::geteuid();
    environment.xdg_runtime_dir = directory.path();
    const auto refused = open_runtime_dir(environment);
    if (refused.ok()) return 1;
    return refused.error().message.find("XDG_RUNTIME_DIR names another") == std::string::npos ? 2 : 0;
  });
  EXPECT_EQ(outcome, 0);
}

TEST(RuntimeDir, RefusesASocketPathThatDoesNotFit) {
  const TemporaryDirectory directory;
  const auto runtime = SecureDirectory::open(directory.path());
  ASSERT_TRUE(runtime.ok());
  const std::size_t room = kSocketPathBytes - directory.path().size() - 1;
  EXPECT_EQ(socket_path(*runtime, std::string(room, 'x')).value().size(), kSocketPathBytes);
  const auto refused = socket_path(*runtime, std::string(room + 1, 'x'));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("108 bytes"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace monarch
