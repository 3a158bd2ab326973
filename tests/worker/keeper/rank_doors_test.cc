#include "worker/keeper/rank_doors.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "tests/worker/keeper/keeper_fixture.h"
#include "transport/base/json.h"
#include "transport/wire/seqpacket_socket.h"
#include "transport/wire/unix_address.h"

namespace monarch {
namespace {

constexpr const char* kSleeper = "exec sleep 1000";

// A process of a rank, as far as a socket can tell.
class Speaker {
 public:
  explicit Speaker(const std::string& path) : address_(unix_address(path).value()) {
    socket_ = UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  }
  bool say(const std::string& words) const {
    return ::sendto(socket_.get(), words.data(), words.size(), 0, reinterpret_cast<const sockaddr*>(&address_),
                    sizeof address_) == static_cast<ssize_t>(words.size());
  }
  bool say_with_descriptor(const std::string& words, int fd) const {
    iovec piece{const_cast<char*>(words.data()), words.size()};
    alignas(cmsghdr) char buffer[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_name = const_cast<sockaddr_un*>(&address_);
    message.msg_namelen = sizeof address_;
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = buffer;
    message.msg_controllen = sizeof buffer;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    return ::sendmsg(socket_.get(), &message, 0) >= 0;
  }

 private:
  sockaddr_un address_;
  UniqueFd socket_;
};

class RankDoorsTest : public KeeperTest {
 protected:
  void begin(std::vector<std::string> lines = {kSleeper}, ReadyKind ready = ReadyKind::kNotify) {
    ASSERT_EQ(::mkdir(path("s").c_str(), 0700), 0);
    SpawnOptions options = program({self(), "as-keeper"});
    options.environment.push_back(text(kSocketsVariable, '=', path("s")));
    options.environment.emplace_back("NOTIFY_SOCKET=/run/systemd/notify");
    ASSERT_NE(start(options), nullptr);
    enter();
    const auto ranks = static_cast<std::uint32_t>(lines.size());
    Start order = start_order(std::move(lines));
    order.ready = ready;
    run(order);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) ASSERT_TRUE(await_phase(rank, RankPhase::kRunning));
  }
  std::string notify() const { return path("s/0.0.n"); }
  const RankReport& report() { return reports_[key(0)]; }
  bool await_step(std::uint64_t step) {
    return until([&] { return report().progress.step == step; });
  }
  UniqueFd connect(const std::string& name) {
    auto connected = connect_seqpacket(path("s/" + name));
    EXPECT_TRUE(connected.ok()) << connected.error().message;
    return connected.ok() ? std::move(connected).value() : UniqueFd();
  }
  // The next message; "" where the other end has closed.
  std::string read_message(const UniqueFd& fd) {
    std::string got(8'192, '\0');
    ssize_t count = -1;
    EXPECT_TRUE(until([&] {
      count = ::recv(fd.get(), got.data(), got.size(), MSG_DONTWAIT);
      return count >= 0 || errno != EAGAIN;
    }));
    return count > 0 ? got.substr(0, static_cast<std::size_t>(count)) : "";
  }
  std::string ask(const std::string& question) {
    const UniqueFd door = connect("0.0.s");
    EXPECT_EQ(::send(door.get(), question.data(), question.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(question.size()));
    return read_message(door);
  }
  void tell(const std::string& json) { send(Tell{{{MeshId(0), Rank(0)}}, {Term(1), 1}, json}); }
};

using Doors = RankDoorsTest;

TEST_F(Doors, HearsThatARankIsReadyAndHowFarItIs) {
  begin();
  EXPECT_FALSE(report().ready);
  const Speaker speaker(notify());
  ASSERT_TRUE(speaker.say("STATUS=loading\nX_MONARCH_PHASE=init"));
  ASSERT_TRUE(until([&] { return report().progress.status == "loading"; }));
  EXPECT_FALSE(report().ready);
  ASSERT_TRUE(speaker.say("READY=1\nX_MONARCH_STEP=5\nX_MONARCH_METRIC=loss:2.5"));
  ASSERT_TRUE(await_step(5));
  EXPECT_TRUE(report().ready);
  EXPECT_EQ(report().progress.phase, "init");
  EXPECT_EQ(report().progress.metrics, (decltype(RankProgress::metrics){{"loss", "2.5"}}));
  EXPECT_LE(report().progress.at, boot_now());
}

TEST_F(Doors, GivesARankPathsOfItsOwnAndNotSystemds) {
  begin({"echo $NOTIFY_SOCKET $MONARCH_SOCKET $MONARCH_EVENTS > " + path("names") + "; exec sleep 1000"});
  const std::string stem = path("s/0.0");
  ASSERT_TRUE(until([&] { return read("names") == text(stem, ".n ", stem, ".s ", stem, ".e\n"); })) << read("names");
  for (const char* end : {".n", ".s", ".e"}) {
    struct stat status {};
    ASSERT_EQ(::lstat((stem + end).c_str(), &status), 0);
    EXPECT_TRUE(S_ISSOCK(status.st_mode));
    EXPECT_EQ(status.st_mode & 07777U, 0600U) << end;
  }
}

TEST_F(Doors, HearsTheLastWordsOfARankBeforeItsEnd) {
  begin({"until [ -e " + path("go") + " ]; do sleep 0.01; done"});
  // The keeper reads nothing while it is stopped: the words and the exit are both there when it goes on.
  const UniqueFd keeper = open_process(*read_process(hello_->keeper_pid));
  ASSERT_TRUE(send_signal(keeper.get(), SIGSTOP));
  const Speaker speaker(notify());
  ASSERT_TRUE(speaker.say("READY=1\nX_MONARCH_STEP=99"));
  const pid_t rank = report().pid;
  ASSERT_EQ(::close(::creat(path("go").c_str(), 0600)), 0);
  ASSERT_TRUE(until([&] { return !alive(rank); }));
  ASSERT_TRUE(send_signal(keeper.get(), SIGCONT));
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded));
  EXPECT_TRUE(report().ready);
  EXPECT_EQ(report().progress.step, 99U);
}

TEST_F(Doors, OutliveADaemonWithAllThatWasSaid) {
  begin();
  const Speaker speaker(notify());
  ASSERT_TRUE(speaker.say("READY=1\nX_MONARCH_STEP=5"));
  ASSERT_TRUE(await_step(5));
  const UniqueFd events = connect("0.0.e");
  kill_door();
  reports_.clear();
  enter();
  EXPECT_TRUE(report().ready);
  EXPECT_EQ(report().progress.step, 5U);
  ASSERT_TRUE(speaker.say("X_MONARCH_STEP=6"));
  ASSERT_TRUE(await_step(6));
  tell(R"({"v":1,"event":"peer_lost"})");
  EXPECT_EQ(read_message(events), R"({"v":1,"event":"peer_lost"})");
}

TEST_F(Doors, GoWithTheirRank) {
  begin({kSleeper, kSleeper});
  stop({0}, Duration::zero());
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded));
  for (const char* end : {"n", "s", "e"}) {
    EXPECT_FALSE(std::filesystem::exists(path(text("s/0.0.", end))));
    EXPECT_TRUE(std::filesystem::exists(path(text("s/0.1.", end))));
  }
}

