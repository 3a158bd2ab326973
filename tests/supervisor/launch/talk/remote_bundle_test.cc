// A bundle and the script that keeps it, by real shells; and what is understood of a monarch that was executed there.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "supervisor/launch/talk/worker_image.h"
#include "tests/supervisor/client/scratch.h"
#include "tests/supervisor/launch/talk/remote_orders.h"
#include "tests/supervisor/launch/talk/remote_shell.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

namespace fs = std::filesystem;

class RemoteBundle : public ::testing::Test {
 protected:
  void SetUp() override {
    shell_.home = text(scratch_.path(), "/home");
    fs::create_directory(shell_.home);
    fs::permissions(shell_.home, fs::perms::owner_all);
    make(text("echo ", kProgramGreeting));
  }

  void make(const std::string& body) {
    monarch_ = scratch_.write("monarch", text("#!/bin/sh\necho \"$@\" >", scratch_.path(), "/words\n", body, "\n"));
    std::string second = "#!/bin/sh\n";
    while (second.size() < 200'000) second += "# more than a pipe takes at once\n";
    worker_ = scratch_.write("monarch-worker", second);
    const auto bundle = read_bundle(monarch_, worker_);
    ASSERT_TRUE(bundle.ok()) << bundle.error().message;
    bundle_ = *bundle;
  }

  RemoteRun run() {
    return converse(
        shell_,
        {.purpose = RemotePurpose::kProgram, .file = bundle_->file, .machine = bundle_->machine, .word = "over-ssh"},
        bundle_->bytes);
  }
  fs::path folder() const { return fs::path(shell_.home) / ".cache/monarch/bundle" / bundle_->file.sha256; }
  static std::string read(const fs::path& path) {
    std::ostringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    return bytes.str();
  }

  void expect_failure(const RemoteRun& run, LaunchFailureKind kind, std::string_view part) {
    ASSERT_NE(run.failure(), nullptr);
    EXPECT_EQ(run.failure()->kind, kind) << run.failure()->message << "\n" << run.words;
    EXPECT_NE(run.failure()->message.find(part), std::string::npos) << run.failure()->message;
  }

  Scratch scratch_;
  RemoteShell shell_;
  std::string monarch_;
  std::string worker_;
  std::shared_ptr<const WorkerImage> bundle_;
};

TEST_F(RemoteBundle, IsShippedOnceAndExecutedWithItsWord) {
  const RemoteRun first = run();
  const auto* program = std::get_if<RemoteProgram>(&first.answer);
  ASSERT_NE(program, nullptr) << first.failure()->message << first.words;
  EXPECT_EQ(first.files, 1);
  EXPECT_EQ(program->path, (folder() / "bin/monarch").string());
  EXPECT_EQ(read(folder() / "bin/monarch"), read(monarch_));
  EXPECT_EQ(read(folder() / "libexec/monarch/monarch-worker"), read(worker_));
  EXPECT_EQ(read(scratch_.path() + "/words"), "over-ssh\n");
  const RemoteRun second = run();
  EXPECT_TRUE(std::holds_alternative<RemoteProgram>(second.answer));
  EXPECT_EQ(second.files, 0);
}

TEST_F(RemoteBundle, HoldsNothingButItsFilesInFoldersOfTheUserAlone) {
  (void)run();
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder())) {
    EXPECT_EQ(entry.status().permissions(), fs::perms::owner_all) << entry.path();
    found.push_back(fs::relative(entry.path(), folder()));
  }
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (std::vector<std::string>{"bin", "bin/monarch", "libexec", "libexec/monarch",
                                             "libexec/monarch/monarch-worker"}));
}

TEST_F(RemoteBundle, IsShippedAgainWhereOneOfItsFilesIsNotWhole) {
  (void)run();
  fs::resize_file(folder() / "libexec/monarch/monarch-worker", 100);
  const RemoteRun again = run();
  EXPECT_TRUE(std::holds_alternative<RemoteProgram>(again.answer));
  EXPECT_EQ(again.files, 1);
  EXPECT_EQ(read(folder() / "libexec/monarch/monarch-worker"), read(worker_));
}

TEST_F(RemoteBundle, IsNotTakenFromAFolderThatOthersMayWriteTo) {
  (void)run();
  fs::permissions(folder() / "bin", fs::perms::owner_all | fs::perms::others_all);
  expect_failure(run(), LaunchFailureKind::kNotExecutable, "nobody else may write to");
}

