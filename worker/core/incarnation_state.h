#pragma once

// IncarnationState: one incarnation of a rank on its host, from the fork to the verified empty tree; also a process of
// KeeperSpawn, which has neither gate nor lease. It decides; the keeper's driver performs.
//
// WARNING: a leader's exit is not the end: what it left behind is killed, and only an empty tree lets another
// incarnation start (I21). Until then the leader stays a zombie, so that its number, which names its group and session,
// is nobody's.
//
// What is left of a tree has kLinger before it is killed: a helper that outlives its rank puts away what that had, as
// Python's resource tracker unlinks its shared memory. Not where the lease has ended, for then nothing of it may run
// (I1).
//
// Thread: a value.

#include <optional>

#include "transport/base/limits.h"
#include "transport/base/time.h"
#include "transport/messages/rank.h"
#include "worker/core/keeper_actions.h"
#include "worker/core/lease_state.h"

namespace monarch {

enum class IncarnationPhase : std::uint8_t {
  kForking,   // ForkRank is ordered
  kGated,     // waits for its first lease
  kStarting,  // the gate is open, the program not yet executed: its mesh's setup may take its time
  kRunning,
  kHeld,     // frozen at the end of its lease
  kGrace,    // told to stop, its grace lasts
  kKilling,  // killed, or ended by itself; its tree is not known to be empty
  kWedged,   // its kill deadline passed, and something is still there
  kEnded,
};

struct RankStateOptions {
  Incarnation key;
  bool gated = true;  // false: a process of KeeperSpawn
  MeshId mesh;
  GangId gang;
  OrphanPolicy orphan = OrphanPolicy::kHold;
  Duration orphan_ttl;
  std::int32_t stop_signal = 15;
  Duration stop_grace;
  SignalTo signal_to = SignalTo::kGroup;
  Duration kill_deadline = limits::kKillDeadline;  // from SIGKILL to an empty tree; then it is wedged
  ReadyKind ready = ReadyKind::kExec;
};

struct StopOrder {
  std::int32_t signal = 15;
  Duration grace;  // zero: KILL at once
};

class IncarnationState {
 public:
  // From the death of a rank's own process to the killing of what it left, if that has not ended before.
  static constexpr Duration kLinger = Duration::milliseconds(250);

  IncarnationState(const RankStateOptions& options, Instant now)
      : options_(options), lease_(options.orphan, options.orphan_ttl, now) {}

  const Incarnation& key() const { return options_.key; }
  const RankStateOptions& options() const { return options_; }
  IncarnationPhase phase() const { return phase_; }
  bool ended() const { return phase_ == IncarnationPhase::kEnded; }
  // Nothing more will come of it, for better or worse.
  bool settled() const { return ended() || phase_ == IncarnationPhase::kWedged; }
  // It ended without a process: the order to stop it came before the one to start it.
  bool never_started() const { return never_started_; }
  // A standby that is whole and waits for its place: it may become another rank.
  bool waits_for_place() const { return phase_ == IncarnationPhase::kRunning && at_gate_ && !leader_exited(); }
  std::int32_t pid() const { return pid_; }
  Instant started_at() const { return started_at_; }
  // never(): it is not.
  Instant held_since() const { return phase_ == IncarnationPhase::kHeld ? lease_.ends_at() : Instant::never(); }
  RankReport report() const;

  // Before anything else is handled: has the lease ended (I1)?
  void enforce_lease(Instant now, KeeperActions& actions);
  void tick(Instant now, KeeperActions& actions);
  Instant next_due() const;
  // The keeper itself did not run for this long: what others were given to act in grows by it, and so does the time
  // until an orphan is killed. Leases do not: what has none is held.
  void extend_deadlines(Duration gap);

