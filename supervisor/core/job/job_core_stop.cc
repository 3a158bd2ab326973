// How a job ends: its verdict, its stages from the last to the first, its workers.

#include <algorithm>
#include <optional>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/recovery/lifetime.h"
#include "supervisor/core/state/gang_life.h"
#include "supervisor/core/state/job_life.h"
#include "transport/base/assert.h"
#include "transport/base/exit_code.h"
#include "transport/base/json.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Of a failed gang's ranks; their number is told besides.
constexpr std::uint32_t kMostRanksTold = 256;

bool is_parked_whole(const MeshState& mesh) {
  return std::all_of(mesh.gangs.begin(), mesh.gangs.end(), [](const GangState& gang) { return is_parked(gang.phase); });
}

// Nothing of its work is done.
Verdict blame_parked(const std::string& mesh) {
  Verdict verdict;
  verdict.exit_code = kExitLost;
  verdict.cause.kind = CauseKind::kHost;
  verdict.cause.mesh = mesh;
  verdict.cause.summary = text("no gang of ", mesh, " is left: all of them are parked");
  verdict.cause.rule = "shrink.min: fail";
  verdict.reason = verdict.cause.summary;
  return verdict;
}

}  // namespace

// The first verdict stands; what fails afterwards is its consequence.
void JobCore::fail_job(Verdict verdict) {
  if (!state_.verdict) state_.verdict = std::move(verdict);
  forget_deadlines();
  if (state_.phase >= JobPhase::kStopping) return;
  to(state_, JobPhase::kStopping);
  if (state_.verdict->exit_code != 0) {
    const bool asked = state_.verdict->cause.kind == CauseKind::kRequest;
    emit(event_of(EventKind::kJobStopping, asked ? Severity::kInfo : Severity::kWarning,
                  text("stopping: ", state_.verdict->reason)));
  }
  stop_gangs();
}

void JobCore::forget_deadlines() {
  state_.start_deadline = Instant::never();
  state_.time_deadline = Instant::never();
  state_.lifetime_deadline = Instant::never();
  state_.lifetime_warning = Instant::never();
  state_.foreseen_deadline = Instant::never();
}

// Of the highest stage that has not ended: the others wait until it has. A kill waits for nothing.
void JobCore::stop_gangs() {
  stop_crews();
  each_gang([this](MeshId m, GangId g) {
    const auto phase = gang(m, g).phase;
    const bool runs_nothing = waits(phase) || is_parked(phase);
    if (runs_nothing) stop_gang(m, g, 0, Duration::zero());
  });
  const std::optional<std::uint32_t> stage = highest_stage();
  each_gang([&](MeshId m, GangId g) {
    if (!state_.kill_ordered && stages_.stage_of(m) != stage) return;
    const StopPolicy& policy = mesh_spec(m).stop;
    const bool failing = is_failing(gang(m, g).phase);
    if (failing && !state_.kill_ordered) return;  // it is being stopped already, with after_failure
    stop_gang(m, g, policy.signal, state_.kill_ordered ? Duration::zero() : grace_left(policy.grace));
  });
}

// Of those with a gang that has not ended.
std::optional<std::uint32_t> JobCore::highest_stage() const {
  std::optional<std::uint32_t> highest;
  for (std::uint32_t m = 0; m < state_.meshes.size(); ++m) {
    const auto& gangs = state_.meshes[m].gangs;
    const bool ended = std::all_of(gangs.begin(), gangs.end(), [](const GangState& g) { return has_ended(g.phase); });
    if (!ended) highest = std::max(highest.value_or(0), stages_.stage_of(MeshId(m)));
  }
  return highest;
}

// The next stage, once the one above it has ended.
void JobCore::check_stopping() {
  while (const std::optional<std::uint32_t> stage = highest_stage()) {
    bool told = true;
    each_gang([&](MeshId m, GangId g) {
      const auto phase = gang(m, g).phase;
      told = told && (stages_.stage_of(m) != *stage || !runs(phase));
    });
    if (told) return;
    stop_gangs();
  }
}

void JobCore::check_running() {
  if (state_.phase != JobPhase::kStarting) return;
  for (std::uint32_t m = 0; m < state_.meshes.size(); ++m) {
    if (!is_ready(basis_, MeshId(m))) return;
  }
  to(state_, JobPhase::kRunning);
  state_.start_deadline = Instant::never();
  if (spec_.lifetime.max < Duration::forever()) {
    state_.lifetime_deadline = now_ + spec_.lifetime.max;
    state_.lifetime_warning = state_.lifetime_deadline - warning_before(spec_.lifetime.max);
  }
  emit(event_of(EventKind::kJobRunning, Severity::kInfo, text(options_.job_id, ": every mesh is ready")));
}

