#pragma once

// KeeperCore: decides what a keeper does: which processes it forks, when their gates open, when they are frozen,
// thawed, stopped and killed, and when the guarded process is started again. The worker's keeper and the supervisor's
// guard are the same machine; they differ in what a TERM to the keeper itself means.
//
// Each step first enforces the leases and only then looks at the event: a keeper that was frozen must not act under a
// lease that ended meanwhile (I1).
//
// Thread: one at a time. It reads no clock and touches nothing outside itself: same events, same actions (I24).

#include <map>
#include <optional>

#include "worker/core/guarded_state.h"
#include "worker/core/incarnation_state.h"
#include "worker/core/keeper_actions.h"

namespace monarch {

enum class KeeperKind : std::uint8_t {
  kWorker,  // TERM: stop the ranks in order, then leave
  kGuard,   // TERM: passed on to the guarded process, which knows what an orderly stop is
};

struct KeeperOptions {
  KeeperKind kind = KeeperKind::kWorker;
  GuardedOptions guarded;
  // Of a worker: TERM is the word of who owns this host's processes that their end is near, and goes to each of them.
  // It is told, and what follows is for others to decide.
  bool term_foretells = false;
};

class KeeperCore {
 public:
  explicit KeeperCore(const KeeperOptions& options) : options_(options), guarded_(options.guarded) {}

  // The first Tick starts the guarded process.
  KeeperActions step(const KeeperEvent& event, Instant now);
  // When it wants a Tick.
  Instant next_due() const;

  const std::map<Incarnation, IncarnationState>& incarnations() const { return incarnations_; }
  const GuardedState& guarded() const { return guarded_; }
  bool ending() const { return exit_code_.has_value(); }
  bool exited() const { return exited_; }

 private:
  struct Gang {
    MeshId mesh;
    GangId gang;
    auto operator<=>(const Gang&) const = default;
  };
  struct Reservations {
    Generation newest;
    std::map<Generation, bool> held;  // and whether their ranks were started
  };

  void absorb_stall(Instant now);
  void on(const keeper_event::Tick&, Instant, KeeperActions&) {}  // what is due is done after every event
  void on(const Reserve& order, Instant now, KeeperActions& actions);
  void on(const Start& order, Instant now, KeeperActions& actions);
  void on(const Stop& order, Instant now, KeeperActions& actions);
  void on(const Signal& order, Instant now, KeeperActions& actions);
  void on(const Tell& order, Instant now, KeeperActions& actions);
  void on(const CommitAnswer& answer, Instant now, KeeperActions& actions);
  void on(const KeeperReady& event, Instant now, KeeperActions& actions);
  void on(const KeeperLease& lease, Instant now, KeeperActions& actions);
  void on(const KeeperForget& order, Instant now, KeeperActions& actions);
  void on(const KeeperLetLive& order, Instant now, KeeperActions& actions);
  void on(const KeeperShutdown& order, Instant now, KeeperActions& actions);
  void on(const keeper_event::Spawn& order, Instant now, KeeperActions& actions);
  void on(const keeper_event::Forked& event, Instant now, KeeperActions& actions);
  void on(const keeper_event::ForkFailed& event, Instant now, KeeperActions& actions);
  void on(const keeper_event::Executed& event, Instant now, KeeperActions& actions);
  void on(const keeper_event::ExecFailed& event, Instant now, KeeperActions& actions);
  void on(const keeper_event::Exited& event, Instant now, KeeperActions& actions);
  void on(const keeper_event::GroupTold& event, Instant now, KeeperActions& actions);
  void on(const keeper_event::TreeEmpty& event, Instant now, KeeperActions& actions);
  void on(const keeper_event::TreeBusy& event, Instant now, KeeperActions& actions);
  void on(const keeper_event::Spoke& event, Instant now, KeeperActions& actions);
  void on(const keeper_event::Stood& event, Instant now, KeeperActions& actions);
  void on(const keeper_event::Committing& event, Instant now, KeeperActions& actions);
  void on(const keeper_event::AtGate& event, Instant now, KeeperActions& actions);
  void on(const keeper_event::GuardedForked& event, Instant now, KeeperActions& actions);
  void on(const keeper_event::GuardedForkFailed& event, Instant now, KeeperActions& actions);
  void on(const keeper_event::GuardedSpoke& event, Instant now, KeeperActions& actions);
  void on(const keeper_event::GuardedPong& event, Instant now, KeeperActions& actions);
  void on(const keeper_event::GuardedSteps& event, Instant now, KeeperActions& actions);
  void on(const keeper_event::GuardedExited& event, Instant now, KeeperActions& actions);
  void on(const keeper_event::GuardedHungUp& event, Instant now, KeeperActions& actions);
  void on(const keeper_event::Terminated& event, Instant now, KeeperActions& actions);

  IncarnationState* find(const Incarnation& key);
  // Whether an incarnation may begin here; raises the floor if so.
  bool admit(const Incarnation& key, KeeperActions& actions);
  // False where nobody waits there, so that a process is to be forked.
  bool take_over(const Incarnation& standby, const keeper_action::ForkRank& as, Instant now, KeeperActions& actions);
  // Its START was lost: nothing would ever tell that it does not run.
  void stopped_before_start(const Incarnation& key, Instant now, KeeperActions& actions);
  void guarded_ended(const RankEnd& end, Instant now, KeeperActions& actions);
  void say_hello(KeeperActions& actions) const;
  void release_ports(KeeperActions& actions);
  void kill_all(Instant now, KeeperActions& actions);
  // A daemon waits for it before it says goodbye; a guard has nothing to tell.
  void tell_ended(KeeperActions& actions);
  void stop_servants(Instant now, KeeperActions& actions);
  // What is frozen can do nothing with the word that its end is near, and whoever kills it leaves its cgroup and this
  // keeper's sockets.
  void end_held(Instant now, KeeperActions& actions);
  Instant held_until(const IncarnationState& incarnation) const;
  void finish(Instant now, KeeperActions& actions);

  KeeperOptions options_;
  GuardedState guarded_;
  std::map<Incarnation, IncarnationState> incarnations_;
  std::map<RankId, Generation> floors_;  // the highest generation started or stopped
  std::map<Gang, Reservations> ports_;
  Instant last_exit_;                      // of a rank, as reported; strictly increasing
  std::optional<std::int32_t> exit_code_;  // set: it is ending
  bool end_told_ = false;                  // to the guarded process
  bool term_passed_on_ = false;            // to it, and it has not ended since
  std::uint32_t warnings_ = 0;             // how often its end was foretold
  Instant foretold_until_;
  bool exited_ = false;
  std::optional<Instant> expected_;  // when the next step was due at the latest
};

}  // namespace monarch
