#pragma once

// GuardedState: the process that a keeper guards (a daemon, a supervisor): pinged, killed when it neither answers nor
// makes a step, started again when it ends without having said that it would. Before it has spoken for the first time
// nothing is started again: what is wrong then is wrong for good, and its exit code says so.
//
// Thread: a value.

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "transport/base/limits.h"
#include "transport/base/time.h"
#include "transport/messages/rank.h"
#include "transport/messages/viewer.h"
#include "worker/core/keeper_actions.h"

namespace monarch {

struct GuardedOptions {
  std::uint32_t restarts = 5;  // within window; the next crash is the last
  Duration window = Duration::seconds(600);
  Duration ping_deadline = limits::kPingDeadline;
  std::vector<std::int32_t> final_codes = {};  // it exits with one of these where a restart would end the same way
};

enum class GuardedPhase : std::uint8_t {
  kWaiting,  // until it is started (again)
  kForking,
  kSilent,  // has not spoken yet
  kAlive,
  kKilled,   // has not been reaped yet
  kLeaving,  // said that it ends, or was told to
  kGone,     // and is not started again
};

class GuardedState {
 public:
  enum class Outcome : std::uint8_t {
    kNone,
    kRestarts,    // it is started again at next_due()
    kNeverReady,  // it ended before it ever spoke
    kFinal,       // by a code that no restart changes
    kGaveUp,      // its restarts are spent
    kLeft,        // in order
  };

  explicit GuardedState(const GuardedOptions& options) : options_(options) {}

  GuardedPhase phase() const { return phase_; }
  bool gone() const { return phase_ == GuardedPhase::kGone; }
  bool has_process() const;
  std::uint32_t starts() const { return starts_; }

  void tick(Instant now, KeeperActions& actions);
  Instant next_due() const;
  void extend_deadlines(Duration gap);

  void forked(Instant now);
  void spoke(Instant now);
  void pong(Instant now);
  void stepped(std::uint64_t done, Instant now);
  void hung_up(Instant now);
  Outcome ended(const RankEnd& end, Instant now);  // it exited, or could not be forked
  // No restart any more; killed after `patience`.
  void let_go(Duration patience, Instant now);

 private:
  bool listens() const { return phase_ == GuardedPhase::kSilent || phase_ == GuardedPhase::kAlive; }

  GuardedOptions options_;
  GuardedPhase phase_ = GuardedPhase::kWaiting;
  std::uint32_t starts_ = 0;
  bool ever_spoke_ = false;
  std::uint64_t pings_ = 0;
  std::uint64_t steps_ = 0;      // of this process's loop, as far as they are known
  std::deque<Instant> crashes_;  // within the window
  Instant start_at_;             // kWaiting; the first start is due at once
  Instant next_ping_ = Instant::never();
  Instant deadline_ = Instant::never();  // of its next word, of its leaving
};

}  // namespace monarch