TEST_F(RemoteBundle, IsRefusedIfItIsNotThatOfTheHash) {
  auto damaged = std::make_shared<WorkerImage>(*bundle_);
  damaged->bytes[damaged->bytes.size() - 5] ^= 1;
  bundle_ = damaged;
  expect_failure(run(), LaunchFailureKind::kClosed, "sha256");
  EXPECT_FALSE(fs::exists(folder() / "bin/monarch"));
}

TEST_F(RemoteBundle, LeavesNothingOfACopyThatWasCut) {
  shell_.cut = 100'000;
  expect_failure(run(), LaunchFailureKind::kClosed, "could not take monarch into ~/.cache/monarch ");
  EXPECT_TRUE(fs::is_empty(folder() / "bin"));
  EXPECT_TRUE(fs::is_empty(folder() / "libexec/monarch"));
}

TEST_F(RemoteBundle, AFullDiskHasItsClass) {
  shell_.mount_options = "size=64k,mode=700";
  const RemoteRun full = run();
  if (full.no_mount) GTEST_SKIP() << "this user cannot mount";
  expect_failure(full, LaunchFailureKind::kDiskFull, "o space left");
}

TEST_F(RemoteBundle, NoexecHasItsClass) {
  shell_.mount_options = "mode=700";
  shell_.mount_flags = MS_NOEXEC;
  const RemoteRun refused = run();
  if (refused.no_mount) GTEST_SKIP() << "this user cannot mount";
  expect_failure(refused, LaunchFailureKind::kNotExecutable, "noexec");
}

TEST_F(RemoteBundle, AnOlderSystemHasItsClassWithTheLoadersWords) {
  make("echo 'monarch: /lib/libc.so.6: version GLIBC_2.36 not found (required by monarch)' >&2; exit 1");
  const RemoteRun old = run();
  expect_failure(old, LaunchFailureKind::kLibraries, "GLIBC_2.36");
}

TEST_F(RemoteBundle, AMonarchThatEndsWithoutAGreetingDidNotStart) {
  make("echo out of order >&2; exit 3");
  expect_failure(run(), LaunchFailureKind::kExec, "monarch ended with status 3");
  make("echo something else");
  expect_failure(run(), LaunchFailureKind::kShellNoise, "something else");
}

TEST(RemoteProgramTalk, LeavesWhatFollowsTheGreetingToItsOwner) {
  RemoteOrder order = test_order(RemotePurpose::kProgram);
  order.file.head = 4;
  order.word = "over-ssh";
  RemoteConversation conversation(order);
  conversation.on_output("\nmonarch-remote 1 Linux x86_64 \n");
  EXPECT_EQ(conversation.take_turn().bytes, text("program ", std::string(64, 'a'), " 4 6 over-ssh\n"));
  conversation.on_output("missing \n");
  const RemoteTurn turn = conversation.take_turn();
  EXPECT_EQ(turn.bytes, text("bundle ", std::string(64, 'a'), " 4 6\n"));
  EXPECT_TRUE(turn.file);
  conversation.on_output(text("stored \nhave /b/bin/monarch \n", kProgramGreeting, "\n\x01\x02"));
  ASSERT_TRUE(conversation.answer().has_value());
  EXPECT_TRUE(std::holds_alternative<RemoteProgram>(*conversation.answer()));
  EXPECT_EQ(conversation.take_heard(), "\x01\x02");
}

TEST(RemoteProgramTalk, ShipsNothingInThePlaceOfWhatTheHostHad) {
  RemoteOrder order = test_order(RemotePurpose::kProgram);
  order.word = "over-ssh";
  order.lies_there = true;
  RemoteConversation conversation(order);
  conversation.on_output("\nmonarch-remote 1 Linux x86_64 \n");
  (void)conversation.take_turn();
  conversation.on_output("missing \n");
  ASSERT_NE(failure_of(conversation), nullptr);
  EXPECT_EQ(failure_of(conversation)->kind, LaunchFailureKind::kExec);
  EXPECT_NE(failure_of(conversation)->message.find(std::string(64, 'a')), std::string::npos);
  EXPECT_FALSE(conversation.take_turn().file);
}

TEST(RemoteProgramTalk, NamesTheArchitectureItWasBuiltFor) {
  RemoteOrder order = test_order(RemotePurpose::kProgram);
  order.word = "over-ssh";
  RemoteConversation conversation(order);
  conversation.on_output("\nmonarch-remote 1 Linux riscv64 \n");
  ASSERT_NE(failure_of(conversation), nullptr);
  EXPECT_EQ(failure_of(conversation)->kind, LaunchFailureKind::kArchitecture);
  EXPECT_EQ(failure_of(conversation)->message.find("launch.ssh.worker"), std::string::npos);
}

}  // namespace
}  // namespace monarch
