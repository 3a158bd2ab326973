#include "supervisor/launch/ssh/remote_conversation.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/supervisor/launch/ssh/remote_orders.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

constexpr const char* kMarkerLine = "\nmonarch-remote 1 Linux x86_64 \n";

RemoteConversation at_marker(RemoteOrder order = test_order()) {
  RemoteConversation conversation(std::move(order));
  conversation.on_output(kMarkerLine);
  return conversation;
}

LaunchFailureKind kind_of(const RemoteConversation& conversation) {
  const LaunchFailure* failure = failure_of(conversation);
  return failure == nullptr ? LaunchFailureKind::kOther : failure->kind;
}

TEST(RemoteConversation, SaysNothingBeforeTheMarker) {
  RemoteConversation conversation(test_order());
  EXPECT_EQ(conversation.take_turn().bytes, "");
  conversation.on_output("Welcome to node01\nmonarch-remote 10 Linux\nmonarch-remote");
  EXPECT_EQ(conversation.take_turn().bytes, "");
  conversation.on_output(kMarkerLine);
  EXPECT_EQ(conversation.take_turn().bytes,
            text("start ", std::string(64, 'a'), " 10 ", kTestMark.job_uuid, " node01\n"));
  EXPECT_EQ(conversation.words(), "Welcome to node01\nmonarch-remote 10 Linux\nmonarch-remote\n");
}

TEST(RemoteConversation, StartsAWorkerThatIsThere) {
  RemoteConversation conversation = at_marker();
  (void)conversation.take_turn();
  conversation.on_output("have /home/a/.cache/monarch/worker/aa/monarch-worker \n");
  const RemoteTurn turn = conversation.take_turn();
  EXPECT_EQ(turn.bytes, test_bootstrap());
  EXPECT_FALSE(turn.file);
  EXPECT_EQ(conversation.take_turn().bytes, "") << "it is said once";
  conversation.on_output(test_reply());
  ASSERT_TRUE(conversation.answer());
  const auto* reply = std::get_if<BootstrapReply>(&*conversation.answer());
  ASSERT_NE(reply, nullptr);
  EXPECT_EQ(reply->keeper_pid, 4711);
}

TEST(RemoteConversation, UnderstandsBytesOneByOne) {
  RemoteConversation conversation(test_order());
  const std::string all = text("noise", kMarkerLine, "missing \nstored \nhave /w \n", test_reply());
  std::string said;
  int files = 0;
  for (const char byte : all) {
    conversation.on_output(std::string_view(&byte, 1));
    const RemoteTurn turn = conversation.take_turn();
    said += turn.bytes;
    files += turn.file ? 1 : 0;
  }
  EXPECT_EQ(files, 1);
  EXPECT_NE(said.find(text("put ", std::string(64, 'a'), " 10\nstart ")), std::string::npos) << said;
  EXPECT_TRUE(said.ends_with(test_bootstrap()));
  ASSERT_TRUE(conversation.answer());
  EXPECT_NE(std::get_if<BootstrapReply>(&*conversation.answer()), nullptr);
}

TEST(RemoteConversation, CopiesOnceAndNotAgain) {
  RemoteConversation conversation = at_marker();
  conversation.on_output("missing \nstored \nmissing \n");
  EXPECT_EQ(kind_of(conversation), LaunchFailureKind::kShellNoise);
  EXPECT_EQ(conversation.take_turn().bytes, "") << "nothing more is said to it";
}

TEST(RemoteConversation, TellsAnotherArchitectureApart) {
  RemoteConversation conversation(test_order());
  conversation.on_output("\nmonarch-remote 1 Linux aarch64 \n");
  ASSERT_NE(failure_of(conversation), nullptr);
  EXPECT_EQ(failure_of(conversation)->kind, LaunchFailureKind::kArchitecture);
  EXPECT_NE(failure_of(conversation)->message.find("aarch64"), std::string::npos);

  RemoteOrder installed = test_order();
  installed.installed = "/opt/monarch-worker";
  RemoteConversation other(installed);
  other.on_output("\nmonarch-remote 1 Linux aarch64 \n");
  EXPECT_EQ(failure_of(other), nullptr) << "what is installed there is for that host";
  EXPECT_EQ(other.take_turn().bytes, text("use ", kTestMark.job_uuid, " node01\n/opt/monarch-worker\n"));

  RemoteConversation bsd(test_order());
  bsd.on_output("\nmonarch-remote 1 FreeBSD amd64 \n");
  EXPECT_EQ(kind_of(bsd), LaunchFailureKind::kArchitecture);
}

