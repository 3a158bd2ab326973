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

namespace {

// For the ends that a failed gang's hosts could not tell meanwhile: a worker dials again within this, and its first
// beat tells all.
constexpr Duration kEndsArriveWithin = Duration::seconds(1);

}  // namespace

void JobCore::on(const SupervisorReturned& event) {
  MONARCH_ASSERT_BECAUSE(event.term > state_.term, "I7: terms only grow");
  state_.term = event.term;
  if (state_.boot_id != event.boot_id) change_clock(event);
  if (state_.phase == JobPhase::kEnded) return;
  state_.returned_at = now_;
  std::size_t awaited = 0;
  for (HostState& host : state_.hosts) {
    host.awaited = is_joined(host.phase);
    host.doubted = false;  // all have until now
    awaited += host.awaited ? 1 : 0;
  }
  state_.adopting = awaited > 0;
  state_.unheard.clear();
  const std::size_t ranks = living_ranks();
  emit(event_of(EventKind::kSupervisorReturned, Severity::kWarning,
                text("the supervisor ended unexpectedly and was started again as term ", event.term.value(), "; ",
                     ranks, ranks == 1 ? " rank" : " ranks", " on ", awaited, awaited == 1 ? " host" : " hosts",
                     " are taken over as they are")));
  extend_deadlines();
  return_to_hosts();
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
  for (HostState& host : state_.hosts) host.cold_at = std::max(host.cold_at, host.fence);
}

void JobCore::return_to_hosts() {
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    HostState& host = state_.hosts[i];
    host.shutdown_told = false;
    switch (host.phase) {
      case HostPhase::kCold:
      case HostPhase::kJoined:
      case HostPhase::kEnded:
      case HostPhase::kLost: break;
      case HostPhase::kLaunched:
        host.deadline = now_ + call_back_deadline(basis_);
        host.late_before = state_.late;
        break;
      case HostPhase::kLaunching: {
        // Its key was on the way to the supervisor that is gone, and can never be let in: it is ended, and launched
        // once more.
        const bool wanted = !basis_.starts_nothing();
        destroy(HostId(i));
        host.launch_again = wanted;
        break;
      }
      case HostPhase::kDestroying: {
        const bool again = host.launch_again;
        destroy(HostId(i));  // the order may never have left
        host.launch_again = again;
        break;
      }
    }
  }
  if (state_.phase == JobPhase::kShuttingDown) shut_down_hosts();
}

std::size_t JobCore::living_ranks() const {
  std::size_t ranks = 0;
  for (std::uint32_t m = 0; m < state_.meshes.size(); ++m) {
    for (const Crew& crew : state_.crews[m]) {
      ranks += static_cast<std::size_t>(std::count_if(crew.members.begin(), crew.members.end(),
                                                      [](const CrewMember& member) { return lives(member.stage); }));
    }
  }
  return ranks;
}

// Every host that was connected before has spoken to us, and told what runs there; or it is out.
void JobCore::check_adopted() {
  std::size_t hosts = 0;
  bool awaits = false;
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    HostState& host = state_.hosts[i];
    if (!is_joined(host.phase) && std::exchange(host.awaited, false)) state_.unheard.emplace_back(i);
    awaits = awaits || host.awaited;
    hosts += is_joined(host.phase) ? 1U : 0U;
  }
  if (awaits) return;
  state_.adopting = false;
  std::vector<std::string> unheard;
  for (const HostId id : std::exchange(state_.unheard, {})) unheard.push_back(hosts_[id.value()].name);
  const std::size_t ranks = living_ranks();
  emit(event_of(EventKind::kSupervisorAdopted, unheard.empty() ? Severity::kInfo : Severity::kWarning,
                text(hosts, hosts == 1 ? " host has" : " hosts have", " answered within ",
                     to_text(Duration::milliseconds((now_ - state_.returned_at).count_milliseconds())),
                     unheard.empty() ? "" : text(", lost before they did: ", join(unheard, ", ")), "; ", ranks,
                     ranks == 1 ? " rank goes" : " ranks go", " on")));
}

// How long ends of a failed gang are collected: those that could not be told while we were away come with the first
// beats.
Duration JobCore::cause_window() const {
  constexpr Duration kCauseWindow = Duration::milliseconds(200);
  const Instant arrived = state_.returned_at + kEndsArriveWithin;
  return now_ < arrived && state_.returned_at > Instant() ? std::max(kCauseWindow, arrived - now_) : kCauseWindow;
}

// Not proven to have ended in time: what of it lives there ends by itself, and the host is out.
void JobCore::not_launched_again(HostId id) {
  if (!std::exchange(host(id).launch_again, false)) return;
  host_failed(
      id, {.kind = LaunchFailureKind::kOther,
           .phase = "start",
           .elapsed = now_ - host(id).launched_at,
           .message = "it was being launched when the supervisor ended, and what of that is there could not be ended",
           .words = {},
           .again = {}});
}

}  // namespace monarch
