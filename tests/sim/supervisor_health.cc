// As supervisor/workers/worker_links.cc: when the BeatBook looks at its hosts again, and words of later terms.

#include <algorithm>

#include "tests/sim/checker.h"
#include "tests/sim/supervisor.h"
#include "tests/sim/world.h"
#include "tests/supervisor/core/state_parts.h"

namespace monarch::sim {

// Each verdict of one look is judged beside the others, before anything follows from it.
void Supervisor::look(Instant due, Instant now) {
  Liveness after = liveness();
  after.ran_late(now - due, now);
  world_.checker->judges_together(after.turn(now), after);
  book_->look(due, now);
}

void Supervisor::health_turn() {
  const Instant now_is = now();
  if (world_.mutant(Mutant::kSleepThroughStall)) {
    const Duration step = core_->spec().supervision.heartbeat / 2;
    for (Instant t = last_health_turn_.value_or(now_is) + step; t < now_is; t = t + step) look(t, t);
    look(now_is, now_is);
  } else {
    look(std::min(look_due_, now_is), now_is);
  }
  last_health_turn_ = now_is;
  if (world_.mutant(Mutant::kNoBrake)) judge_without_brake();
  watch_health();
}

void Supervisor::watch_health() {
  look_due_ = book_->next_look();
  health_.set(look_due_);
}

void Supervisor::watch_claims() { claims_due_.set(book_->next_claim()); }

void Supervisor::on_later_term(HostId host, Term term) {
  const HostPhase phase = state_parts::host(core_->state(), host).phase;
  const bool counts = phase == HostPhase::kLaunched || phase == HostPhase::kJoined;
  book_->on_later_term(host, term, now());
  if (counts && world_.mutant(Mutant::kBelieveAnyTerm)) {
    world_.checker->gives_way(jury(core_->state()));
    return leave(75);
  }
  watch_claims();
}

}  // namespace monarch::sim
