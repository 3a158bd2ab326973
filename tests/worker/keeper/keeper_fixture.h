#pragma once

// A real keeper in a process of its own, and the test in the place of the process that it guards: that process hands
// its end of the channel over to the test, and waits to be told how to exit.
//
// Thread: the test's.

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <utility>

#include "tests/transport/process/process_fixture.h"
#include "transport/messages/keeper.h"
#include "transport/messages/rank.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"
#include "transport/wire/seqpacket_channel.h"
#include "worker/core/keeper_actions.h"

namespace monarch {

inline constexpr const char* kDoorVariable = "MONARCH_TEST_DOOR";
inline constexpr const char* kSocketsVariable = "MONARCH_TEST_SOCKETS";

// The other processes of these tests are this same executable; see test_main.cc.
int run_as_keeper();
int run_as_door();

// Of the jobs that a test's keepers keep: those with a stand-in for a daemon, and those with a real one.
inline constexpr std::uint8_t kStandInMark = 0xab;
inline constexpr std::uint8_t kWorkerMark = 0xcd;
inline JobUuid job_of(std::uint8_t mark, pid_t test) {
  JobUuid job;
  job.bytes[0] = mark;
  job.bytes[1] = static_cast<std::uint8_t>(test);
  job.bytes[2] = static_cast<std::uint8_t>(test >> 8);
  job.bytes[3] = static_cast<std::uint8_t>(test >> 16);
  return job;
}

class KeeperTest : public ProcessTest {
 protected:
  void SetUp() override {
    ProcessTest::SetUp();
    listener_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path("door").c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(listener_.get(), 8), 0);
  }
  void TearDown() override {
    channel_.reset();
    ProcessTest::TearDown();
    // A keeper that a test left running was killed together with who would have cleaned up after it.
    for (const std::uint8_t mark : {kStandInMark, kWorkerMark}) {
      const ContainmentOptions everything{.host_lines = {text("MONARCH_JOB_UUID=", job_of(mark, ::getpid()).to_text())},
                                          .rank_variable = "MONARCH_RANK_KEY",
                                          .job = job_of(mark, ::getpid()).to_text(),
                                          .host = "v1"};
      EXPECT_EQ(kill_everything(everything, CgroupUse::kIfWritable, Duration::seconds(5)), 0U);
    }
  }

  SpawnOptions program(std::vector<std::string> argv) const {
    SpawnOptions options;
    options.program = std::move(argv);
    options.environment = {"PATH=/usr/bin:/bin", text(kDoorVariable, '=', path("door"))};
    options.descriptors = {{2, 2}};
    return options;
  }
  static std::string self() { return std::filesystem::read_symlink("/proc/self/exe"); }

  Child* start_keeper(CgroupUse cgroups = CgroupUse::kIfWritable) {
    SpawnOptions options = program({self(), "as-keeper"});
    if (cgroups == CgroupUse::kNever) options.environment.emplace_back("MONARCH_NO_CGROUP=1");
    return start(options);
  }

  // Takes the place of the guarded process that comes next.
  void enter() {
    channel_.reset();
    control_.reset();
    ASSERT_TRUE(until([&] {
      control_ = UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      return control_.valid();
    })) << "no guarded process came";
    ucred peer{};
    socklen_t size = sizeof peer;
    ASSERT_EQ(::getsockopt(control_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size), 0);
    door_pid_ = peer.pid;
    channel_ = SeqpacketChannel::create(
                   *loop_, receive_descriptor(),
                   {.on_frame = [this](Frame frame, std::vector<UniqueFd> fds) { take(frame, std::move(fds)); },
                    .on_closed = [](const Error&) {}})
                   .value();
    hello_.reset();
    ASSERT_TRUE(until([&] { return hello_.has_value(); }));
  }

