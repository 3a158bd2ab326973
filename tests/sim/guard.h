#pragma once

// Guard: the keeper of the supervisor, driven as worker/keeper/keeper.cc drives it, with the real core: it starts a
// crashed supervisor again, and spawns the workers for the local launcher. With `remote` hosts it stands for a launcher
// whose arm reaches only as far as the network does.
//
// Thread: one simulation's. Lifetime: the world's.

#include <deque>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "tests/sim/kernel.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/keeper.h"
#include "transport/messages/rank.h"
#include "transport/messages/viewer.h"
#include "worker/core/keeper_core.h"

namespace monarch::sim {

class World;
class Supervisor;
class Worker;

class Guard {
 public:
  struct Spawn {
    Incarnation key;
    DaemonStash stash;
  };
  struct Forget {
    Incarnation key;
  };
  using FromSupervisor = std::variant<KeeperPong, Spawn, Stop, Forget, KeeperShutdown>;

  explicit Guard(World& world);
  ~Guard();

  void begin();
  void terminate(int signal);
  void hear(FromSupervisor message);
  void supervisor_ended(const RankEnd& end);
  // The current one, if it lives.
  Supervisor* supervisor();
  const std::vector<std::unique_ptr<Supervisor>>& supervisors() const { return supervisors_; }
  void freeze();
  void thaw();
  bool alive() const { return life_->alive(); }
  Worker* worker_of(const Incarnation& key) const;

 private:
  std::uint64_t steps_ = 0;  // of any supervisor of its
  void handle(KeeperEvent happened);
  void run();
  void kill_worker(const Incarnation& key, int signal);

  void perform(const keeper_action::ForkRank&) {}  // only workers' keepers have ranks
  void perform(const keeper_action::ForkSpawned& ordered);
  void perform(const keeper_action::OpenGate&) {}
  void perform(const keeper_action::SignalRank& ordered) { kill_worker(ordered.key, ordered.number); }
  void perform(const keeper_action::TellRank&) {}
  void perform(const keeper_action::AnswerCommit&) {}
  void perform(const keeper_action::FreezeTree&) {}
  void perform(const keeper_action::ThawTree&) {}
  void perform(const keeper_action::KillRank&) {}  // what a guard starts has no tree of its own
  void perform(const keeper_action::KillTree& ordered);
  void perform(const keeper_action::CheckTree& ordered);
  void perform(const keeper_action::Reap&) {}
  void perform(const keeper_action::Drop&) {}
  void perform(const keeper_action::Report& ordered);
  void perform(const keeper_action::Pipes&) {}
  void perform(const keeper_action::TakeOver&) {}
  void perform(const keeper_action::HoldReservation&) {}
  void perform(const keeper_action::RefuseReservation&) {}
  void perform(const keeper_action::ReleaseReservation&) {}
  void perform(const keeper_action::Refused&) {}
  void perform(const keeper_action::ForkGuarded& ordered);
  void perform(const keeper_action::SignalGuarded& ordered);
  void perform(const keeper_action::KillGuarded& ordered);
  void perform(const keeper_action::SayHello& ordered);
  void perform(const keeper_action::Ping& ordered);
  void perform(const keeper_action::TellEnded&) {}   // only workers' keepers tell it
  void perform(const keeper_action::TellWarned&) {}  // as that
  void perform(const keeper_action::KillDescendants& ordered);
  void perform(const keeper_action::Exit& ordered);

  World& world_;
  LifePtr life_;
  KeeperCore core_;
  Alarm alarm_;
  std::deque<KeeperEvent> events_;
  bool handling_ = false;
  Supervisor* frozen_ = nullptr;  // with this machine
  std::map<Incarnation, DaemonStash> stashes_;
  std::map<Incarnation, Worker*> workers_;
  std::vector<std::unique_ptr<Supervisor>> supervisors_;
};

}  // namespace monarch::sim