// What a rank makes beside its doors stays when it is killed, and is nobody's then.
TEST_F(Doors, TakeWhatTheirRankHasLeftThereWithThem) {
  begin({kSleeper, kSleeper});
  std::vector<UniqueFd> sockets;
  const auto leave = [&](const std::string& name) {
    const sockaddr_un address = unix_address(path("s/" + name)).value();
    sockets.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(sockets.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  };
  for (const char* const name : {"0.0.0badcafe.t", "0.0.12345678.t", "0.1.0badcafe.t", "0.0.other"}) leave(name);
  write("s/0.0.file.t", "no socket", 0600);
  stop({0}, Duration::zero());
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded));
  for (const char* const name : {"0.0.0badcafe.t", "0.0.12345678.t"}) {
    EXPECT_FALSE(std::filesystem::exists(path(text("s/", name)))) << name;
  }
  for (const char* const name : {"0.1.0badcafe.t", "0.0.other", "0.0.file.t"}) {
    EXPECT_TRUE(std::filesystem::exists(path(text("s/", name)))) << name;
  }
}

TEST_F(Doors, PassOnLittleOfAFloodAndDelayNobody) {
  begin({kSleeper, kSleeper});
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> said{0};
  std::thread flood([&] {
    const Speaker speaker(notify());
    while (!over) said += speaker.say(text("X_MONARCH_STEP=", said.load(), "\nX_MONARCH_STEP=x")) ? 1 : 0;
  });
  const Instant from = boot_now();
  ASSERT_TRUE(until([&] { return said > 20'000; }));
  // Everything else goes on meanwhile: a rank is stopped and reported, and pings come.
  stop({1}, Duration::zero());
  const bool stopped = await_phase(1, RankPhase::kEnded);
  const std::size_t reports = reports_heard_[key(0)];
  const auto periods = static_cast<std::size_t>((boot_now() - from).count_milliseconds() / 250);
  over = true;
  flood.join();
  EXPECT_TRUE(stopped);
  EXPECT_LE(reports, periods + 6) << "of " << said << " words in " << to_text(boot_now() - from);
  // The last of them is told all the same.
  const Speaker speaker(notify());
  ASSERT_TRUE(speaker.say("X_MONARCH_STEP=123456789"));
  EXPECT_TRUE(await_step(123'456'789));
}

TEST_F(Doors, CloseWhatIsHandedToThem) {
  begin();
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  const UniqueFd read_end(pipe[0]);
  UniqueFd write_end(pipe[1]);
  ASSERT_TRUE(Speaker(notify()).say_with_descriptor("BARRIER=1", write_end.get()));
  write_end.reset();
  // sd_notify_barrier(3) waits for just this.
  ASSERT_TRUE(until([&] {
    pollfd polled{read_end.get(), POLLIN, 0};
    return ::poll(&polled, 1, 0) == 1 && (polled.revents & POLLHUP) != 0;
  }));
}

TEST_F(Doors, PassOverWhatIsTooLongOrBad) {
  begin();
  const Speaker speaker(notify());
  ASSERT_TRUE(speaker.say("READY=1\n" + std::string(kNotifyBytes, 'x')));
  ASSERT_TRUE(speaker.say(""));
  ASSERT_TRUE(speaker.say("X_MONARCH_STEP=x\nX_MONARCH_METRIC=loss:high\nSTATUS=still here"));
  ASSERT_TRUE(until([&] { return report().progress.status == "still here"; }));
  EXPECT_FALSE(report().ready);
  EXPECT_FALSE(report().progress.step);
  EXPECT_EQ(report().talk_drops, (TalkDrops{.bad_values = 2, .too_long = 1}));
}

TEST_F(Doors, TellOfWhatTheyDidNotTakeThoughNothingElseIsSaid) {
  begin();
  const Speaker speaker(notify());
  ASSERT_TRUE(speaker.say(std::string(kNotifyBytes + 1, 'x')));
  ASSERT_TRUE(until([&] { return report().talk_drops == TalkDrops{.too_long = 1}; }));
  ASSERT_TRUE(speaker.say("X_MONARCH_STEP=x"));
  ASSERT_TRUE(until([&] { return report().talk_drops == (TalkDrops{.bad_values = 1, .too_long = 1}); }));
  EXPECT_EQ(report().progress, RankProgress{});
}

TEST_F(Doors, RefuseAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  begin();
  // As if the folder were open to all: what is left is the check of who it is.
  for (std::string place = path("s"); place.size() > 4; place = place.substr(0, place.rfind('/'))) {
    ASSERT_EQ(::chmod(place.c_str(), 0755), 0) << place;
  }
  for (const char* end : {"n", "s", "e"}) ASSERT_EQ(::chmod(path(text("s/0.0.", end)).c_str(), 0666), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(65'534, 65'534, 65'534) != 0) ::_exit(2);
    if (!Speaker(notify()).say("READY=1\nSTATUS=from another user")) ::_exit(3);
    const UniqueFd door(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const sockaddr_un address = unix_address(path("s/0.0.s")).value();
    if (::connect(door.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) ::_exit(4);
    (void)::send(door.get(), "ASK=who", 7, MSG_NOSIGNAL);
    char byte = 0;
    ::_exit(::recv(door.get(), &byte, 1, 0) <= 0 ? 0 : 5);
  }
  int status = 0;
  ASSERT_TRUE(until([&] { return ::waitpid(child, &status, WNOHANG) == child; }));
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ASSERT_TRUE(Speaker(notify()).say("X_MONARCH_STEP=1"));
  ASSERT_TRUE(await_step(1));
  EXPECT_FALSE(report().ready);
  EXPECT_EQ(report().progress.status, "");
  EXPECT_EQ(report().talk_drops, (TalkDrops{.foreign = 2}));
}

TEST_F(Doors, AnswerWhoARankIs) {
  begin();
  EXPECT_EQ(ask("ASK=who"), R"({"v":1,"job":"demo-1a2b","mesh":"trainer","rank":0,"generation":1,"host":"v1"})");
  EXPECT_TRUE(parse_json(ask("ASK=the time"))->get_string("error").has_value());
  EXPECT_TRUE(parse_json(ask(std::string(kNotifyBytes + 1, 'x')))->get_string("error").has_value());
}

TEST_F(Doors, TakeACommitAndAnswerItOnceItIsKnownWhatBecameOfIt) {
  begin();
  const UniqueFd asking = connect("0.0.s");
  const std::string words = "COMMIT=12\nWHAT=sha256:ab";
  ASSERT_GT(::send(asking.get(), words.data(), words.size(), MSG_NOSIGNAL), 0);
  ASSERT_TRUE(until([&] { return report().commit.has_value(); }));
  EXPECT_EQ(*report().commit, (CommitRequest{.number = 1, .step = 12, .what = "sha256:ab"}));
  const UniqueFd again = connect("0.0.s");
  ASSERT_GT(::send(again.get(), words.data(), words.size(), MSG_NOSIGNAL), 0);
  EXPECT_EQ(ask("COMMIT=13"), R"({"v":1,"error":"step 12 is being committed: one at a time"})");
  EXPECT_EQ(ask("COMMIT=x"), R"({"v":1,"error":"COMMIT is the number of a step"})");
  send(CommitAnswer{.process = {{MeshId(0), Rank(0)}, {Term(1), 1}}, .number = 1, .committed = true, .gang = 10});
  EXPECT_EQ(read_message(asking), R"({"v":1,"ok":true,"step":12,"gang":10})");
  EXPECT_EQ(read_message(again), R"({"v":1,"ok":true,"step":12,"gang":10})");
  ASSERT_TRUE(until([&] { return !report().commit.has_value(); }));
}

TEST_F(Doors, SayWhyACommitDoesNotCount) {
  begin();
  const UniqueFd asking = connect("0.0.s");
  ASSERT_GT(::send(asking.get(), "COMMIT=12", 9, MSG_NOSIGNAL), 0);
  ASSERT_TRUE(until([&] { return report().commit.has_value(); }));
  send(CommitAnswer{.process = {{MeshId(0), Rank(0)}, {Term(1), 1}}, .number = 1, .why = "a \"later\" one runs"});
  EXPECT_EQ(read_message(asking), R"({"v":1,"ok":false,"step":12,"refused":"a \"later\" one runs"})");
}

TEST_F(Doors, AnswerWhatWasCommittedBeforeTheirRankWasStarted) {
  begin();
  EXPECT_EQ(ask("ASK=committed"), R"({"v":1,"step":null})");
}

class StandbyDoors : public RankDoorsTest {
 protected:
  // A standby at its gate is given the place of rank 0, with a lease.
  void place() {
    ASSERT_EQ(::mkdir(path("s").c_str(), 0700), 0);
    SpawnOptions options = program({self(), "as-keeper"});
    options.environment.push_back(text(kSocketsVariable, '=', path("s")));
    ASSERT_NE(start(options), nullptr);
    enter();
    const Incarnation waiting{{MeshId(2), Rank(0)}, {Term(1), 1}};
    Start standing = start_order({kSleeper});
    standing.mesh = waiting.rank.mesh;
    standing.ranks[0].rank = waiting.rank;
    standing.standby = true;
    send(standing);
    send(KeeperLease{{waiting}, boot_now() + Duration::seconds(60)});
    ASSERT_TRUE(until([&] { return reports_[waiting].phase == RankPhase::kRunning; }));
    gate_ = connect("2.0.s");
    ASSERT_GT(::send(gate_.get(), "ASK=gate", 8, MSG_NOSIGNAL), 0);
    ASSERT_TRUE(until([&] { return reports_[waiting].at_gate; }));
    Start order = start_order({kSleeper});
    order.ranks[0].standby = Incarnation{waiting.rank, waiting.generation};
    asked_ = boot_now();
    run(order);
    ASSERT_TRUE(until([&] { return pipes_.contains(key(0)); }));
  }
  bool was_told() const {
    pollfd ready{gate_.get(), POLLIN, 0};
    return ::poll(&ready, 1, 0) == 1;
  }

  UniqueFd gate_;
  Instant asked_;
};

TEST_F(StandbyDoors, OpenOnceWhoeverReadsThePipesTakesWhatComesForTheRanks) {
  place();
  ASSERT_TRUE(until([&] { return boot_now() - asked_ > Duration::milliseconds(300); }));
  EXPECT_FALSE(was_told());
  send(KeeperPipesTaken{key(0)});
  ASSERT_TRUE(until([&] { return was_told(); }));
  EXPECT_LT(boot_now() - asked_, Duration::milliseconds(900));
  EXPECT_NE(read_message(gate_), "");
  EXPECT_TRUE(await_phase(0, RankPhase::kRunning));
}

TEST_F(StandbyDoors, OpenWithoutAnAnswerAfterASecond) {
  place();
  ASSERT_TRUE(until([&] { return was_told(); }));
  EXPECT_GT(boot_now() - asked_, Duration::milliseconds(800));
  EXPECT_TRUE(await_phase(0, RankPhase::kRunning));
}

TEST_F(Doors, TellEventsToWhoListensAndWhatTheyMissedToWhoComesLate) {
  begin();
  const UniqueFd early = connect("0.0.e");
  for (int i = 0; i < 20; ++i) tell(text(R"({"v":1,"event":"checkpoint_now","number":)", i, '}'));
  for (std::int64_t i = 0; i < 20; ++i) EXPECT_EQ(parse_json(read_message(early))->get_int64("number"), i);
  const UniqueFd late = connect("0.0.e");
  for (std::int64_t i = 4; i < 20; ++i) EXPECT_EQ(parse_json(read_message(late))->get_int64("number"), i);
  const UniqueFd asking = connect("0.0.s");
  ASSERT_EQ(::send(asking.get(), "ASK=events", 10, MSG_NOSIGNAL), 10);
  EXPECT_EQ(read_message(asking), R"({"v":1,"ok":true})");
  EXPECT_EQ(parse_json(read_message(asking))->get_int64("number"), 4);
}

TEST_F(Doors, TellOfAStopBeforeItsSignal) {
  begin({"trap '' TERM; touch " + path("there") + "; while :; do sleep 0.01; done"});
  ASSERT_TRUE(await_file("there"));
  const UniqueFd events = connect("0.0.e");
  stop({0}, Duration::milliseconds(700));
  const auto event = parse_json(read_message(events));
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(event->get_string("event"), "stopping");
  EXPECT_EQ(event->get_int64("signal"), SIGTERM);
  EXPECT_EQ(event->get_int64("grace_milliseconds"), 700);
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded));
  EXPECT_EQ(read_message(events), "") << "the door is closed";
}

TEST_F(Doors, TellThatTheLeaseIsLow) {
  begin();
  const UniqueFd events = connect("0.0.e");
  // Leases only grow: a short one is for the next generation.
  stop({0}, Duration::zero());
  ASSERT_TRUE(await_phase(0, RankPhase::kEnded));
  EXPECT_EQ(read_message(events), "");
  Start order = start_order({kSleeper});
  order.generation = {Term(1), 2};
  send(order);
  send(KeeperLease{{{{MeshId(0), Rank(0)}, {Term(1), 2}}}, boot_now() + Duration::milliseconds(3'000)});
  ASSERT_TRUE(until([&] { return reports_[key(0, 2)].phase == RankPhase::kRunning; }));
  const UniqueFd next = connect("0.0.e");
  const auto event = parse_json(read_message(next));
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(event->get_string("event"), "lease_low");
  EXPECT_LE(event->get_int64("left_milliseconds").value_or(9'999), 1'000);
}

TEST_F(Doors, DropReadersThatDoNotRead) {
  begin();
  const UniqueFd deaf = connect("0.0.e");
  const UniqueFd listening = connect("0.0.e");
  const std::string event = text(R"({"v":1,"event":"peer_lost","words":")", std::string(1'900, 'w'), "\"}");
  for (int i = 0; i < 500; ++i) {
    tell(event);
    ASSERT_EQ(read_message(listening), event) << i;
  }
  std::size_t read = 0;
  while (!read_message(deaf).empty()) ++read;
  EXPECT_LT(read, 500U) << "what the kernel held, and then the end";
  tell(std::string(EventDoor::kEventBytes + 1, 'x'));
  tell(event);
  EXPECT_EQ(read_message(listening), event) << "one that is too long is not told";
}

TEST_F(Doors, TakeEightConnections) {
  begin();
  std::vector<UniqueFd> held;
  for (std::size_t i = 0; i < EventDoor::kConnections; ++i) {
    held.push_back(connect("0.0.s"));
    ASSERT_EQ(::send(held.back().get(), "ASK=who", 7, MSG_NOSIGNAL), 7);
    ASSERT_NE(read_message(held.back()), "");
  }
  const UniqueFd ninth = connect("0.0.e");
  EXPECT_EQ(read_message(ninth), "");
  held.pop_back();
  ASSERT_TRUE(until([&] { return !ask("ASK=who").empty(); })) << "there is room again";
}

}  // namespace
}  // namespace monarch