  template <class Message>
  void send(const Message& message, const Incarnation& key = {}, std::vector<UniqueFd> fds = {}) {
    EXPECT_TRUE(channel_->send(frame_of(message, {.process = key}), std::move(fds)).ok());
  }
  static Incarnation key(std::uint32_t rank, std::uint64_t counter = 1) {
    return {{MeshId(0), Rank(rank)}, {Term(1), counter}};
  }
  static Start start_order(std::vector<std::string> lines) {
    Start order;
    order.mesh_name = "trainer";
    order.generation = {Term(1), 1};
    order.program = {"/bin/sh", "-c", "eval \"$LINE\""};
    for (std::uint32_t i = 0; i < lines.size(); ++i) {
      order.ranks.push_back({{MeshId(0), Rank(i)}, {{"LINE", std::move(lines[i])}}});
    }
    return order;
  }
  void lease(std::uint32_t ranks, Duration length) {
    KeeperLease lease;
    for (std::uint32_t i = 0; i < ranks; ++i) {
      lease.processes.push_back({{MeshId(0), Rank(i)}, {Term(1), 1}});
    }
    lease.until = boot_now() + length;
    send(lease);
  }
  void run(const Start& order, Duration length = Duration::seconds(60)) {
    send(order);
    lease(static_cast<std::uint32_t>(order.ranks.size()), length);
  }
  void stop(std::vector<std::uint32_t> ranks, Duration grace) {
    Stop order;
    for (const std::uint32_t rank : ranks) order.ranks.push_back({MeshId(0), Rank(rank)});
    order.generation = {Term(1), 1};
    order.grace = grace;
    send(order);
  }
  bool await_phase(std::uint32_t rank, RankPhase phase) {
    return until([&] { return reports_.contains(key(rank)) && reports_[key(rank)].phase == phase; });
  }
  bool await_file(const std::string& name) {
    return until([&] { return std::filesystem::exists(path(name)); });
  }
  static bool alive(pid_t pid) {
    const auto entry = read_process(pid);
    return entry && !entry->dead();
  }
  void kill_door() {
    const UniqueFd pidfd = open_process(*read_process(door_pid_));
    ASSERT_TRUE(send_signal(pidfd.get(), SIGKILL));
  }
  void exit_door(unsigned char code) { ASSERT_EQ(::write(control_.get(), &code, 1), 1); }

  UniqueFd listener_;
  UniqueFd control_;  // to the guarded process of this moment
  pid_t door_pid_ = 0;
  std::unique_ptr<SeqpacketChannel> channel_;
  bool deaf_ = false;
  std::optional<KeeperHello> hello_;
  std::string stash_;
  std::map<Incarnation, RankReport> reports_;
  std::map<Incarnation, std::size_t> reports_heard_;
  std::map<Incarnation, std::vector<UniqueFd>> pipes_;
  std::optional<Reserved> reserved_;
  std::optional<std::uint32_t> left_;  // told that all it kept has ended

 private:
  UniqueFd receive_descriptor() {
    char byte = 0;
    iovec piece{&byte, 1};
    alignas(cmsghdr) char buffer[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = buffer;
    message.msg_controllen = sizeof buffer;
    int fd = -1;
    if (::recvmsg(control_.get(), &message, MSG_CMSG_CLOEXEC) == 1) {
      std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    }
    return UniqueFd(fd);
  }

  void take(const Frame& frame, std::vector<UniqueFd> fds) {
    const Incarnation about = frame.header.process;
    switch (frame.header.type) {
      case number_of<KeeperHello>():
        hello_ = decode_payload<KeeperHello>(frame.payload).value();
        for (const RankReport& report : hello_->ranks) reports_[report.process] = report;
        stash_.clear();
        if (!fds.empty()) {
          char buffer[256];
          const ssize_t got = ::pread(fds[0].get(), buffer, sizeof buffer, 0);
          stash_.assign(buffer, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        }
        return;
      case number_of<KeeperPing>():
        if (!deaf_) send(KeeperPong{decode_payload<KeeperPing>(frame.payload).value().number});
        return;
      case number_of<KeeperChanged>():
        reports_[about] = decode_payload<KeeperChanged>(frame.payload).value().report;
        ++reports_heard_[about];
        return;
      case number_of<KeeperPipes>(): pipes_[about] = std::move(fds); return;
      case number_of<Reserved>(): reserved_ = decode_payload<Reserved>(frame.payload).value(); return;
      case number_of<KeeperEnded>(): left_ = decode_payload<KeeperEnded>(frame.payload).value().left; return;
      default: ADD_FAILURE() << "a keeper sends no message of type " << frame.header.type;
    }
  }
};

}  // namespace monarch
