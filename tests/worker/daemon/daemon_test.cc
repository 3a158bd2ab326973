#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/worker/daemon/daemon_fixture.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/keeper.h"
#include "transport/messages/message.h"
#include "transport/messages/rank.h"
#include "transport/messages/stacks.h"
#include "transport/messages/worker.h"
#include "transport/wire/codec.h"
#include "worker/core/environment.h"

namespace monarch::daemon {
namespace {

namespace fs = std::filesystem;

TEST_F(DaemonProcess, MakesItsKeysAndSaysHelloFirst) {
  start();
  EXPECT_EQ(reply_.error, "");
  EXPECT_EQ(reply_.public_key.size(), 40U);
  EXPECT_EQ(reply_.keeper_pid, ::getpid());
  EXPECT_EQ(reply_.inventory.cpus, std::thread::hardware_concurrency());
  const auto& first = world_.to_supervisor.front();
  EXPECT_EQ(first.type(), number_of<Hello>());
  EXPECT_EQ(first.header.job, world_.job);
  const auto hello = world_.supervisor_heard<Hello>();
  EXPECT_EQ(hello->host, 7U);
  EXPECT_EQ(hello->incarnation, 99U);
  EXPECT_EQ(hello->daemon_pid, world_.daemon);
  EXPECT_EQ(hello->boot_id, reply_.boot_id);
  ASSERT_TRUE(world_.until([&] { return promise() == "3\n"; }));
  const auto stash = world_.keeper_heard<KeeperStash>();
  ASSERT_TRUE(stash.has_value());
  const auto decoded = decode_payload<DaemonStash>(stash->bytes);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->public_key, reply_.public_key);
  EXPECT_EQ(decoded->secret_key.size(), kCurveKeyBytes);
}

TEST_F(DaemonProcess, TellsTheLauncherWhyItCannotStart) {
  DaemonStash stash = world_.first_stash();
  stash.bootstrap.control_endpoint = "tcp://elsewhere";
  world_.start(stash);
  EXPECT_THAT(world_.admit().error, testing::HasSubstr("tcp://elsewhere"));
  EXPECT_EQ(world_.wait_for_end(), 70);
  EXPECT_TRUE(world_.to_keeper.empty());
}

TEST_F(DaemonProcess, TellsTheLauncherWhichDirectoryCannotBeWritten) {
  DaemonStash stash = world_.first_stash();
  stash.bootstrap.state_directory = "/proc/nowhere/state";
  world_.start(stash);
  EXPECT_THAT(world_.admit().error, testing::HasSubstr("/proc/nowhere"));
  EXPECT_EQ(world_.wait_for_end(), 70);

  stash.bootstrap.state_directory = world_.directory + "/a/b/state";
  stash.bootstrap.log_directory = "relative";
  world_.start(stash);
  EXPECT_THAT(world_.admit().error, testing::HasSubstr("'relative'"));
  EXPECT_EQ(world_.wait_for_end(), 70);
}

TEST_F(DaemonProcess, AnswersPings) {
  start();
  world_.keeper_says(KeeperPing{17});
  ASSERT_TRUE(keeper_hears<KeeperPong>());
  EXPECT_EQ(world_.keeper_heard<KeeperPong>()->number, 17U);
}

TEST_F(DaemonProcess, BeatsWhileItsMainLoopDoesNotTurnAndTellsHowLong) {
  start();
  // Nobody pings it, so nothing turns its main loop.
  EXPECT_TRUE(beats([](const Beat& beat) { return beat.loop_age > Duration::seconds(1); }));
  world_.keeper_says(KeeperPing{1});
  EXPECT_TRUE(beats([](const Beat& beat) { return beat.loop_age < Duration::milliseconds(500); }));
}

TEST_F(DaemonProcess, TurnsAnAnswerIntoALeaseFromTheBeatsSend) {
  start();
  tell(RankPhase::kGated);
  ASSERT_TRUE(beats_with(RankPhase::kGated));
  const Beat beat = *world_.last_beat();
  world_.supervisor_says(ack_of(beat));
  ASSERT_TRUE(keeper_hears<KeeperLease>());
  const auto lease = world_.keeper_heard<KeeperLease>();
  EXPECT_EQ(lease->until, beat.sent_at + DaemonWorld::kLease);
  EXPECT_EQ(lease->processes, (std::vector<Incarnation>{{kRank, kGeneration}}));
  EXPECT_TRUE(
      beats([&](const Beat& later) { return later.acked_seq == beat.seq && later.round_trip > Duration::zero(); }));
}

TEST_F(DaemonProcess, BeatsAtOnceWhenARankChanges) {
  start();
  // Ten changes, each seen, in less time than ten heartbeats.
  const Instant begun = boot_now();
  for (int i = 0; i < 5; ++i) {
    tell(RankPhase::kGated);
    ASSERT_TRUE(beats_with(RankPhase::kGated));
    tell(RankPhase::kRunning);
    ASSERT_TRUE(beats_with(RankPhase::kRunning));
  }
  EXPECT_LT(boot_now() - begun, world_.first_stash().bootstrap.heartbeat * 10);
}

TEST_F(DaemonProcess, AsksAPortUntilItAcceptsAndTellsTheKeeper) {
  start();
  const UniqueFd server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(server.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(server.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const Ends ends = give_pipes(ntohs(address.sin_port));
  tell(RankPhase::kGated);
  tell(RankPhase::kRunning);
  ASSERT_TRUE(beats_with(RankPhase::kRunning));
  EXPECT_FALSE(world_.keeper_heard<KeeperReady>().has_value());
  ASSERT_EQ(::listen(server.get(), 8), 0);
  ASSERT_TRUE(keeper_hears<KeeperReady>());
  EXPECT_EQ(world_.keeper_heard<KeeperReady>()->process.rank, kRank);
  EXPECT_EQ(world_.keeper_heard<KeeperReady>()->process.generation, kGeneration);
}

// What was in the pipes is in the standby's file by then.
TEST_F(DaemonProcess, TellsTheKeeperThatAStandbysPipesAreTheRanks) {
  start();
  const Ends ends = give_pipes();
  ASSERT_EQ(::write(ends.out.get(), "loading\n", 8), 8);
  EXPECT_FALSE(world_.keeper_heard<KeeperPipesTaken>().has_value());
  FrameHeader header;
  header.process.rank = {kRank.mesh, Rank(kRank.rank.value() + 1)};
  header.process.generation = kGeneration;
  std::vector<UniqueFd> copies;
  for (const UniqueFd& end : kept_) copies.emplace_back(::fcntl(end.get(), F_DUPFD_CLOEXEC, 3));
  world_.keeper_says(KeeperPipes{"trainer", 0, 0, Incarnation{kRank, kGeneration}}, header, std::move(copies));
  ASSERT_TRUE(keeper_hears<KeeperPipesTaken>());
  EXPECT_EQ(world_.keeper_heard<KeeperPipesTaken>()->process.rank, header.process.rank);
  EXPECT_EQ(read_file(output_file()), "loading\n");
}

TEST_F(DaemonProcess, PassesOrdersOnAndAnswersBack) {
  start();
  world_.supervisor_says(Stop{}, Term(2));  // of a supervisor that was
  Signal signal;
  signal.number = 10;
  world_.supervisor_says(signal);
  ASSERT_TRUE(keeper_hears<Signal>());
  EXPECT_EQ(world_.keeper_heard<Signal>()->number, 10);
  EXPECT_FALSE(world_.keeper_heard<Stop>().has_value());

  world_.supervisor_says(Reserve{MeshId(0), GangId(1), kGeneration, 1});
  ASSERT_TRUE(keeper_hears<Reserve>());
  world_.keeper_says(Reserved{MeshId(0), GangId(1), kGeneration, {20'123}, ""});
  ASSERT_TRUE(world_.until([&] { return world_.supervisor_heard<Reserved>().has_value(); }));
  EXPECT_EQ(world_.supervisor_heard<Reserved>()->ports, std::vector<std::uint16_t>{20'123});
}

// The question comes in the way of beats, the answer does not.
TEST_F(DaemonProcess, AsksTheKeeperForStacksAndSaysThemOnTheBulkPort) {
  start();
  world_.supervisor_says(TakeStacks{.number = 6}, Term(2));  // of a supervisor that was
  world_.supervisor_says(TakeStacks{.number = 7});
  ASSERT_TRUE(keeper_hears<TakeStacks>());
  EXPECT_EQ(world_.keeper_heard<TakeStacks>()->number, 7U);
  FrameHeader header;
  header.process.rank = {MeshId(0), Rank(3)};
  header.process.generation = kGeneration;
  Stacks stacks;
  stacks.number = 7;
  world_.keeper_says(stacks, header);
  const auto said = [&] {
    return std::find_if(world_.output.begin(), world_.output.end(),
                        [](const SupervisorHeard& heard) { return heard.type() == number_of<Stacks>(); });
  };
  ASSERT_TRUE(world_.until([&] { return said() != world_.output.end(); }));
  EXPECT_EQ(said()->header.process.rank, (RankId{MeshId(0), Rank(3)}));
  EXPECT_EQ(said()->header.process.generation, kGeneration);
  EXPECT_EQ(decode_payload<Stacks>(said()->payload)->number, 7U);
  EXPECT_FALSE(world_.supervisor_heard<Stacks>().has_value());
}

TEST_F(DaemonProcess, PromisesAHigherTermBeforeItObeys) {
  start();
  world_.supervisor_says(Signal{}, Term(8));
  ASSERT_TRUE(keeper_hears<Signal>());
  EXPECT_EQ(promise(), "8\n");
  const auto stash = world_.keeper_heard<KeeperStash>();
  EXPECT_EQ(decode_payload<DaemonStash>(stash->bytes)->promised, Term(8));
  // What it says carries the new term from now on.
  EXPECT_TRUE(world_.until([&] { return world_.to_supervisor.back().header.term == Term(8); }));
}

TEST_F(DaemonProcess, SurvivesGarbageFromTheSupervisor) {
  start();
  world_.supervisor_says_payload(number_of<Start>(), "garbage", Term(3));
  world_.supervisor_says_payload(9'999, "", Term(3));
  world_.supervisor_says(Signal{});
  EXPECT_TRUE(keeper_hears<Signal>());
}

TEST_F(DaemonProcess, LeavesNothingWhenToldToShutDown) {
  start();
  ASSERT_TRUE(world_.until([&] { return promise() == "3\n"; }));
  world_.supervisor_says(Shutdown{"done"});
  EXPECT_TRUE(keeper_hears<KeeperShutdown>());
  EXPECT_EQ(world_.wait_for_end(), 0);
  EXPECT_FALSE(fs::exists(world_.directory + "/state"));
}

TEST_F(DaemonProcess, SaysAtOnceThatTheHostsEndWasForetoldAndWithEachBeatAfterIt) {
  start();
  ASSERT_TRUE(beats([](const Beat& beat) { return beat.content.warnings == 0; }));
  world_.keeper_says(KeeperWarned{1});
  ASSERT_TRUE(beats([](const Beat& beat) { return beat.content.warnings == 1; }));
  const std::uint64_t first = world_.last_beat()->seq;
  EXPECT_TRUE(beats([&](const Beat& beat) { return beat.seq > first && beat.content.warnings == 1; }));
}

TEST_F(DaemonProcess, LeavesTermToItsKeeper) {
  start();
  // As a process group gets it: from somebody who is not the keeper.
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    (void)::kill(world_.daemon, SIGTERM);
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(stranger, nullptr, 0), stranger);
  world_.keeper_says(KeeperPing{1});
  EXPECT_TRUE(keeper_hears<KeeperPong>());
  world_.kill_daemon(SIGTERM);
  EXPECT_EQ(world_.wait_for_end(), 0);
}

TEST_F(DaemonProcess, EndsAWorkerThatNoSupervisorNeeds) {
  DaemonStash stash = world_.first_stash();
  stash.bootstrap.orphan_ttl = Duration::milliseconds(300);
  world_.start(stash);
  EXPECT_TRUE(keeper_hears<KeeperShutdown>());
  EXPECT_EQ(world_.wait_for_end(), 0);
}

TEST_F(DaemonProcess, KillsEverythingOfItsWorkerWhenTheKeeperIsGone) {
  start();
  const std::string job_line = text(kJobUuidVariable, '=', world_.job.to_text());
  const std::string host_line = text(kHostVariable, '=', "v8");
  const std::string key_line = text(kRankKeyVariable, '=', rank_key({kRank, kGeneration}));
  const char* const argv[] = {"/bin/sleep", "1000", nullptr};
  const char* const environment[] = {job_line.c_str(), host_line.c_str(), key_line.c_str(), nullptr};
  std::array<int, 2> executed{};
  ASSERT_EQ(::pipe2(executed.data(), O_CLOEXEC), 0);
  const pid_t orphan = ::fork();
  if (orphan == 0) {
    (void)::setsid();
    ::execve(argv[0], const_cast<char* const*>(argv), const_cast<char* const*>(environment));
    ::_exit(127);
  }
  (void)::close(executed[1]);
  char nothing = 0;
  ASSERT_EQ(::read(executed[0], &nothing, 1), 0);  // closed by its exec: its environment is there to be found
  (void)::close(executed[0]);
  world_.keeper_dies();
  int status = 0;
  ASSERT_TRUE(world_.until([&] { return ::waitpid(orphan, &status, WNOHANG) == orphan; }));
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(world_.wait_for_end(), 70);
  EXPECT_FALSE(fs::exists(world_.directory + "/state"));
}

}  // namespace
}  // namespace monarch::daemon
