// What a daemon does with the output of its ranks, from the pipes to the file and the supervisor.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "tests/worker/daemon/daemon_fixture.h"
#include "transport/messages/message.h"
#include "transport/messages/output.h"
#include "transport/wire/codec.h"

namespace monarch::daemon {
namespace {

namespace fs = std::filesystem;

TEST_F(DaemonProcess, StreamsAFloodAndCountsWhatItSkips) {
  start();
  constexpr std::uint64_t kBytes = 32U << 20U;
  Ends ends = give_pipes();
  tell(RankPhase::kRunning);
  const pid_t rank = ::fork();
  if (rank == 0) {
    std::array<char, 4096> piece{};
    for (std::uint64_t offset = 0; offset < kBytes; offset += piece.size()) {
      piece.fill(static_cast<char>('a' + offset / piece.size() % 26));
      if (::write(ends.out.get(), piece.data(), piece.size()) != static_cast<ssize_t>(piece.size())) ::_exit(1);
    }
    ::_exit(0);
  }
  ends = {};
  std::uint64_t next = 0;
  std::uint64_t streamed = 0;
  ASSERT_TRUE(beats([&](const Beat& beat) {
    for (const SupervisorHeard& heard : std::exchange(world_.output, {})) {
      const auto output = decode_payload<Output>(heard.payload);
      EXPECT_TRUE(output.ok() && output->offset >= next);
      for (std::size_t i = 0; i < output->bytes.size(); i += 997) {
        EXPECT_EQ(output->bytes[i], static_cast<char>('a' + (output->offset + i) / 4096 % 26));
      }
      next = output->offset + output->bytes.size();
      streamed += output->bytes.size();
    }
    return next == kBytes && beat.content.ranks.size() == 1 && beat.content.ranks[0].output_complete &&
           streamed + beat.content.output_dropped_bytes == kBytes;
  }));
  int status = 0;
  ASSERT_EQ(::waitpid(rank, &status, 0), rank);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(fs::file_size(output_file()), kBytes);
}

TEST_F(DaemonProcess, WritesAndStreamsOutputAndThenForgetsTheRank) {
  start();
  Ends ends = give_pipes();
  tell(RankPhase::kRunning);
  ASSERT_TRUE(beats_with(RankPhase::kRunning));
  ASSERT_EQ(::write(ends.out.get(), "hello\n", 6), 6);
  ASSERT_TRUE(world_.until([&] { return !world_.output.empty(); }));
  const auto& heard = world_.output.front();
  EXPECT_EQ(heard.header.process.rank, kRank);
  EXPECT_EQ(heard.header.process.generation, kGeneration);
  const auto output = decode_payload<Output>(heard.payload);
  EXPECT_EQ(output->stream, OutputStream::kStdout);
  EXPECT_EQ(output->offset, 0U);
  EXPECT_EQ(output->bytes, "hello\n");
  EXPECT_EQ(read_file(output_file()), "hello\n");

  // Not to be forgotten while its output may go on.
  tell(RankPhase::kEnded);
  ASSERT_TRUE(beats_with(RankPhase::kEnded));
  EXPECT_FALSE(world_.last_beat()->content.ranks[0].output_complete);
  ends = {};
  ASSERT_TRUE(
      beats([](const Beat& beat) { return beat.content.ranks.size() == 1 && beat.content.ranks[0].output_complete; }));
  EXPECT_EQ(world_.last_beat()->content.ranks[0].stdout_bytes, 6U);
  Ack ack = ack_of(*world_.last_beat());
  ack.forget = {{kRank, kGeneration}};
  world_.supervisor_says(ack);
  EXPECT_TRUE(keeper_hears<KeeperForget>());
  EXPECT_TRUE(beats([](const Beat& beat) { return beat.content.ranks.empty(); }));
}

TEST_F(DaemonProcess, CompletesARankThatNeverHadPipes) {
  start();
  tell(RankPhase::kEnded);
  EXPECT_TRUE(
      beats([](const Beat& beat) { return beat.content.ranks.size() == 1 && beat.content.ranks[0].output_complete; }));
}

TEST_F(DaemonProcess, GoesOnWhereAKilledOneStopped) {
  start();
  const Ends ends = give_pipes();
  tell(RankPhase::kRunning);
  ASSERT_EQ(::write(ends.out.get(), "before ", 7), 7);
  ASSERT_TRUE(world_.until([&] { return world_.output.size() == 1; }));
  const auto stash = world_.keeper_heard<KeeperStash>();
  const std::uint64_t last_seq = world_.last_beat()->seq;
  world_.kill_daemon(SIGKILL);
  ASSERT_EQ(world_.wait_for_end(), -SIGKILL);
  ASSERT_EQ(::write(ends.out.get(), "after", 5), 5);

  world_.to_supervisor.clear();
  KeeperHello hello;
  hello.starts = 2;
  hello.ranks = {report(RankPhase::kRunning)};
  world_.start(*decode_payload<DaemonStash>(stash->bytes), hello);
  give_pipes_again();
  // Nobody lets it in again: its key is the one that was let in.
  // What the killed one had sent may come before that.
  const auto hello_of_this_one = [&] {
    const auto said = world_.supervisor_heard<Hello>();
    return said && said->daemon_starts == 2;
  };
  ASSERT_TRUE(world_.until(hello_of_this_one));
  auto& heard = world_.to_supervisor;
  const auto hello_heard = std::find_if(heard.rbegin(), heard.rend(),
                                        [](const SupervisorHeard& each) { return each.type() == number_of<Hello>(); });
  const auto first = std::find_if(heard.begin(), heard.end(), [link = hello_heard->link](const SupervisorHeard& each) {
    return each.link == link;
  });
  EXPECT_EQ(first->type(), number_of<Hello>());
  heard.erase(heard.begin(), first);
  ASSERT_TRUE(beats_with(RankPhase::kRunning));
  EXPECT_GT(world_.last_beat()->seq, last_seq);
  ASSERT_TRUE(world_.until([&] { return fs::file_size(output_file()) == 12; }));
  EXPECT_EQ(read_file(output_file()), "before after");
  // An answer to a beat of the one before grants nothing here.
  Beat old;
  old.seq = last_seq;
  world_.supervisor_says(ack_of(old));
  world_.supervisor_says(Signal{});
  ASSERT_TRUE(keeper_hears<Signal>());
  EXPECT_FALSE(world_.keeper_heard<KeeperLease>().has_value());
}

}  // namespace
}  // namespace monarch::daemon
