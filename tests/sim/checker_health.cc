// The checker's account of the supervisor's judgement of hosts: nobody is declared too early (I13, I14) or never (I12).

#include <algorithm>

#include "tests/sim/checker.h"
#include "tests/sim/guard.h"
#include "tests/sim/supervisor.h"
#include "tests/sim/world.h"
#include "tests/supervisor/core/state_parts.h"
#include "transport/base/text.h"

namespace monarch::sim {

namespace {

// Doubt of itself at its most, two holds after others fell silent together, and what a supervisor that returned waits.
constexpr Duration kDetectionBound = Duration::seconds(75);

}  // namespace

void Checker::arrives(const Up& message) {
  if (std::holds_alternative<Beat>(message.message)) ++account(message.host).unread;
}

void Checker::reads(const Up& message) {
  HostAccount& mine = account(message.host);
  if (std::holds_alternative<Hello>(message.message)) mine.heard = true;
  const auto* beat = std::get_if<Beat>(&message.message);
  if (beat == nullptr) return;
  if (mine.unread > 0) --mine.unread;
}

// After it was told from one that came late by a link that had been replaced.
void Checker::counts(HostId host, const Beat& beat) {
  heard_.heard(host, beat);
  const auto sent = account(host).beats.find(beat.seq);
  if (sent != account(host).beats.end()) hangs_.counts(host, sent->second);
  if (beat.loop_age > world_.scenario.spec.supervision.suspect_after) return;
  HostAccount& mine = account(host);
  const bool gone_before = now() - mine.last_good_at >= world_.scenario.spec.supervision.lease;
  if (mine.last_good_beat && gone_before) mine.back_at = now();
  mine.last_good_beat = world_.supervisor_clock.local(now());
  mine.last_good_at = now();
}

// I12: who says nothing is declared, however slow the supervisor thinks that it is itself, and after a few silences of
// many at once.
void Checker::watch_detection() {
  world_.scheduler.after(Duration::seconds(1), [this] { watch_detection(); });
  const Supervisor* supervisor = world_.guard->supervisor();
  if (supervisor == nullptr || !supervisor->open() || supervisor->life()->frozen()) return;
  watch_hangs(supervisor->core());
  const JobState& state = supervisor->core().state();
  for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
    const HostState& host = state_parts::host(state, HostId(i));
    if (host.phase != HostPhase::kJoined || host.shutdown_told) continue;
    const Instant since = std::max({hosts_[i].joined_at, hosts_[i].last_good_at, goes_on_since_});
    check(now() - since < kDetectionBound, "I12",
          text("host ", i, " has said nothing for ", to_text(now() - since), ", and nobody has declared it lost"));
  }
}

// I23: of a rank that lives only its own host tells. Of one that waits, whoever has its place by now may, and nothing
// follows.
void Checker::believes(HostId teller, const RankReport& report) {
  const JobState& state = world_.guard->supervisor()->core().state();
  const bool lives_on =
      !is_of_spec(report.process.rank) || lives(state_parts::member(state, report.process.rank).stage);
  if (!lives_on) return;
  const auto started = started_.find(report.process);
  check(started != started_.end() && started->second == teller, "I23",
        text("what host ", teller.value(), " says of rank ", report.process.rank.mesh.value(), "/",
             report.process.rank.rank.value(), " is believed"));
}

// To a successor, on the word of its hosts: there is none, and one host alone may say that there is.
void Checker::gives_way(const std::vector<HostId>& hosts) {
  check(world_.scenario.insider && hosts.size() == 1, "term",
        text("the supervisor leaves the job, since one of ", hosts.size(), " hosts speaks of a later term"));
  ++deaths_;
}

void Checker::judges(const HostVerdict& verdict) {
  if (verdict.health != HostHealth::kSilent && verdict.health != HostHealth::kSuspect) return;
  const HostAccount& mine = account(verdict.host);
  const Supervision& policy = world_.scenario.spec.supervision;
  check(world_.scenario.faults.any, "I11", text("host ", verdict.host.value(), " is suspected and nothing is wrong"));
  check(mine.unread == 0, "I13", text("host ", verdict.host.value(), " is judged before its beats were read"));
  Host& host = world_.host(verdict.host);
  const bool well =
      settled() && !host.off && host.worker() != nullptr && host.worker()->keeper_alive() && !host.suffers();
  check(!well, "I15", text("host ", verdict.host.value(), " is suspected, though all has been well for a while"));
  const Instant now = world_.supervisor_clock.local(world_.scheduler.now());
  // A host that beats like a clock is suspected after two beats that did not come.
  const Duration doubted = std::min(policy.suspect_after, policy.heartbeat * 2);
  const Duration least = verdict.health == HostHealth::kSilent ? policy.lost_after : doubted;
  check(
      !mine.last_good_beat || now - *mine.last_good_beat >= least, "I13",
      text("host ", verdict.host.value(), " is called silent ", to_text(now - *mine.last_good_beat), " after a beat"));
}

// I14: of hosts that fell silent within two heartbeats of each other none is declared before two leases, where they are
// 40 % of all, and two at least.
void Checker::judges_together(const std::vector<HostVerdict>& verdicts, const Liveness& liveness) const {
  const Supervision& policy = world_.scenario.spec.supervision;
  for (const HostVerdict& verdict : verdicts) {
    const Instant since = hosts_[verdict.host.value()].last_good_at;
    if (verdict.health != HostHealth::kSilent || now() - since >= policy.lease * 2) continue;
    std::size_t expected = 0;
    std::size_t together = 0;
    for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
      if (liveness.health(HostId(i)) == HostHealth::kUnknown) continue;
      ++expected;
      const Instant other = hosts_[i].last_good_at;
      // Before that nobody listened.
      const bool counted = other > goes_on_since_ && other > hosts_[i].joined_at;
      together += counted && other >= since - policy.heartbeat && other <= since + policy.heartbeat ? 1U : 0U;
    }
    check(together < 2 || together * 5 < expected * 2, "I14",
          text("host ", verdict.host.value(), " is given up after ", to_text(now() - since), ", and ", together, " of ",
               expected, " hosts fell silent with it"));
  }
}

}  // namespace monarch::sim