TEST(RemoteConversation, GivesUpOnNoiseWithoutEnd) {
  RemoteConversation one_line(test_order());
  one_line.on_output(std::string(RemoteConversation::kNoiseBytes + 1, 'x'));
  EXPECT_EQ(kind_of(one_line), LaunchFailureKind::kShellNoise);
  RemoteConversation lines(test_order());
  for (int i = 0; i < 10'000 && !lines.answer(); ++i) lines.on_output("yes yes\n");
  EXPECT_EQ(kind_of(lines), LaunchFailureKind::kShellNoise);
  EXPECT_LE(lines.words().size(), RemoteConversation::kWordsBytes);
  EXPECT_TRUE(lines.words().starts_with("yes yes\n"));
}

TEST(RemoteConversation, ClassifiesWhatTheScriptCouldNotDo) {
  const std::pair<const char*, LaunchFailureKind> cases[] = {
      {"failed disk-full head: No space left on device \n", LaunchFailureKind::kDiskFull},
      {"failed not-writable mkdir: Permission denied \n", LaunchFailureKind::kDiskFull},
      {"failed not-ours /home/a/.cache/monarch is not a folder \n", LaunchFailureKind::kNotExecutable},
      {"failed not-executable Permission denied \n", LaunchFailureKind::kNotExecutable},
      {"failed absent /opt/w is not there \n", LaunchFailureKind::kExec},
      {"failed hash what came \n", LaunchFailureKind::kClosed},
      {"failed \n", LaunchFailureKind::kOther},
  };
  for (const auto& [line, kind] : cases) {
    RemoteConversation conversation = at_marker();
    conversation.on_output(line);
    ASSERT_NE(failure_of(conversation), nullptr) << line;
    EXPECT_EQ(failure_of(conversation)->kind, kind) << line;
  }
  RemoteConversation copying = at_marker();
  copying.on_output("missing \nfailed disk-full head: No space left on device \n");
  EXPECT_EQ(failure_of(copying)->phase, "copy");
  EXPECT_NE(failure_of(copying)->message.find("No space left"), std::string::npos);
}

TEST(RemoteConversation, SaysHowTheRemoteSideEnded) {
  RemoteConversation no_shell(test_order());
  no_shell.on_output("This account is currently not available.\n");
  no_shell.on_end(1);
  EXPECT_EQ(kind_of(no_shell), LaunchFailureKind::kShellNoise);
  EXPECT_EQ(failure_of(no_shell)->words, "This account is currently not available.\n");

  RemoteConversation cut(test_order());
  cut.on_end(std::nullopt);
  EXPECT_EQ(kind_of(cut), LaunchFailureKind::kClosed);

  RemoteConversation noexec = at_marker();
  noexec.on_output("have /scratch/monarch-worker \n");
  noexec.on_words("/bin/sh: 1: exec: /scratch/monarch-worker: Permission denied\n");
  noexec.on_end(126);
  EXPECT_EQ(kind_of(noexec), LaunchFailureKind::kNotExecutable);
  EXPECT_NE(failure_of(noexec)->message.find("/scratch/monarch-worker"), std::string::npos);
  EXPECT_NE(failure_of(noexec)->words.find("Permission denied"), std::string::npos);

  RemoteConversation killed = at_marker();
  killed.on_output("have /w \n");
  killed.on_end(137);
  EXPECT_EQ(kind_of(killed), LaunchFailureKind::kExec);
  EXPECT_NE(failure_of(killed)->message.find("137"), std::string::npos);

  RemoteConversation half = at_marker();
  half.on_output(text("have /w \n", test_reply().substr(0, 80)));
  half.on_end(0);
  EXPECT_EQ(kind_of(half), LaunchFailureKind::kShellNoise);
}

TEST(RemoteConversation, PassesOnWhatTheWorkerRefused) {
  RemoteConversation refused = at_marker();
  refused.on_output(text("have /w \n", test_reply(MONARCH_VERSION, "mkdir /state: Read-only file system")));
  EXPECT_EQ(kind_of(refused), LaunchFailureKind::kExec);
  EXPECT_EQ(failure_of(refused)->message, "mkdir /state: Read-only file system");

  RemoteConversation old = at_marker();
  old.on_output(text("have /w \n", test_reply("0.0.1")));
  EXPECT_EQ(kind_of(old), LaunchFailureKind::kVersion);
  EXPECT_NE(failure_of(old)->message.find("0.0.1"), std::string::npos);
}

TEST(RemoteConversation, TakesNoEndlessAnswer) {
  RemoteConversation conversation = at_marker();
  conversation.on_output("have /w \n");
  conversation.on_output(std::string(RemoteConversation::kReplyBytes + 1, 'x'));
  EXPECT_EQ(kind_of(conversation), LaunchFailureKind::kShellNoise);
  RemoteConversation line = at_marker();
  line.on_output(std::string(RemoteConversation::kLineBytes + 1, 'x'));
  EXPECT_EQ(kind_of(line), LaunchFailureKind::kShellNoise);
}

TEST(RemoteConversation, EndsAJobOnItsHost) {
  RemoteConversation ended = at_marker(test_order(RemotePurpose::kEnd));
  EXPECT_EQ(ended.take_turn().bytes,
            text("end ", std::string(64, 'a'), " 10 ", kTestMark.job_uuid, " node01 train-0001\n"));
  ended.on_output("have /w \nended 3\n");
  ASSERT_TRUE(ended.answer());
  ASSERT_NE(std::get_if<RemoteEnded>(&*ended.answer()), nullptr);
  EXPECT_EQ(std::get<RemoteEnded>(*ended.answer()).processes, 3U);

  RemoteConversation still = at_marker(test_order(RemotePurpose::kEnd));
  still.on_output("have /w \nstill 12 13\n");
  ASSERT_NE(failure_of(still), nullptr);
  EXPECT_EQ(failure_of(still)->phase, "end");
  EXPECT_NE(failure_of(still)->message.find("12 13"), std::string::npos);

  RemoteConversation forged = at_marker(test_order(RemotePurpose::kEnd));
  forged.on_output("have /w \nended all of them\n");
  EXPECT_EQ(kind_of(forged), LaunchFailureKind::kShellNoise);
}

TEST(RemoteConversation, NamesWhomADeadlineWaitedFor) {
  const RemoteConversation fresh(test_order());
  EXPECT_EQ(fresh.timed_out().kind, LaunchFailureKind::kTimeout);
  EXPECT_NE(fresh.timed_out().message.find("shell"), std::string::npos);
  RemoteConversation copying = at_marker();
  copying.on_output("missing \n");
  EXPECT_EQ(copying.timed_out().phase, "copy");
  RemoteConversation started = at_marker();
  started.on_output("have /w \n");
  EXPECT_NE(started.timed_out().message.find("/w"), std::string::npos);
}

}  // namespace
}  // namespace monarch
