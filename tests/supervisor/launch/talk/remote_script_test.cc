// The script, run by real shells on this machine. What it executes is a stand-in for monarch-worker, of the size of one
// that pipes cannot hold.

#include "supervisor/launch/talk/remote_script.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/supervisor/client/scratch.h"
#include "tests/supervisor/launch/talk/remote_orders.h"
#include "tests/supervisor/launch/talk/remote_shell.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

// What a command of /bin/sh prints, with `$1` being `argument`.
std::string output_of(const Scratch& scratch, const char* command, const std::string& argument) {
  const std::string file = scratch.path() + "/printed";
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int out = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(out, STDOUT_FILENO);
    ::execl("/bin/sh", "sh", "-c", command, "sh", argument.c_str(), nullptr);
    ::_exit(127);
  }
  ::waitpid(pid, nullptr, 0);
  std::string printed = contents(file);
  while (!printed.empty() && printed.back() == '\n') printed.pop_back();
  return printed;
}

class RemoteScript : public ::testing::Test {
 protected:
  void SetUp() override {
    shell_.home = text(scratch_.path(), "/home");
    fs::create_directory(shell_.home);
    fs::permissions(shell_.home, fs::perms::owner_all);
    const std::string reply = scratch_.write("reply", test_reply());
    worker_ = text(
        "#!/bin/sh\n", "echo \"$*\" >>", scratch_.path(), "/arguments\numask >", scratch_.path(),
        "/umask\ncase $1 in\nend) echo ended 3;;\ncheck) exit 0;;\ndigest) /usr/bin/sha256sum <\"$2\";;\n*) /bin/cat ",
        reply, ";;\nesac\nexit 0\n");
    while (worker_.size() < 300'000) worker_ += "# what a worker is made of, and more than a pipe takes at once\n";
    const std::string file = scratch_.write("worker", worker_);
    order_ = test_order();
    order_.machine = output_of(scratch_, "uname -m", "");
    order_.file = {.sha256 = output_of(scratch_, "sha256sum <$1", file).substr(0, 64), .size = worker_.size()};
  }

  RemoteRun run() { return converse(shell_, order_, worker_); }
  RemoteRun run(RemotePurpose purpose) {
    order_.purpose = purpose;
    return run();
  }
  fs::path cache() const { return fs::path(shell_.home) / ".cache/monarch/worker"; }
  fs::path cached() const { return cache() / order_.file.sha256 / "monarch-worker"; }
  std::string arguments() const { return contents(scratch_.path() + "/arguments"); }

  std::vector<std::string> leftovers() const {
    std::vector<std::string> found;
    if (!fs::exists(cache())) return found;
    for (const auto& entry : fs::recursive_directory_iterator(cache())) {
      if (entry.path().filename().string().starts_with("put.")) found.push_back(entry.path());
    }
    return found;
  }

  void expect_failure(const RemoteRun& run, LaunchFailureKind kind, std::string_view part) {
    ASSERT_NE(run.failure(), nullptr);
    EXPECT_EQ(run.failure()->kind, kind) << run.failure()->message << "\n" << run.words;
    EXPECT_NE(run.failure()->message.find(part), std::string::npos) << run.failure()->message;
    EXPECT_EQ(leftovers(), std::vector<std::string>());
  }

  Scratch scratch_;
  RemoteShell shell_;
  std::string worker_;
  RemoteOrder order_;
};

// ---- under every shell ----

struct Shells {
  const char* name;
  std::vector<std::string> login;
  std::string inner;
};

class RemoteScriptUnder : public RemoteScript, public ::testing::WithParamInterface<Shells> {
 protected:
  void SetUp() override {
    RemoteScript::SetUp();
    const std::string inner = GetParam().inner.substr(0, GetParam().inner.find(' '));
    for (const std::string& program : {GetParam().login.front(), inner}) {
      if (::access(program.c_str(), X_OK) != 0) GTEST_SKIP() << program << " is not installed";
    }
    shell_.login = GetParam().login;
    shell_.inner = GetParam().inner;
    if (inner != "/bin/busybox") return;
    // Its own ls, head and mv, and no sha256sum: the worker computes its hash itself.
    const std::string applets = scratch_.path() + "/applets";
    fs::create_directory(applets);
    ASSERT_EQ(output_of(scratch_, "/bin/busybox --install -s $1 && rm $1/sha256sum && echo done", applets), "done");
    shell_.path = applets;
  }
};

TEST_P(RemoteScriptUnder, ShipsTheWorkerOnceAndFindsItThereAfter) {
  const RemoteRun first = run();
  ASSERT_NE(first.reply(), nullptr) << first.failure()->message << "\n" << first.words;
  EXPECT_EQ(first.reply()->public_key, "the key");
  EXPECT_EQ(first.files, 1);
  EXPECT_EQ(contents(cached()), worker_);
  EXPECT_EQ(leftovers(), std::vector<std::string>());
  const RemoteRun second = run();
  ASSERT_NE(second.reply(), nullptr) << second.failure()->message << "\n" << second.words;
  EXPECT_EQ(second.files, 0);
  EXPECT_TRUE(arguments().ends_with(text("--job ", kTestMark.job_uuid, " --host node01\n"))) << arguments();
  const RemoteRun checked = run(RemotePurpose::kCheck);
  EXPECT_TRUE(std::holds_alternative<RemoteLeft>(checked.answer)) << checked.words;
  EXPECT_TRUE(arguments().ends_with("check\n")) << arguments();
  const RemoteRun ended = run(RemotePurpose::kEnd);
  ASSERT_NE(ended.ended(), nullptr) << ended.failure()->message << "\n" << ended.words;
  EXPECT_EQ(ended.ended()->processes, 3U);
  EXPECT_TRUE(arguments().ends_with(text("end --job ", kTestMark.job_uuid, " --host node01 --job-id train-0001\n")))
      << arguments();
}

TEST_P(RemoteScriptUnder, RefusesBytesThatAreNotThoseOfTheHash) {
  worker_[worker_.size() - 10] ^= 1;
  const RemoteRun damaged = run();
  expect_failure(damaged, LaunchFailureKind::kClosed, "sha256");
  EXPECT_FALSE(fs::exists(cached()));
}

TEST_P(RemoteScriptUnder, LeavesNothingOfACopyThatWasCut) {
  shell_.cut = 100'000;
  const RemoteRun cut = run();
  expect_failure(cut, LaunchFailureKind::kClosed, "100000 of");
  EXPECT_FALSE(fs::exists(cached()));
}

INSTANTIATE_TEST_SUITE_P(
    Shells, RemoteScriptUnder,
    ::testing::Values(Shells{"dash", {"/bin/dash"}, "/bin/dash"}, Shells{"bash", {"/bin/bash"}, "/bin/bash"},
                      Shells{"busybox", {"/bin/busybox", "sh"}, "/bin/busybox sh"},
                      Shells{"mksh", {"/bin/mksh"}, "/bin/mksh"}, Shells{"csh", {"/bin/csh"}, "/bin/sh"},
                      Shells{"fish", {"/usr/bin/fish"}, "/bin/sh"}, Shells{"zsh", {"/usr/bin/zsh"}, "/bin/sh"}),
    [](const auto& shells) { return std::string(shells.param.name); });

// ---- the script itself ----

TEST_F(RemoteScript, HasNothingThatALoginShellWouldRead) {
  const std::string_view command = remote_command();
  const std::string_view head = "exec /bin/sh -c '";
  ASSERT_TRUE(command.starts_with(head));
  ASSERT_TRUE(command.ends_with("'"));
  const std::string_view inside = command.substr(head.size(), command.size() - head.size() - 1);
  EXPECT_EQ(inside.find_first_of("'!\\\n"), std::string_view::npos);
}

TEST_F(RemoteScript, ReadsPastTheNoiseOfStartUpFiles) {
  shell_.before = "echo Welcome; printf 'no end of line'; echo to stderr >&2";
  const RemoteRun noisy = run();
  ASSERT_NE(noisy.reply(), nullptr) << noisy.failure()->message;
  EXPECT_NE(noisy.words.find("Welcome"), std::string::npos);
  EXPECT_NE(noisy.words.find("to stderr"), std::string::npos);
}

TEST_F(RemoteScript, GivesTheWorkerTheUmaskOfTheLogin) {
  shell_.before = "umask 027";
  ASSERT_NE(run().reply(), nullptr);
  EXPECT_EQ(contents(scratch_.path() + "/umask"), "0027\n");
  const auto mode = fs::status(cached()).permissions();
  EXPECT_EQ(mode, fs::perms::owner_all);
  EXPECT_EQ(fs::status(cache()).permissions(), fs::perms::owner_all);
}

TEST_F(RemoteScript, LetsHostsOfOneHomeCopyAtOnce) {
  std::vector<RemoteRun> runs(4);
  {
    std::vector<std::jthread> hosts;
    for (RemoteRun& one : runs) hosts.emplace_back([this, &one] { one = run(); });
  }
  for (const RemoteRun& one : runs) EXPECT_NE(one.reply(), nullptr) << one.failure()->message << one.words;
  EXPECT_EQ(contents(cached()), worker_);
  EXPECT_EQ(leftovers(), std::vector<std::string>());
}

TEST_F(RemoteScript, CopiesAgainWhatWasLeftInPart) {
  ASSERT_NE(run().reply(), nullptr);
  fs::resize_file(cached(), 100);
  const RemoteRun again = run();
  ASSERT_NE(again.reply(), nullptr) << again.failure()->message;
  EXPECT_EQ(again.files, 1);
  EXPECT_EQ(contents(cached()), worker_);
}

TEST_F(RemoteScript, FollowsNoLinkThatWasPlanted) {
  const std::string elsewhere = scratch_.path() + "/elsewhere";
  fs::create_directory(elsewhere);
  for (const fs::path& planted : {cache().parent_path(), cache(), cached().parent_path()}) {
    fs::remove_all(cache().parent_path());
    fs::create_directories(planted.parent_path());
    for (fs::path folder = planted.parent_path(); folder != shell_.home; folder = folder.parent_path()) {
      fs::permissions(folder, fs::perms::owner_all);
    }
    fs::create_directory_symlink(elsewhere, planted);
    // That of the whole may be one's own.
    if (planted == cache().parent_path() && ::lchown(planted.c_str(), 65534, 65534) != 0) continue;
    expect_failure(run(), LaunchFailureKind::kNotExecutable, planted.string());
    EXPECT_TRUE(fs::is_empty(elsewhere)) << planted;
    fs::remove(planted);
  }
  ASSERT_NE(run().reply(), nullptr);
  fs::remove(cached());
  fs::create_symlink(scratch_.path() + "/worker", cached());
  const RemoteRun replaced = run();
  ASSERT_NE(replaced.reply(), nullptr) << replaced.failure()->message;
  EXPECT_EQ(replaced.files, 1) << "a link in the file's place is not executed";
  EXPECT_FALSE(fs::is_symlink(cached()));
}

TEST_F(RemoteScript, FollowsALinkOfOnesOwnToAFolderOfOnesOwn) {
  const std::string elsewhere = scratch_.path() + "/else where";
  fs::create_directory(elsewhere);
  fs::permissions(elsewhere, fs::perms::owner_all);
  fs::create_directories(cache().parent_path().parent_path());
  fs::create_directory_symlink(elsewhere, cache().parent_path());
  for (const int files : {1, 0}) {
    const RemoteRun run_there = run();
    ASSERT_NE(run_there.reply(), nullptr) << run_there.failure()->message << run_there.words;
    EXPECT_EQ(run_there.files, files);
  }
  EXPECT_EQ(contents(elsewhere + "/worker/" + order_.file.sha256 + "/monarch-worker"), worker_);
  fs::permissions(elsewhere, fs::perms::group_write, fs::perm_options::add);
  expect_failure(run(), LaunchFailureKind::kNotExecutable, elsewhere);
  fs::remove_all(elsewhere);
  expect_failure(run(), LaunchFailureKind::kNotWritable, cache().parent_path().string());
}

TEST_F(RemoteScript, NeedsNoPathOfAStartUpFile) {
  const std::string say = "\necho \"$PATH\" >" + scratch_.path() + "/path\n";
  worker_.replace(worker_.find('\n'), 1, say);
  worker_.resize(order_.file.size);
  order_.file.sha256 = output_of(scratch_, "sha256sum <$1", scratch_.write("worker", worker_)).substr(0, 64);
  shell_.before = "PATH=/nonesuch; export PATH";
  const RemoteRun lost = run();
  ASSERT_NE(lost.reply(), nullptr) << lost.failure()->message << lost.words;
  EXPECT_EQ(contents(scratch_.path() + "/path"), "/nonesuch\n") << "the ranks have that of the login";
}

TEST_F(RemoteScript, TrustsNoFolderThatOthersMayWriteTo) {
  ASSERT_NE(run().reply(), nullptr);
  fs::permissions(cache(), fs::perms::others_write, fs::perm_options::add);
  expect_failure(run(), LaunchFailureKind::kNotExecutable, cache().string());
}

TEST_F(RemoteScript, TrustsNoFolderOfAnotherUser) {
  fs::create_directories(cache());
  if (::chown(cache().c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root can plant another user's folder";
  fs::permissions(cache().parent_path(), fs::perms::owner_all);
  expect_failure(run(), LaunchFailureKind::kNotExecutable, cache().string());
}

TEST_F(RemoteScript, SaysThatTheDiskIsFull) {
  shell_.mount_options = "size=128k,mode=0700";
  const RemoteRun full = run();
  if (full.no_mount) GTEST_SKIP() << "a small file system needs root";
  expect_failure(full, LaunchFailureKind::kDiskFull, "No space left");
  EXPECT_EQ(full.failure()->phase, "copy");
}

TEST_F(RemoteScript, SaysThatTheFileSystemTakesNoPrograms) {
  shell_.mount_options = "size=4m,mode=0700";
  shell_.mount_flags = MS_NOEXEC;
  const RemoteRun noexec = run();
  if (noexec.no_mount) GTEST_SKIP() << "a file system without programs needs root";
  expect_failure(noexec, LaunchFailureKind::kNotExecutable, "noexec");
  EXPECT_NE(noexec.words.find("ermission denied"), std::string::npos) << noexec.words;
}

TEST_F(RemoteScript, SaysThatTheHomeIsNotToBeWrittenTo) {
  shell_.mount_options = "size=4m,mode=0700";
  shell_.mount_flags = MS_RDONLY;
  const RemoteRun read_only = run();
  if (read_only.no_mount) GTEST_SKIP() << "a read-only file system needs root";
  expect_failure(read_only, LaunchFailureKind::kNotWritable, "Read-only");
}

TEST_F(RemoteScript, UsesAWorkerThatIsInstalled) {
  fs::create_directory(shell_.home + "/bin dir");
  order_.installed = "~/bin dir/monarch-worker";
  std::ofstream(shell_.home + "/bin dir/monarch-worker") << worker_;
  fs::permissions(shell_.home + "/bin dir/monarch-worker", fs::perms::owner_all);
  const RemoteRun used = run();
  ASSERT_NE(used.reply(), nullptr) << used.failure()->message;
  EXPECT_EQ(used.files, 0);
  EXPECT_NE(run(RemotePurpose::kEnd).ended(), nullptr);
  EXPECT_TRUE(std::holds_alternative<RemoteLeft>(run(RemotePurpose::kCheck).answer));
  EXPECT_FALSE(fs::exists(cache()));
}

TEST_F(RemoteScript, SaysThatAnInstalledWorkerIsNotThere) {
  order_.installed = "/opt/monarch; rm -rf \"$HOME\"/worker";
  expect_failure(run(), LaunchFailureKind::kExec, order_.installed + " is not there");
  EXPECT_TRUE(fs::exists(shell_.home));
}

}  // namespace
}  // namespace monarch
