// A supervisor that comes back: it takes its hosts and ranks over as they are. Nothing that lives is stopped or started
// by this; what was said and lost is said again by outstanding(), at the same generation, once a host's beat shows that
// it is missing.

#include <algorithm>
#include <utility>

#include "supervisor/core/health/fair_deadline.h"
#include "supervisor/core/job/job_core.h"
#include "transport/base/assert.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

void JobCore::on(const SupervisorReturned& event) {
  MONARCH_ASSERT_BECAUSE(event.term > state_.term, "I7: terms only grow");
  state_.term = event.term;
  if (state_.boot_id != event.boot_id) change_clock(event);
  if (state_.phase == JobPhase::kEnded) return;
  adoption_.begin();
  extend_deadlines();
  hosts_.returned();
  end_.foresee_without_answer();
  waits_due_ = true;
}

void JobCore::on(const StoodStill& event) {
  const GiveBack give_back{event.gap};
  each_time(give_back);
  state_.late = state_.late + event.gap;
  emit(event_of(EventKind::kSupervisorStoodStill, Severity::kInfo,
                text("the supervisor did not run for ", to_text(Duration::milliseconds(event.gap.count_milliseconds())),
                     ": it was stopped, or its machine slept or had too much to do; nobody is blamed for that time")));
}

// What nobody could say or hear while we were away is not held against anybody. Limits of the job's own time stay as
// they were.
void JobCore::extend_deadlines() {
  end_.returned();
  drills_.returned();
  last_words_.returned();
  crews_.returned();
  each_gang([this](MeshId m, GangId g) {
    GangState& state = gang(m, g);
    not_before(state.cause_deadline, now_ + kEndsArriveWithin);
    if (!state.was_ready) not_before(state.progress_deadline, now_ + std::min(spec_.start_timeout, kAnswersWithin));
  });
}

// The machine was started again, and its boot clock with it.
void JobCore::change_clock(const SupervisorReturned& event) {
  state_.boot_id = event.boot_id;
  const MoveClock move{.by = now_ - (event.last_seen + event.away), .last_seen = event.last_seen, .now = now_};
  each_time(move);
  hosts_.clock_changed();
}

}  // namespace monarch
