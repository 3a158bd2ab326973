// As supervisor/loop/workers.cc: what posts wish goes to the ClaimDesk, whose answers go behind the roster.

#include <utility>

#include "tests/sim/checker.h"
#include "tests/sim/posts.h"
#include "tests/sim/supervisor.h"
#include "tests/sim/world.h"
#include "tests/supervisor/core/state_parts.h"

namespace monarch::sim {

void Supervisor::open_claims() {
  if (world_.posts == nullptr) return;
  RosterDeskOptions roster{.send = [this](HostId host, const Roster& told) { return send_roster(host, told); },
                           .when_durable = [this](std::function<void()> then) { when_durable(std::move(then)); },
                           .at = [this](Instant when, std::function<void()> then) { at(when, std::move(then)); },
                           .now = [this] { return now(); },
                           .tell_people = {},
                           .post_ended = {},
                           .told = [this](HostId host) { claims_->told(host); },
                           .returned = {}};
  if (core_->state().phase != JobPhase::kNew) roster.returned = now();
  roster_.emplace(*core_, std::move(roster));
  ClaimDeskOptions claims{.decide = [this](const CoreEvent& event) { hear_claim(event); },
                          .when_durable =
                              [this](std::function<void()> then) {
                                if (world_.mutant(Mutant::kClaimBeforeDurable)) return then();
                                when_durable(std::move(then));
                              },
                          .at = [this](Instant when, std::function<void()> then) { at(when, std::move(then)); },
                          .now = [this] { return now(); },
                          .send = [this](HostId host, const ClaimAnswer& told) { answer(host, told); },
                          .roster_of = [this](HostId host) { return roster_->told_to(host); }};
  claims_.emplace(*core_, std::move(claims));
}

void Supervisor::at(Instant when, std::function<void()> then) {
  world_.scheduler.at(world_.supervisor_clock.real(when),
                      [life = life_, then = std::move(then)] { life->timer(then); });
}

// Of its way nothing is of interest here, but that it may be lost.
bool Supervisor::send_roster(HostId host, const Roster& roster) {
  if (!world_.network->connected(host)) return false;
  if (!world_.random.permille(world_.faults().drop)) world_.posts->hears_roster(host, roster);
  return true;
}

void Supervisor::hear_post(HostId host, const Beat& beat) {
  PostReport report = beat.content.post.value_or(PostReport{});
  if (world_.mutant(Mutant::kClaimImpatient) && report.start != 0) report.start = 1;
  if (world_.mutant(Mutant::kClaimKept)) {
    for (const SlotClaim& claim : core_->state().claims.claims) report.owners.push_back(claim.holder.owner);
  }
  world_.posts->said_at(host, world_.host(host).clock.real(beat.sent_at));
  roster_->hear(host, report);
  claims_->hear(host, report, beat.sent_at);
}

void Supervisor::hear_claim(CoreEvent event) {
  auto* claimed = std::get_if<SlotsClaimed>(&event);
  if (claimed != nullptr && world_.mutant(Mutant::kClaimHalfGranted) && claimed->claim.ranks.size() > 1) {
    claimed->claim.ranks.pop_back();
  }
  (void)decide(event);
}

// A planted bug: what the journal says of them is not believed.
void Supervisor::forget_claims() {
  SlotsLetGo all{.claims = {}, .why = "a supervisor came back"};
  for (const SlotClaim& claim : core_->state().claims.claims) all.claims.push_back(claim.id);
  if (!all.claims.empty()) (void)decide(all);
}

// Another: a generation that follows is started without what was claimed for it.
void Supervisor::start_bare(std::vector<Action>& actions) const {
  for (Action& action : actions) {
    auto* start = std::get_if<SendStart>(&action);
    if (start == nullptr || start->message.generation.counter < 2) continue;
    start->message.env.erase("CLAIM");
    for (RankStart& rank : start->message.ranks) rank.env.erase("CLAIM");
  }
}

void Supervisor::answer(HostId host, ClaimAnswer told) {
  const auto& all = core_->state().claims.claims;
  if (world_.mutant(Mutant::kSlotGivenTwice) && !told.granted.ranks.empty()) {
    told.granted.ranks.front() = all.front().ranks.front();
  }
  world_.note("grants", host.value(), told.owner.value(), told.granted.number, told.granted.ranks.size());
  world_.checker->answers(host, told, *core_);
  send(host, told);
}

}  // namespace monarch::sim
