#include "supervisor/core/gangs/gangs.h"

#include <algorithm>
#include <utility>

#include "supervisor/core/crew/words.h"
#include "supervisor/core/facts/blame.h"
#include "supervisor/core/facts/claims.h"
#include "supervisor/core/facts/gangs.h"
#include "supervisor/core/spec/hostlist.h"
#include "supervisor/core/state/gang_life.h"
#include "transport/base/exit_code.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// ", from step 190: 4 steps are done again"
std::string from_checkpoint(const GangState& state) {
  if (!state.commits.resumed) return "";
  const std::uint64_t step = state.commits.resumed->step;
  const std::uint64_t again = std::max(state.furthest.value_or(0), step) - step;
  return text(", from step ", step,
              again == 0 ? "" : text(": ", again, again == 1 ? " step is" : " steps are", " done again"));
}

void begin_generation(const CoreFacts& job, GangState& state, bool is_claimed) {
  state.was_ready = false;
  state.furthest = std::max(state.furthest, state.reached);
  state.reached.reset();
  state.first_step.reset();
  state.caught_up = false;
  state.ends.clear();
  state.cause_decided = false;
  state.host_lost = false;
  state.hung.reset();
  state.fenced_by.clear();
  state.hung_because.clear();
  state.progress_deadline = recovers(state) || is_claimed ? job.now + job.spec.start_timeout : Instant::never();
  state.late_before = job.state.late;
}

}  // namespace

void Gangs::reserve(MeshId mesh, GangId g) {
  if (!fence_done(basis_, mesh, g)) return;
  const std::vector<HostId> hosts = basis_.placement.hosts_of(mesh, g);
  const bool free = std::all_of(hosts.begin(), hosts.end(), [&](HostId id) {
    return is_joined(basis_.host(id).phase) && basis_.may_serve(id) &&
           runs_beside(basis_, id, std::pair(mesh, g)).empty();
  });
  if (!free) return;
  GangState& state = gang(mesh, g);
  to(state, GangPhase::kReserving);
  begin_generation(basis_, state, basis_.mesh(mesh).idle);
  crews_.begin({mesh, g}, hosts, Instant::never());
}

void Gangs::start(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  to(state, GangPhase::kStarting);
  state.commits.resumed = state.commits.newest;
  for (const RankId& id : basis_.placement.ranks_of(mesh, g)) {
    last_words_.forget(id);
    rank(id) = RankState{};
  }
  crews_.start({mesh, g});
  std::vector<std::string> names;
  for (const HostId id : basis_.placement.hosts_of(mesh, g)) {
    names.push_back(basis_.name_of(id));
  }
  state.started_at = basis_.now;
  EventDetails details = {{"hosts", fold_hostlist(names)}};
  if (state.commits.resumed) details.emplace_back("from_step", text(state.commits.resumed->step));
  if (state.furthest) details.emplace_back("furthest", text(*state.furthest));
  basis_.say_of_gang(mesh, g, EventKind::kGangStarting, Severity::kInfo,
                     text("is starting, generation ", basis_.crew(mesh, g).generation.counter, from_checkpoint(state)),
                     details);
}

void Gangs::give_up_reservation(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  if (!is_reserving(state.phase)) return;
  to(state, GangPhase::kWaiting);
  crews_.forget({mesh, g});
}

bool Gangs::give_up_sidecars(MeshId mesh, HostId where, const std::string& what) {
  bool given_up = false;
  for (std::uint32_t g = 0; basis_.mesh(mesh).sidecar && g < mine_[mesh.value()].gangs.size(); ++g) {
    GangState& state = gang(mesh, GangId(g));
    // Others have begun once it was ready: it is not started again, and decides nothing.
    const bool waits_here = is_reserving(state.phase) && basis_.placement.range_of(mesh, GangId(g), where).count > 0;
    if (!waits_here || is_needed(basis_.mesh(mesh), state)) continue;
    to(state, GangPhase::kFailed);
    crews_.forget({mesh, GangId(g)});
    state.failure.reset();
    basis_.say_of_gang(mesh, GangId(g), EventKind::kGangFailed, Severity::kWarning,
                       text("is given up: ", basis_.name_of(where), ": ", what, " [", kDecidesNothing, "]"));
    basis_.waits_due = given_up = true;
  }
  return given_up;
}

