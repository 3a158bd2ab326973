#pragma once

// Ranks: the processes of one keeper, as the kernel would run them: they fork or do not, pass their gate, are executed
// late or never, run for a while, end, ignore TERM, leave children behind, and sometimes do not die when they are
// killed. It plays the part of worker/keeper/rank_processes.h, and knows what really happened, for the checker.
//
// Thread: one simulation's. Lifetime: its worker's.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "tests/sim/kernel.h"
#include "worker/core/keeper_actions.h"

namespace monarch::sim {

class World;
struct Host;

struct RankProcess {
  enum class Stage : std::uint8_t { kGated, kExecuting, kRunning, kDead };
  Incarnation key;
  HostId host;
  std::int32_t pid = 0;
  Stage stage = Stage::kGated;
  bool frozen = false;     // its tree, by the keeper
  bool due = false;        // its end came while it was frozen
  bool signalled = false;  // by us, before its end
  bool deaf = false;
  bool tardy = false;      // ready late, or never
  bool accepts = false;    // connections at its port
  bool word_due = false;   // it would have said READY=1 while it was frozen
  bool killed = false;     // a KILL is on its way, however long it takes
  std::uint64_t life = 0;  // counts what was planned for it
  std::uint32_t children = 0;
  bool standby = false;   // waits for the place of another
  bool at_gate = false;   // and may have one
  bool gate_due = false;  // it would have come there while it was frozen
  // What it says of itself, and what keeps it from doing so.
  bool said_ready = false;
  RankProgress progress;
  std::optional<std::uint64_t> furthest;  // that its gang had reached before, as its START says
  Instant last_word_at;                   // real time
  Duration silent_before;                 // that word
  Standstill standstill = Standstill::kNone;
  Instant stands_since;                    // real time
  Instant stood_until;                     // real time
  bool stuck = false;                      // in a call that never returns
  bool term_due = false;                   // it was told to end while it stood still
  std::uint64_t step = 0;                  // the newest that it knows to be committed
  std::uint64_t question = 0;              // the number of its last one about a commit
  std::optional<std::uint64_t> asked;      // the step that this was about, until it is answered
  RankEnd end;                             // what the kernel tells once it is dead
  Instant ended_at;                        // real time
  Instant evidence_at = Instant::never();  // its host's clock: it wrote why it is about to end
  Instant leased_until;                    // real time; as granted to its worker, and not later
  bool lease_watched = false;
  bool alive() const { return stage != Stage::kDead; }
  bool executes() const { return (stage == Stage::kExecuting || stage == Stage::kRunning) && !frozen && !killed; }
  // Its program gets on.
  bool acts() const { return executes() && stage == Stage::kRunning && standstill == Standstill::kNone && !stuck; }
};

class Ranks {
 public:
  Ranks(World& world, Host& host, std::function<void(KeeperEvent)> tell);

  void fork_rank(const keeper_action::ForkRank& order);
  void open_gate(const Incarnation& key);
  void signal(const Incarnation& key, int number, SignalTo to);
  void freeze(const Incarnation& key);
  void thaw(const Incarnation& key);
  void kill_rank(const Incarnation& key);
  void kill(const Incarnation& key);
  void check(const Incarnation& key);
  void drop(const Incarnation& key);
  void commit_answered(const keeper_action::AnswerCommit& ordered);
  void take_over(const keeper_action::TakeOver& order);
  // Of one that was forked as another.
  Incarnation present_name(const Incarnation& key) const;
  bool accepts(const Incarnation& key) const;
  bool has_pipes(const Incarnation& key) const { return processes_.contains(key); }

  // ranks_hangs.cc: somebody else's doing
  void stand(const Incarnation& key, Standstill how);
  void go_on(const Incarnation& key);
  bool strike(const Incarnation& key, int number);  // false: it does not run there, or stands still
  void set_going();

  void parent_died();      // PDEATHSIG: the leaders, not what they forked
  void kill_everything();  // whatever carries the job's mark
  void power_off();
  bool anything_left() const;
  std::map<Incarnation, RankProcess>& processes() { return processes_; }

 private:
  RankProcess* find(const Incarnation& key);
  void later(const Incarnation& key, Duration wait, std::function<void(RankProcess&)> what);
  void executed(RankProcess& process, bool fails);
  void plan_readiness(RankProcess& process);
  void becomes_ready(RankProcess& process);
  void fail(RankProcess& process, EndKind kind, std::int32_t value);
  void end(RankProcess& process, EndKind kind, std::int32_t value);
  void term(RankProcess& process);
  void kill_leader(RankProcess& process);
  Duration run_time(RankId rank);
  // ranks_standby.cc
  void executed_beside(RankProcess& process);
  void plan_preparation(const Incarnation& key);
  void plan_gate(const Incarnation& key);
  void comes_to_gate(RankProcess& process);
  // ranks_hangs.cc
  void speak(const RankProcess& process);
  static void mark(RankProcess& process);
  bool is_poisoned(const RankProcess& process) const;
  void plan_words(const Incarnation& key);
  void plan_stuck(const Incarnation& key);
  void tell_standing(const Incarnation& key, Duration wait);
  void end_if_due(RankProcess& process);
  // ranks_commits.cc
  static void resume(RankProcess& process, const keeper_action::ForkRank& order);
  void plan_commit(const Incarnation& key);
  void commit(RankProcess& process);

  World& world_;
  Host& host_;
  std::function<void(KeeperEvent)> tell_;
  std::map<Incarnation, RankProcess> processes_;
  std::map<Incarnation, Incarnation> renamed_;
};

}  // namespace monarch::sim
