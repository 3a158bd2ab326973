#pragma once

// DaemonCore: what a worker's daemon decides. It holds the promise to the highest term heard, fences every frame of the
// supervisor by job and term (here, and nowhere else in the daemon), turns answered beats into leases, knows what the
// next beat says of the ranks, lets ended ranks be forgotten once their output is safe, and ends a worker that nobody
// needs.
//
// The promise: a frame of a term higher than promised is held until the driver has made the new promise durable
// (PersistPromise → PromisePersisted), and only then obeyed; a frame of a lower term is dropped for good.
//
// A lease counts from the instant the answered beat was sent, so a slow network shortens it and never lengthens it.
// When beats are due, and which was sent when, is daemon_core_beats.h's: it lives on the thread that sends them.
//
// Thread: its driver's loop; deterministic: equal events give equal actions. Lifetime: a value of its driver's.

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/keeper.h"
#include "transport/messages/rank.h"
#include "transport/messages/stacks.h"
#include "transport/messages/vault.h"
#include "transport/messages/worker.h"
#include "worker/core/keeper_actions.h"

namespace monarch::daemon {

// ---- events ----

// First event. `term` is of the supervisor that started the worker.
struct Started {
  Term term;
};

// An order that the keeper is to read: it is passed on unopened.
struct ForKeeper {
  std::uint16_t type = 0;
  std::string payload;
};

// Something for the host's post, which reads it; passed on as it came.
struct ForPost {
  std::uint16_t type = 0;  // of the message
  std::string payload;
};

// Something from the supervisor, with what its header claims.
struct FrameHeard {
  JobUuid job;
  Term term;
  std::optional<Instant> sent_at;  // of the beat that an Ack answers; nothing: that beat is unknown or too long ago
  std::variant<Ack, Start, Shutdown, VaultTable, ForPost, ForKeeper> message;
};

struct PromisePersisted {
  Term term;
};

struct PromiseFailed {
  Term term;
};

// What the keeper says of a rank; it is the only source of ends. What it says of output is ignored.
struct RankTold {
  RankReport report;
};

// A standby has become another rank, of which is told next: as a standby it has ended, without an end of its process.
struct TakenOver {
  Incarnation standby;
};

// How far the rank's output lies in its files; it is the only source of that.
struct OutputTold {
  Incarnation incarnation;
  std::uint64_t stdout_bytes = 0;
  std::uint64_t stderr_bytes = 0;
  bool complete = false;
  std::uint32_t error_bytes = 0;  // of its error file, once it is complete
  Instant evidence_at = Instant::never();
};

// Whoever runs this worker said that what runs here ends soon. What that means is the supervisor's to decide; where
// none is heard of any more after this, nobody is waited for longer than a lease.
struct EndForetold {};

// This process did not run for so long, nor, it may be, did whoever would have spoken: that is not waited.
struct StoodStill {
  Duration gap;
};

// Nothing happened but time.
struct Tick {};

using Event = std::variant<Started, FrameHeard, PromisePersisted, PromiseFailed, RankTold, TakenOver, OutputTold,
                           EndForetold, StoodStill, Tick>;

// ---- actions ----

// Make the promise durable, then answer PromisePersisted or PromiseFailed.
struct PersistPromise {
  Term term;
};

// Tell the keeper. It fences generations, so that a repeated order changes nothing.
struct TellKeeper {
  std::variant<ForKeeper, Start, KeeperLease, KeeperForget, KeeperShutdown> message;
};

// What the host's vault, or its post, goes by now.
struct TellServant {
  std::variant<VaultTable, ForPost> message;
};

// Hello goes before the next beat.
struct SayHello {};

// The next beat says something new; `at_once`: it does not wait until it is due.
struct BeatChanged {
  bool at_once = false;
};

using Action = std::variant<PersistPromise, TellKeeper, TellServant, SayHello, BeatChanged>;

struct CoreOptions {
  JobUuid job;
  Term promised;  // as found on disk and in the stash; 0 is none
  Duration orphan_ttl;
  // How long it stays after the last end of a rank without a supervisor, for one that comes back to hear of it. It is
  // no longer than orphan_ttl, and a spec's suspect_after is shorter than its lease: so nothing is left after lease and
  // orphan_ttl.
  Duration hearing;
};

// What was heard and not acted upon.
struct Counters {
  std::uint64_t foreign_job = 0;
  std::uint64_t lower_term = 0;
  std::uint64_t held_overflow = 0;  // more than kHeldFrames came while a promise was being made
  std::uint64_t unknown_beat = 0;   // an ack of a beat that is unknown: it grants nothing
  std::uint64_t promise_failed = 0;
  auto operator<=>(const Counters&) const = default;
};

class DaemonCore {
 public:
  // Frames held while a promise is being made durable; more are dropped, since the supervisor repeats what matters.
  static constexpr std::size_t kHeldFrames = 64;

  explicit DaemonCore(const CoreOptions& options) : options_(options), promised_(options.promised) {}

  std::vector<Action> step(const Event& event, Instant now);

  // What the next beat says: every rank that the keeper told of and that is not forgotten, in order.
  std::vector<RankReport> reports() const;
  // When a Tick is due: never() while a rank lives or after the end was ordered.
  Instant next_due() const;
  Term promised() const { return promised_; }
  const Counters& counters() const { return counters_; }

 private:
  struct RankState {
    RankReport report;
    Instant lease_until;
  };
  using Actions = std::vector<Action>;

  void on(const Started& event, Instant now, Actions& actions);
  void on(const FrameHeard& event, Instant now, Actions& actions);
  void on(const PromisePersisted& event, Instant now, Actions& actions);
  void on(const PromiseFailed& event, Instant now, Actions& actions);
  void on(const RankTold& event, Instant now, Actions& actions);
  void on(const TakenOver& event, Instant now, Actions& actions);
  void on(const OutputTold& event, Instant now, Actions& actions);
  void on(const EndForetold& event, Instant now, Actions& actions);
  void on(const StoodStill& event, Instant now, Actions& actions);
  void on(const Tick& event, Instant now, Actions& actions);

  void promise(Term term, Actions& actions);
  void obey(const Ack& ack, const FrameHeard& frame, Instant now, Actions& actions);
  void obey(const Start& order, const FrameHeard& frame, Instant now, Actions& actions);
  void obey(const Shutdown& order, const FrameHeard& frame, Instant now, Actions& actions);
  void obey(const ForKeeper& order, const FrameHeard& frame, Instant now, Actions& actions);
  void obey(const VaultTable& table, const FrameHeard& frame, Instant now, Actions& actions);
  void obey(const ForPost& message, const FrameHeard& frame, Instant now, Actions& actions);
  void forget(const Ack& ack, Actions& actions);
  void renew(const Ack& ack, Instant sent_at, Instant now, Actions& actions);
  void shut_down(std::int32_t exit_code, Actions& actions);
  bool any_live() const;

  CoreOptions options_;
  Term promised_;                // durable
  std::optional<Term> pending_;  // being made durable; higher than promised_
  Term floor_;                   // of the supervisor that started us
  std::deque<FrameHeard> held_;  // each of a term higher than promised_
  std::map<Incarnation, RankState> ranks_;
  Instant last_heard_;      // of a supervisor that was obeyed
  Duration last_lease_;     // as it granted it
  Instant foretold_until_;  // what was heard last before this was heard while the end was foretold
  Instant last_end_;        // of a rank
  bool shut_down_ = false;
  Counters counters_;
};

}  // namespace monarch::daemon
