#include "supervisor/launch/talk/remote_conversation.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/supervisor/launch/talk/remote_orders.h"
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

TEST(RemoteConversation, SendsAWorkspaceWhatItLacks) {
  RemoteConversation conversation = at_marker(test_workspace_order());
  EXPECT_EQ(conversation.take_turn().bytes,
            text("workspace ", std::string(64, 'a'), " 10 ", kTestMark.job_uuid, " node01 train-0001\n"));
  EXPECT_EQ(conversation.phase(), "start");
  conversation.on_output("have /w \n");
  EXPECT_EQ(conversation.take_turn().bytes, "tree 12\nthe manifest");
  EXPECT_EQ(conversation.phase(), "workspace");
  conversation.on_output("need 0\nneed 2\n");
  EXPECT_TRUE(conversation.take_turn().blobs.empty()) << "not before it has said all";
  conversation.on_output("end\n");
  EXPECT_EQ(conversation.take_turn().blobs, (std::vector<std::size_t>{0, 2}));
  conversation.on_output("at 7\nat 9\nbuilt 10\n");
  ASSERT_TRUE(conversation.answer());
  ASSERT_NE(std::get_if<RemoteWorkspace>(&*conversation.answer()), nullptr);
  EXPECT_EQ(std::get<RemoteWorkspace>(*conversation.answer()).bytes, 10U);
}

TEST(RemoteConversation, SendsOnceMoreWhatWasDamagedThere) {
  for (const char* again : {"need 1\nend\n", "end\n"}) {
    RemoteConversation conversation = at_marker(test_workspace_order());
    conversation.on_output("have /w \nneed 0\nend\n");
    EXPECT_EQ(conversation.take_turn().blobs, std::vector<std::size_t>{0});
    conversation.on_output(text("at 3\n", again));
    EXPECT_EQ(conversation.take_turn().blobs.size(), *again == 'n' ? 1U : 0U);
    EXPECT_FALSE(conversation.answer());
    conversation.on_output("built 4\n");
    ASSERT_TRUE(conversation.answer());
    EXPECT_NE(std::get_if<RemoteWorkspace>(&*conversation.answer()), nullptr);
  }
}

TEST(RemoteConversation, BelievesNoHostThatAsksForMoreThanThereIs) {
  for (const char* words : {"need 3\n", "need 1\nneed 1\n", "need 2\nneed 1\n", "need -1\n", "need\n", "need 1 2\n",
                            "end x\n", "built 0\n", "at 1\n", "\n", "end\nneed 3\n", "end\nneed 0\nend\nneed 0\n",
                            "end\nbuilt x\n", "end\nend\nend\n", "need 99999999999999999999\n"}) {
    RemoteConversation conversation = at_marker(test_workspace_order());
    conversation.on_output("have /w \n");
    conversation.on_output(words);
    EXPECT_EQ(kind_of(conversation), LaunchFailureKind::kShellNoise) << words;
  }
}

TEST(RemoteConversation, ClassifiesWhatAWorkspaceLacks) {
  const std::pair<const char*, LaunchFailureKind> cases[] = {
      {"failed disk-full writing to /c: No space left on device\n", LaunchFailureKind::kDiskFull},
      {"failed not-writable mkdir /c: Permission denied\n", LaunchFailureKind::kNotWritable},
      {"failed refused entry 1 of the tree: has no kind\n", LaunchFailureKind::kOther},
      {"failed short the input ended midway\n", LaunchFailureKind::kClosed},
      {"failed other x\n", LaunchFailureKind::kOther},
  };
  for (const auto& [line, kind] : cases) {
    for (const char* before : {"have /w \n", "have /w \nneed 0\nend\n"}) {
      RemoteConversation conversation = at_marker(test_workspace_order());
      conversation.on_output(text(before, line));
      ASSERT_NE(failure_of(conversation), nullptr) << line;
      EXPECT_EQ(failure_of(conversation)->kind, kind) << line;
      EXPECT_EQ(failure_of(conversation)->phase, "workspace");
      EXPECT_TRUE(failure_of(conversation)->message.starts_with("the workspace could not be made there: "));
    }
  }
  RemoteConversation silent = at_marker(test_workspace_order());
  silent.on_output("have /w \n");
  EXPECT_EQ(silent.timed_out().phase, "workspace");
  RemoteOrder installed = test_workspace_order();
  installed.installed = "/opt/w";
  RemoteConversation with(installed);
  with.on_output("\nmonarch-remote 1 Linux x86_64 \n");
  EXPECT_EQ(with.take_turn().bytes, text("workspace-with ", kTestMark.job_uuid, " node01 train-0001\n/opt/w\n"));
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
      {"failed not-writable mkdir: Permission denied \n", LaunchFailureKind::kNotWritable},
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
  EXPECT_NE(failure_of(copying)->message.find("~/.cache/monarch"), std::string::npos) << "a place to look at";
}

