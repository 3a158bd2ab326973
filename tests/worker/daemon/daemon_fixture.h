#pragma once

// What the tests of a daemon as a process share: its world, and the reports, pipes and beats of one rank.
//
// Thread: the test's.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/daemon/daemon_world.h"

namespace monarch::daemon {

inline const RankId kRank{MeshId(0), Rank(3)};
inline const Generation kGeneration{Term(3), 1};

inline RankReport report(RankPhase phase) {
  RankReport told;
  told.process = {kRank, kGeneration};
  told.phase = phase;
  told.pid = 4711;
  return told;
}

inline Ack ack_of(const Beat& beat) {
  Ack ack;
  ack.seq = beat.seq;
  ack.lease = DaemonWorld::kLease;
  ack.granted = {{kRank, kGeneration}};
  return ack;
}

class DaemonProcess : public testing::Test {
 protected:
  // Up to its first beat.
  void start() {
    world_.start(world_.first_stash());
    reply_ = world_.admit();
    ASSERT_TRUE(world_.until([&] { return world_.last_beat().has_value(); }));
  }
  void tell(RankPhase phase) { world_.keeper_says(KeeperChanged{report(phase)}); }
  // The first beat that says so.
  bool beats(const std::function<bool(const Beat&)>& condition) {
    return world_.until([&] {
      const auto beat = world_.last_beat();
      return beat && condition(*beat);
    });
  }
  bool beats_with(RankPhase phase) {
    return beats(
        [&](const Beat& beat) { return beat.content.ranks.size() == 1 && beat.content.ranks[0].phase == phase; });
  }
  template <class Message>
  bool keeper_hears() {
    return world_.until([&] { return world_.keeper_heard<Message>().has_value(); });
  }
  // What the rank's program would hold.
  struct Ends {
    UniqueFd out;
    UniqueFd err;
  };
  Ends give_pipes(std::uint16_t ready_port = 0) {
    Ends ends;
    std::vector<UniqueFd> fds;
    for (UniqueFd* end : {&ends.out, &ends.err}) {
      std::array<int, 2> pipe{};
      EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
      fds.emplace_back(pipe[0]);
      *end = UniqueFd(pipe[1]);
      kept_.emplace_back(::fcntl(pipe[0], F_DUPFD_CLOEXEC, 3));  // a keeper keeps its own
    }
    send_pipes(std::move(fds), ready_port);
    return ends;
  }
  void give_pipes_again() {
    std::vector<UniqueFd> fds;
    for (const UniqueFd& end : kept_) fds.emplace_back(::fcntl(end.get(), F_DUPFD_CLOEXEC, 3));
    send_pipes(std::move(fds));
  }
  void send_pipes(std::vector<UniqueFd> fds, std::uint16_t ready_port = 0) {
    FrameHeader header;
    header.process.rank = kRank;
    header.process.generation = kGeneration;
    world_.keeper_says(KeeperPipes{"trainer", 0, ready_port}, header, std::move(fds));
  }
  std::string output_file() const { return world_.directory + "/logs/trainer/3.1.out"; }
  std::string promise() const { return read_file(world_.directory + "/state/promise"); }

  DaemonWorld world_;
  BootstrapReply reply_;
  std::vector<UniqueFd> kept_;
};

}  // namespace monarch::daemon