  void lease(Instant until, Instant now, KeeperActions& actions);
  void stop(const StopOrder& order, Instant now, KeeperActions& actions);
  void stop_as_configured(Instant now, KeeperActions& actions) {
    stop({options_.stop_signal, options_.stop_grace}, now, actions);
  }
  // The job is over: a process of KeeperSpawn may end by itself for so long.
  void await_end(Duration patience, Instant now, KeeperActions& actions);
  // A process of KeeperSpawn: it is left alone where the keeper ends before the job does.
  void let_live(bool whether) { let_live_ = whether; }
  bool lives_on() const { return let_live_ && !settled(); }
  // `to`: nothing, as its options say.
  void signal(std::int32_t number, std::optional<SignalTo> to, KeeperActions& actions) const;
  void tell(const std::string& json, KeeperActions& actions);

  // Instead of the fork: stopped before the order to start it came, which is its end.
  void never_start(Instant now, KeeperActions& actions);
  void forked(std::int32_t pid, Instant now, KeeperActions& actions);
  // Instead of the fork: it is the process of a standby, which waits until its place is leased.
  void take_over(const IncarnationState& standby, Instant now, KeeperActions& actions);
  void at_gate(KeeperActions& actions);
  void fork_failed(const keeper_event::ForkFailed& failure, Instant now, KeeperActions& actions);
  void executed(KeeperActions& actions);
  void exec_failed(const keeper_event::ExecFailed& failure);
  // Its exit has begun, some time ago: how it ends is told by exited(), which may be much later.
  void ending(Instant now, KeeperActions& actions);
  void exited(const RankEnd& end, Instant now, KeeperActions& actions);
  void spoke(const keeper_event::Spoke& word, KeeperActions& actions);
  void stood(Standstill standstill, KeeperActions& actions);
  void accepts_connections(KeeperActions& actions);
  void commits(const keeper_event::Committing& event, KeeperActions& actions);
  void commit_answered(const CommitAnswer& answer, KeeperActions& actions);
  void group_told() { group_told_ = true; }
  void tree_empty(KeeperActions& actions);
  // `own`: a process of the rank's own dies still.
  void tree_busy(bool own, Instant now, KeeperActions& actions);

 private:
  bool leader_exited() const { return ended_at_.has_value(); }
  void enter(IncarnationPhase phase, KeeperActions& actions);
  // All of the tree at once.
  void kill(Instant now, KeeperActions& actions);
  // The rank's own process, and what it leaves after kLinger.
  void kill_in_order(Instant now, KeeperActions& actions);
  bool lingers() const { return rest_killed_at_ != Instant::never(); }
  void wait_for_rest(Instant now, KeeperActions& actions);
  void kill_rest(Instant now, KeeperActions& actions);
  void check_tree(Instant now, KeeperActions& actions);
  void renewed(Instant until, Instant now);
  void tell_lease_low(Instant now, KeeperActions& actions);

  RankStateOptions options_;
  IncarnationPhase phase_ = IncarnationPhase::kForking;
  LeaseState lease_;
  std::int32_t pid_ = 0;
  Instant started_at_;
  std::optional<Instant> ending_at_;  // of the leader, where that was noticed before any signal of ours
  std::optional<Instant> ended_at_;   // likewise
  RankEnd end_;
  bool executed_ = false;
  bool signalled_ = false;
  bool group_told_ = false;  // what it has besides its own process may be putting its things in order, too
  bool stop_when_forked_ = false;
  bool never_started_ = false;
  bool let_live_ = false;
  bool at_gate_ = false;   // never taken back
  bool ready_ = false;     // as options_.ready says; never taken back
  RankProgress progress_;  // what it said of itself
  Standstill standstill_ = Standstill::kNone;
  TalkDrops talk_drops_;                       // what was not taken of it
  std::optional<CommitRequest> commit_;        // that is not answered
  bool told_stopping_ = false;                 // it knows that it is being stopped
  Instant deadline_ = Instant::never();        // of the grace, of the killing
  Instant rest_killed_at_ = Instant::never();  // kKilling: until then what is left may end by itself
  Instant next_check_ = Instant::never();      // of the tree, once the leader has exited
  Instant lease_low_at_ = Instant::never();    // it is told then, unless the lease is renewed before
  Duration check_period_;
};

}  // namespace monarch