TEST(RemoteConversation, SaysHowTheRemoteSideEnded) {
  RemoteConversation no_shell(test_order());
  no_shell.on_output("This account is currently not available.\n");
  no_shell.on_end(1);
  EXPECT_EQ(kind_of(no_shell), LaunchFailureKind::kShellNoise);
  EXPECT_EQ(failure_of(no_shell)->words, "This account is currently not available.\n");
  EXPECT_TRUE(failure_of(no_shell)->message.ends_with(" (it said: This account is currently not available.)"))
      << failure_of(no_shell)->message;

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
  RemoteOrder order = test_order();
  order.installed = "/opt/monarch-worker";
  RemoteConversation forbidden = at_marker(order);
  forbidden.on_output("have /opt/monarch-worker \n");
  forbidden.on_end(126);
  ASSERT_EQ(kind_of(forbidden), LaunchFailureKind::kNotExecutable);
  EXPECT_NE(failure_of(forbidden)->message.find("may this user execute it"), std::string::npos);

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

  RemoteConversation interface = at_marker();
  interface.on_output(
      text("have /w \n", test_reply(MONARCH_VERSION, "no ib0: there are eth0", BootstrapRefusal::kInterface)));
  EXPECT_EQ(kind_of(interface), LaunchFailureKind::kInterface);
  EXPECT_EQ(failure_of(interface)->message, "no ib0: there are eth0");

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

TEST(RemoteConversation, LetsACheckTalkUntilItLeaves) {
  RemoteConversation conversation = at_marker(test_order(RemotePurpose::kCheck));
  EXPECT_EQ(conversation.take_turn().bytes, text("check ", std::string(64, 'a'), " 10\n"));
  EXPECT_FALSE(conversation.talking());
  conversation.on_output("have /w \n12");
  ASSERT_TRUE(conversation.talking());
  conversation.say("a question");
  EXPECT_EQ(conversation.take_turn().bytes, "a question");
  conversation.on_output("3\n");
  EXPECT_EQ(conversation.take_heard(), "123\n");
  EXPECT_FALSE(conversation.answer());
  EXPECT_EQ(conversation.timed_out().phase, "check");
  conversation.on_end(0);
  EXPECT_TRUE(std::holds_alternative<RemoteLeft>(conversation.answer().value()));
}

TEST(RemoteConversation, BoundsWhatACheckSaysAndTellsHowOneDied) {
  RemoteConversation endless = at_marker(test_order(RemotePurpose::kCheck));
  endless.on_output("have /w \n");
  endless.on_output(std::string(RemoteConversation::kHeardBytes + 1, 'x'));
  EXPECT_EQ(kind_of(endless), LaunchFailureKind::kShellNoise);
  RemoteConversation unexecuted = at_marker(test_order(RemotePurpose::kCheck));
  unexecuted.on_output("have /w \n");
  unexecuted.on_end(126);
  EXPECT_EQ(kind_of(unexecuted), LaunchFailureKind::kNotExecutable);
}

}  // namespace
}  // namespace monarch
