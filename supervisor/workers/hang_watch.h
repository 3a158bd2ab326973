#pragma once

// HangWatch: what is done about ranks that stand still or make no progress. It feeds ProgressWatch with what beats say,
// tells people when a rank begins and ceases to stand still, takes a dump of the stacks before the core hears of a
// hang, and leaves alone what somebody stops on purpose, which the core keeps: that is no hang, not after the
// supervisor's return either.
//
// Thread: the supervisor's loop. Lifetime: within the core's.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "supervisor/core/health/progress_watch.h"
#include "supervisor/core/job/job_core.h"
#include "supervisor/core/state/events.h"
#include "transport/base/result.h"
#include "transport/loop/scope.h"
#include "transport/messages/rank.h"
#include "transport/messages/viewer.h"

namespace monarch {

struct HangWatchHandlers {
  std::function<void(const CoreEvent&)> decide;
  // Answers once, in seconds at most: the stacks of this rank for people, or why there are none.
  std::function<void(RankId, std::function<void(std::string)>)> dump = {};
};

class HangWatch {
 public:
  HangWatch(const JobCore& core, HangWatchHandlers handlers);
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  // Of a beat that was sent at `sent_at` on the host's clock, and read at `now` on ours.
  void on_report(HostId host, const RankReport& report, Instant sent_at, Instant now);
  // STOP and TSTP, which hold, and CONT, which lets go.
  static bool concerns(int number);
  // These are about to get that signal by an order of somebody's.
  void signalled(const std::vector<RankId>& ranks, int number);
  // An answer for who asked; the ranks are known to the spec.
  std::string hold(const HoldRequest& request);

 private:
  struct Told {
    Generation generation;
    Standstill standstill = Standstill::kNone;
    Instant since;
    std::uint32_t changes = 0;  // told in this window
    Instant window;
  };

  void tell_standstill(HostId host, const RankReport& report, Instant now);
  void tell_unwatched(const RankReport& report, Instant now);
  void on_verdict(RankHung hung);
  void ask(HoldWish wish, const std::vector<RankId>& ranks, const std::string& who);
  void update(RankId rank);
  bool is_stopping(RankId rank) const;
  std::string what_follows(RankId rank, Standstill standstill) const;
  void tell(JobEvent event) { handlers_.decide(PeopleTold{.event = std::move(event)}); }

  const JobCore& core_;
  HangWatchHandlers handlers_;
  ProgressWatch watch_;
  std::map<RankId, Told> told_;
  std::map<MeshId, Instant> runs_since_;
  std::set<MeshId> unwatched_;  // and told so
  Scope scope_;
};

}  // namespace monarch
