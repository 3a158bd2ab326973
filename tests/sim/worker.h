#pragma once

// Worker: a keeper on a simulated host, driven as worker/keeper/keeper.cc drives it, with its ranks and its daemons,
// one after the other. The core is the real one.
//
// Thread: one simulation's. Lifetime: its host's; it stays, as a memory, after its processes are gone.

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "tests/sim/daemon.h"
#include "tests/sim/kernel.h"
#include "tests/sim/ranks.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/rank.h"
#include "transport/messages/viewer.h"
#include "worker/core/keeper_core.h"

namespace monarch::sim {

class Worker {
 public:
  // The launcher's end of its standard output: the reply, or nothing if it closed without one.
  using ReplyTo = std::function<void(const BootstrapReply*)>;
  using OnEnded = std::function<void(const RankEnd&)>;

  Worker(World& world, Host& host, DaemonStash stash, ReplyTo reply_to, OnEnded on_ended);
  ~Worker() { life_->end(); }

  void begin();
  void terminate(int signal);
  void kill();       // SIGKILL to the keeper
  void power_off();  // of the host

  // From the daemon, in the order in which it said them.
  void hear(KeeperEvent said);
  void hear_stash(DaemonStash stash);
  void hear_reply(const BootstrapReply& reply);
  void daemon_ended(const RankEnd& end);

  bool keeper_alive() const { return life_->alive(); }
  bool daemon_alive() const { return !daemons_.empty() && daemons_.back()->alive(); }
  Daemon* daemon() { return daemon_alive() ? daemons_.back().get() : nullptr; }
  Ranks& ranks() { return ranks_; }
  const KeeperCore& core() const { return core_; }
  const DaemonStash& stash() const { return stash_; }
  void freeze();
  void thaw();
  // Nothing of it is left, leaving out what a power loss took.
  bool gone() const { return !keeper_alive() && !daemon_alive() && !ranks_.anything_left(); }

 private:
  void handle(KeeperEvent happened);
  void run();
  void tell_daemon(Daemon::FromKeeper message);
  void end(RankEnd end);

  void perform(const keeper_action::ForkRank& ordered) { ranks_.fork_rank(ordered); }
  void perform(const keeper_action::TakeOver& ordered);
  void perform(const keeper_action::ForkSpawned&) {}  // a worker's keeper spawns nothing else
  void perform(const keeper_action::OpenGate& ordered) { ranks_.open_gate(ordered.key); }
  void perform(const keeper_action::SignalRank& ordered) { ranks_.signal(ordered.key, ordered.number, ordered.to); }
  void perform(const keeper_action::TellRank&) {}  // ranks of the simulation do not listen
  void perform(const keeper_action::AnswerCommit& ordered) { ranks_.commit_answered(ordered); }
  void perform(const keeper_action::FreezeTree& ordered) { ranks_.freeze(ordered.key); }
  void perform(const keeper_action::ThawTree& ordered) { ranks_.thaw(ordered.key); }
  void perform(const keeper_action::KillRank& ordered) { ranks_.kill_rank(ordered.key); }
  void perform(const keeper_action::KillTree& ordered) { ranks_.kill(ordered.key); }
  void perform(const keeper_action::CheckTree& ordered) { ranks_.check(ordered.key); }
  void perform(const keeper_action::Reap&) {}
  void perform(const keeper_action::Drop& ordered) { ranks_.drop(ordered.key); }
  void perform(const keeper_action::Report& ordered);
  void perform(const keeper_action::Pipes& ordered);
  void perform(const keeper_action::HoldReservation& ordered);
  void perform(const keeper_action::RefuseReservation& ordered);
  void perform(const keeper_action::ReleaseReservation&) {}
  void perform(const keeper_action::Refused& ordered);
  void perform(const keeper_action::ForkGuarded& ordered);
  void perform(const keeper_action::SignalGuarded& ordered);
  void perform(const keeper_action::KillGuarded& ordered);
  void perform(const keeper_action::SayHello& ordered);
  void perform(const keeper_action::Ping& ordered);
  void perform(const keeper_action::TellEnded&) {}   // its daemon asks no more
  void perform(const keeper_action::TellWarned&) {}  // no launcher here has hosts that others take back
  void perform(const keeper_action::KillDescendants& ordered);
  void perform(const keeper_action::Exit& ordered);

  World& world_;
  Host& host_;
  LifePtr life_;
  KeeperCore core_;
  Ranks ranks_;
  Alarm alarm_;
  DaemonStash stash_;
  ReplyTo reply_to_;
  OnEnded on_ended_;
  std::uint64_t incarnation_;
  std::int32_t pid_;
  std::vector<std::unique_ptr<Daemon>> daemons_;
  std::deque<KeeperEvent> events_;
  bool handling_ = false;
  bool frozen_ = false;
  Instant frozen_at_;
  Daemon* frozen_daemon_ = nullptr;
};

}  // namespace monarch::sim
