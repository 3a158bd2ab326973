// BeatBook, who is heard and who is believed: silence, and words of another term.

#include <algorithm>
#include <utility>

#include "supervisor/core/beats/beat_book.h"
#include "supervisor/core/health/fence.h"
#include "transport/base/text.h"

namespace monarch {

void BeatBook::expect_again(HostId host, Instant now) {
  const Supervision& supervision = core_.spec().supervision;
  // J3: whatever the one before us granted, it may have granted a moment ago.
  peers_[host.value()].grants_until = fence_of(now, std::max(supervision.lease, supervision.orphan_ttl));
  const Duration patience = supervision.lease * 2 - supervision.lost_after;
  liveness_.expect(host, now + std::max(patience, Duration::zero()));
}

void BeatBook::stop_expecting(HostId host) {
  liveness_.stop_expecting(host);
  claims_.forget(host);
}

void BeatBook::tell_health(const HostVerdict& verdict) {
  if (verdict.health != HostHealth::kSilent) {
    (void)handlers_.decide(HostDoubted{
        .host = verdict.host, .heard_again = verdict.health == HostHealth::kFresh, .silence = verdict.silence});
  }
  if (handlers_.on_health) handlers_.on_health(verdict);
}

void BeatBook::look(Instant due, Instant now) {
  liveness_.ran_late(now - due, now);
  for (const HostVerdict& verdict : liveness_.turn(now)) {
    tell_health(verdict);
    if (verdict.health != HostHealth::kSilent) continue;
    if (claims_.claimed_by(verdict.host)) {
      distrust(verdict.host);
    } else {
      tell_steps(verdict.host);
      (void)handlers_.decide(
          HostSilent{.host = verdict.host, .silence = verdict.silence, .grants_until = grants_until(verdict.host)});
    }
  }
  tell_hold();
}

// Of verdicts that are held, once.
void BeatBook::tell_hold() {
  const auto& hold = liveness_.hold();
  if (!hold || hold->until == hold_told_) return;
  hold_told_ = hold->until;
  (void)handlers_.decide(HostsHeld{.silent = static_cast<std::uint32_t>(hold->silent),
                                   .of = static_cast<std::uint32_t>(hold->of),
                                   .until = hold->until});
}

// A host alone may be out of its mind, or somebody else's: its word ends its own part in the job, and not the job.
void BeatBook::on_later_term(HostId host, Term term, Instant now) {
  const auto phase = core_.facts().host(host).phase;
  if (!is_launched(phase) && !is_joined(phase)) return;
  if (claims_.claim(host, term, now)) {
    if (handlers_.on_claim) handlers_.on_claim(host, term);
    if (handlers_.has_successor && handlers_.has_successor()) return handlers_.on_superseded(term);
  }
  if (claims_.are_believed(jury(core_.state()))) handlers_.on_superseded(term);
}

void BeatBook::look_at_claims(Instant now) {
  for (const HostId host : claims_.alone(now)) distrust(host);
}

void BeatBook::distrust(HostId host) {
  const Term term = claims_.claimed_by(host).value_or(term_);
  if (handlers_.has_successor && handlers_.has_successor()) return handlers_.on_superseded(term);
  claims_.forget(host);
  tell_steps(host);
  (void)handlers_.decide(
      HostDistrusted{.host = host,
                     .why = text("it speaks for a supervisor of term ", term.value(),
                                 ", of which nobody else has heard (this is term ", term_.value(), ")"),
                     .grants_until = grants_until(host)});
}

}  // namespace monarch