void Gangs::stop(MeshId mesh, GangId g, std::int32_t signal, Duration grace) {
  GangState& state = gang(mesh, g);
  state.progress_deadline = Instant::never();  // what is being stopped makes none
  bool begins = false;
  switch (state.phase) {
    case GangPhase::kWaiting:
    case GangPhase::kReserving:
    case GangPhase::kParked:
    case GangPhase::kIdle:  // no process was started
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
  if (begins && grace > Duration::zero()) tell_stopping(basis_, mesh, g, signal, grace);
  (void)crews_.stop({mesh, g}, {.signal = signal,
                                .grace = grace,
                                .deadline = basis_.now + grace + limits::kKillDeadline + kStopMargin,
                                .again = true});
  look(mesh, g);
}

void Gangs::stop_highest() {
  basis_.each_gang([this](MeshId m, GangId g) {
    const auto phase = gang(m, g).phase;
    const bool runs_nothing = waits(phase) || is_parked(phase) || is_idle(phase);
    if (runs_nothing) stop(m, g, 0, Duration::zero());
  });
  const std::optional<std::uint32_t> stage = highest_stage(basis_);
  basis_.each_gang([&](MeshId m, GangId g) {
    if (!basis_.state.kill_ordered && basis_.stages.stage_of(m) != stage) return;
    const StopPolicy& policy = basis_.mesh(m).stop;
    const bool failing = is_failing(gang(m, g).phase);
    if (failing && !basis_.state.kill_ordered) return;  // it is being stopped already, with after_failure
    stop(m, g, policy.signal, basis_.state.kill_ordered ? Duration::zero() : grace_left(basis_, policy.grace));
  });
}

bool Gangs::is_stage_due() const {
  const std::optional<std::uint32_t> stage = highest_stage(basis_);
  bool runs_on = false;
  basis_.each_gang([&](MeshId m, GangId g) {
    runs_on = runs_on || (basis_.stages.stage_of(m) == stage && runs(basis_.gang(m, g).phase));
  });
  return runs_on;
}

void Gangs::restart(MeshId mesh, GangId g, const std::string& who) {
  GangState& state = gang(mesh, g);
  if (is_waiting(state.phase)) state.not_before = basis_.now;
  if (!runs(state.phase)) return;
  state.asked = who;
  basis_.say_of_gang(mesh, g, EventKind::kGangStopping, Severity::kInfo,
                     text("is stopped and started again, asked by ", who));
  const StopPolicy& policy = basis_.mesh(mesh).stop;
  stop(mesh, g, policy.signal, policy.grace);
}

void Gangs::come_back(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  Verdict verdict;
  verdict.cause.kind = CauseKind::kRequest;
  verdict.cause.mesh = basis_.mesh(mesh).name;
  verdict.cause.summary = "it was parked, and its hosts are there again";
  verdict.reason = verdict.cause.summary;
  state.failure = std::move(verdict);
  state.not_before = basis_.now;
  to(state, GangPhase::kWaiting);
  basis_.waits_due = true;
  basis_.say_of_gang(mesh, g, EventKind::kGangReturning, Severity::kInfo,
                     "returns: a host is connected for each of its slots");
}

// From the beginning, whatever another had there before; what of his may still act is waited for.
void Gangs::slot_changed(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  switch (state.phase) {
    case GangPhase::kIdle:
      to(state, GangPhase::kWaiting);
      state.not_before = basis_.now;
      basis_.waits_due = true;
      return;
    case GangPhase::kWaiting:
    case GangPhase::kReserving:
    case GangPhase::kDone:
    case GangPhase::kFailed:
      if (rests(basis_, mesh, g)) leave_generation(mesh, g);
      return;
    case GangPhase::kStarting:
    case GangPhase::kRunning: {
      const StopPolicy& policy = basis_.mesh(mesh).stop;
      return stop(mesh, g, policy.signal, policy.grace);
    }
    case GangPhase::kFailing:
    case GangPhase::kStopping:  // its end is told
    case GangPhase::kStopped:
    case GangPhase::kParked: return;
  }
}

void Gangs::give_up(MeshId mesh, GangId g, HostId where, const Recovery& why) {
  GangState& state = gang(mesh, g);
  if (!waits(state.phase)) return;  // a neighbour has ended the job
  if (why.remedy == Remedy::kPark) {
    to(state, GangPhase::kParked);
    state.failure.reset();
    crews_.forget({mesh, g});
    basis_.waits_due = true;
    return basis_.say_of_gang(mesh, g, EventKind::kGangParked, Severity::kWarning,
                              text("is parked, the others go on: ", basis_.name_of(where), " is out [", why.rule, "]"));
  }
  Verdict verdict;
  const HostState& lost = basis_.host(where);
  const bool drained = is_left(lost);
  // Of a host that is drained nothing was lost: why its gang has to start again is the cause.
  const bool known = recovers(state) && (state.failure->cause.kind == CauseKind::kHost ||
                                         (drained && state.failure->cause.kind == CauseKind::kRank));
  if (known) {
    verdict = *state.failure;
    if (drained) verdict.reason += text("; ", basis_.name_of(where), " is ", lost.lost_because);
  } else if (drained) {
    verdict.exit_code = kExitLost;
    verdict.cause.kind = CauseKind::kHost;
    verdict.cause.host = basis_.name_of(where);
    verdict.cause.mesh = basis_.mesh(mesh).name;
    verdict.cause.summary = text("host ", verdict.cause.host, " is ", lost.lost_because);
    verdict.reason = verdict.cause.summary;
  } else {
    const std::string name = basis_.name_of(where);
    const bool starting = basis_.state.phase == JobPhase::kStarting;
    verdict.exit_code = starting ? kExitUnreachable : kExitLost;
    verdict.cause.kind = CauseKind::kHost;
    verdict.cause.host = name;
    verdict.cause.mesh = basis_.mesh(mesh).name;
    verdict.cause.summary = lost.wedged ? text("host ", name, " is wedged: a process on it does not end after SIGKILL")
                                        : text("host ", name, " was lost", starting ? " while starting" : "",
                                               lost.lost_because.empty() ? "" : ": ", lost.lost_because);
    verdict.reason = verdict.cause.summary;
  }
  verdict.cause.rule = why.rule;
  state.failure.reset();
  if (!basis_.mesh(mesh).sidecar) return end_.fail(std::move(verdict));
  to(state, GangPhase::kFailed);
  crews_.forget({mesh, g});
  basis_.say_of_gang(mesh, g, EventKind::kGangFailed, Severity::kWarning,
                     text("is given up: ", verdict.reason, " [", kDecidesNothing, "]"));
  if (is_needed(basis_.mesh(mesh), state)) end_.fail(blame_sidecar(basis_, mesh, g, std::move(verdict)));
}

}  // namespace monarch