void JobCore::check_ended() {
  check_foreseen();
  if (state_.phase == JobPhase::kRunning) {
    bool all_done = true;
    each_gang([&](MeshId m, GangId g) {
      const auto phase = gang(m, g).phase;
      all_done = all_done && (mesh_spec(m).sidecar || is_through(phase));
    });
    if (!all_done) return;
    Verdict verdict;
    verdict.outcome = Outcome::kSucceeded;
    verdict.exit_code = 0;
    verdict.reason = "every rank ended with exit code 0" + parked_text(basis_);
    for (std::size_t m = 0; m < state_.meshes.size(); ++m) {
      if (!spec_.meshes[m].sidecar && is_parked_whole(state_.meshes[m])) verdict = blame_parked(spec_.meshes[m].name);
    }
    fail_job(std::move(verdict));
  }
  if (state_.phase == JobPhase::kStopping) {
    check_stopping();
    if (highest_stage() || any_crew_lives()) return;
    to(state_, JobPhase::kDraining);
    state_.drain_deadline = now_ + drain_patience(basis_);
  }
  if (state_.phase == JobPhase::kDraining) {
    if (state_.kill_ordered) state_.drain_deadline = std::min(state_.drain_deadline, now_ + limits::kKillDeadline);
    if (now_ < state_.drain_deadline && last_words_.any_comes()) return;
    last_words_.give_up_all();
    state_.drain_deadline = Instant::never();
    to(state_, JobPhase::kShuttingDown);
    shut_down_hosts();
  }
  if (state_.phase == JobPhase::kShuttingDown) finish();
}

void JobCore::finish() {
  for (const HostState& host : state_.hosts) {
    if (!is_cold(host.phase) && !is_out(host.phase)) return;
  }
  MONARCH_ASSERT(state_.verdict.has_value());
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (state_.hosts[i].phase == HostPhase::kLost || state_.hosts[i].wedged || state_.hosts[i].unproven) {
      state_.verdict->left_behind.push_back(hosts_[i].name);
    }
  }
  tell_failed_hosts(basis_, *state_.verdict);
  to(state_, JobPhase::kEnded);
  const bool failed = state_.verdict->outcome == Outcome::kFailed;
  emit(event_of(EventKind::kJobEnded, failed ? Severity::kError : Severity::kInfo,
                text("ended with exit code ", state_.verdict->exit_code, ": ", state_.verdict->reason)));
  actions_.emplace_back(FinishJob{*state_.verdict});
}

void JobCore::stop_gang(MeshId mesh, GangId g, std::int32_t signal, Duration grace) {
  GangState& state = gang(mesh, g);
  state.progress_deadline = Instant::never();  // what is being stopped makes none
  bool begins = false;
  switch (state.phase) {
    case GangPhase::kWaiting:
    case GangPhase::kReserving:
    case GangPhase::kParked:  // no process was started
      to(state, GangPhase::kStopped);
      return crews_.forget({mesh, g});
    case GangPhase::kStarting:
    case GangPhase::kRunning:
      to(state, GangPhase::kStopping);
      begins = true;
      break;
    case GangPhase::kFailing:
    case GangPhase::kStopping: break;  // said again, with a shorter grace or after a crash of the supervisor
    case GangPhase::kDone:
    case GangPhase::kFailed:
    case GangPhase::kStopped: return;
  }
  if (begins && grace > Duration::zero()) tell_stopping(mesh, g, signal, grace);
  (void)crews_.stop({mesh, g}, {.signal = signal,
                                .grace = grace,
                                .deadline = now_ + grace + limits::kKillDeadline + kStopMargin,
                                .again = true});
  check_gang(mesh, g);
}

void JobCore::tell(MeshId mesh, GangId g, const Json& event) {
  for (const HostId id : placement_.hosts_of(mesh, g)) {
    Tell message{.ranks = {}, .generation = basis_.crew(mesh, g).generation, .json = to_json(event)};
    for (const RankId& r : placement_.ranks_of(mesh, g, id)) {
      if (basis_.member(r).stage == RankStage::kRunning) message.ranks.push_back(r);
    }
    if (!message.ranks.empty()) actions_.emplace_back(SendTell{id, std::move(message)});
  }
}

// As a keeper says it that stops a rank by itself (monarch-rank(7)).
void JobCore::tell_stopping(MeshId mesh, GangId g, std::int32_t signal, Duration grace) {
  tell(mesh, g,
       Json::object(
           {{"v", 1}, {"event", "stopping"}, {"signal", signal}, {"grace_milliseconds", grace.count_milliseconds()}}));
}

// Ranks of other gangs go on; those that talk to the failed one may want to know before their connections say so.
void JobCore::tell_peers_of(MeshId mesh, GangId g, const char* what) {
  const RankRange lost = placement_.range_of(mesh, g);
  Json ranks = Json::array();
  for (std::uint32_t i = 0; i < std::min(lost.count, kMostRanksTold); ++i) ranks.append(lost.first + i);
  const Json event = Json::object({{"v", 1},
                                   {"event", what},
                                   {"mesh", mesh_spec(mesh).name},
                                   {"gang", g.value()},
                                   {"generation", basis_.crew(mesh, g).generation.counter},
                                   {"rank_count", lost.count},
                                   {"ranks", std::move(ranks)}});
  each_gang([&](MeshId other, GangId other_gang) {
    const bool itself = other == mesh && other_gang == g;
    if (itself || !is_running(gang(other, other_gang).phase)) return;
    tell(other, other_gang, event);
    if (what == std::string_view("peer_lost")) signal_peer(other, other_gang);
  });
}

// supervision.on_peer_lost.
void JobCore::signal_peer(MeshId mesh, GangId g) {
  const int number = mesh_spec(mesh).supervision.on_peer_lost;
  if (number == 0) return;
  for (const HostId id : placement_.hosts_of(mesh, g)) {
    Signal message{.ranks = {}, .generation = basis_.crew(mesh, g).generation, .number = number};
    for (const RankId& r : placement_.ranks_of(mesh, g, id)) {
      if (basis_.member(r).stage == RankStage::kRunning) message.ranks.push_back(r);
    }
    if (!message.ranks.empty()) actions_.emplace_back(SendSignal{id, std::move(message)});
  }
}

}  // namespace monarch
