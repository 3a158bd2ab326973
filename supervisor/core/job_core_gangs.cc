// Gangs: from waiting for hosts to their last rank's end.

#include <algorithm>
#include <cstring>

#include "supervisor/core/job_core.h"
#include "supervisor/core/rank_env.h"
#include "transport/base/assert.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// How long ends of a failed gang are collected before the first cause is named: those of other hosts arrive later.
constexpr Duration kCauseWindow = Duration::milliseconds(200);

// Beyond grace and KILL: for the words to travel.
constexpr Duration kStopMargin = Duration::seconds(5);

constexpr int kExitUnreachable = 69;
constexpr int kExitHost = 92;

}  // namespace

void JobCore::start_waiting_gangs() {
  if (state_.phase != JobPhase::kStarting && state_.phase != JobPhase::kRunning) return;
  each_gang([this](MeshId m, GangId g) {
    if (gang(m, g).phase != GangPhase::kWaiting) return;
    const std::vector<HostId> hosts = placement_.hosts_of(m, g);
    const bool ready =
        std::all_of(hosts.begin(), hosts.end(), [this](HostId id) { return host(id).phase == HostPhase::kJoined; });
    if (!ready) return;
    GangState& state = gang(m, g);
    state.phase = GangPhase::kReserving;
    state.generation = Generation{state_.term, ++state_.last_counter};
    actions_.emplace_back(
        SendReserve{hosts.front(), Reserve{.mesh = m, .gang = g, .generation = state.generation, .count = 1}});
  });
}

void JobCore::on(const PortsReserved& event) {
  const Reserved& reserved = event.reserved;
  // Else it was said again for a command that was sent twice, or is of an earlier generation.
  if (!awaits(event.host, reserved)) return;
  GangState& state = gang(reserved.mesh, reserved.gang);
  if (!reserved.error.empty() || reserved.ports.empty()) {
    Verdict verdict;
    verdict.exit_code = kExitUnreachable;
    verdict.cause.kind = CauseKind::kStart;
    verdict.cause.host = hosts_[event.host.value()].name;
    verdict.cause.mesh = mesh_spec(reserved.mesh).name;
    verdict.cause.summary = text("no port for MASTER_PORT on ", verdict.cause.host, ": ", printable(reserved.error));
    verdict.reason = verdict.cause.summary;
    fail_job(std::move(verdict));
    return;
  }
  state.master_port = reserved.ports.front();
  start_gang(reserved.mesh, reserved.gang);
}

void JobCore::start_gang(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  state.phase = GangPhase::kStarting;
  for (const RankId& id : placement_.ranks_of(mesh, g)) rank(id) = RankState{.stage = RankStage::kStarting};
  for (const HostId id : placement_.hosts_of(mesh, g)) {
    actions_.emplace_back(SendStart{id, start_message(mesh, g, id)});
  }
  JobEvent event =
      event_of("gang.starting", Severity::kInfo,
               text(mesh_spec(mesh).name, ": gang ", g.value(), " is starting, generation ", state.generation.counter));
  event.mesh = mesh_spec(mesh).name;
  event.generation = state.generation.counter;
  emit(std::move(event));
}

Start JobCore::start_message(MeshId mesh, GangId g, HostId where) const {
  const MeshSpec& spec = mesh_spec(mesh);
  const GangState& state = gang(mesh, g);
  Start message{.mesh = mesh, .mesh_name = spec.name, .gang = g, .generation = state.generation};
  message.program = spec.program;
  message.workdir = spec.workdir.value_or(spec_.directory);
  message.orphan = static_cast<OrphanAction>(spec.supervision.orphan);
  message.orphan_ttl = spec.supervision.orphan_ttl;
  message.stop_signal = spec.stop.signal;
  message.stop_grace = spec.stop.grace;
  message.log_max_bytes = spec_.logs.max_bytes;
  for (const RankId& id : placement_.ranks_of(mesh, g, where)) {
    RankEnvInput input{.spec = spec_,
                       .placement = placement_,
                       .hosts = hosts_,
                       .job_id = options_.job_id,
                       .generation = state.generation,
                       .master_port = state.master_port,
                       .error_file = text(options_.log_directory, "/", spec.name, "/", id.rank.value(), ".",
                                          state.generation.counter, ".error.json")};
    RankStart start{.rank = id, .env = {}};
    for (EnvVariable& variable : rank_environment(input, id)) {
      start.env.emplace(std::move(variable.name), std::move(variable.value));
    }
    message.ranks.push_back(std::move(start));
  }
  // What all ranks here agree on is written once.
  if (!message.ranks.empty()) {
    for (const auto& variable : message.ranks.front().env) {
      const bool common = std::all_of(message.ranks.begin(), message.ranks.end(), [&](const RankStart& start) {
        const auto found = start.env.find(variable.first);
        return found != start.env.end() && found->second == variable.second;
      });
      if (common) message.env.insert(variable);
    }
    for (RankStart& start : message.ranks) {
      std::erase_if(start.env, [&](const auto& variable) { return message.env.contains(variable.first); });
    }
  }
  return message;
}

void JobCore::on(const RankChanged& event) {
  // The one place where reports of other generations, or from hosts that should not have the rank, are dropped.
  if (!concerns(event.host, event.report)) return;
  const RankId id = event.report.rank;
  const GangId g = mesh_spec(id.mesh).gang_of(id.rank);
  GangState& state = gang(id.mesh, g);
  RankState& slot = rank(id);

  if (event.report.output_complete && !slot.output_complete) {
    slot.output_complete = true;
    slot.stdout_bytes = event.report.stdout_bytes;
    slot.stderr_bytes = event.report.stderr_bytes;
  }
  if (slot.stage == RankStage::kEnded || slot.stage == RankStage::kLost || slot.stage == RankStage::kPending) return;

  slot.pid = event.report.pid;
  switch (event.report.phase) {
    case RankPhase::kGated: break;  // START was obeyed; nothing follows from it before the gate is passed
    case RankPhase::kRunning:
      if (slot.stage == RankStage::kStarting) slot.stage = RankStage::kRunning;
      break;
    case RankPhase::kStopping: slot.stage = RankStage::kStopping; break;
    case RankPhase::kWedged:
      if (!host(event.host).wedged) {
        host(event.host).wedged = true;
        JobEvent wedged = event_of("host.wedged", Severity::kError,
                                   text(hosts_[event.host.value()].name, ": ", mesh_spec(id.mesh).name, "/",
                                        id.rank.value(), " (pid ", event.report.pid, ") does not end after SIGKILL"));
        wedged.host = hosts_[event.host.value()].name;
        wedged.pid = event.report.pid;
        emit(std::move(wedged));
      }
      // Its end will never be known: without a failure of its own the gang fails by its host, or it would pass for done.
      if (event.report.end.kind == EndKind::kNone &&
          (state.phase == GangPhase::kStarting || state.phase == GangPhase::kRunning)) {
        state.host_lost = true;
        state.lost_host = event.host;
        gang_failed(id.mesh, g);
      }
      break;
    case RankPhase::kEnded: break;  // below
  }
  if (event.report.end.kind != EndKind::kNone && !slot.reaped) record_end(event, state, slot);
  if (event.report.phase == RankPhase::kEnded || event.report.phase == RankPhase::kWedged)
    slot.stage = RankStage::kEnded;
  if (slot.reaped && is_failure(slot.end)) gang_failed(id.mesh, g);
  check_gang(id.mesh, g);
}

void JobCore::record_end(const RankChanged& event, GangState& state, RankState& slot) {
  slot.reaped = true;
  slot.end = event.report.end;
  slot.ended_at = event.ended_at;
  state.ends.push_back({.rank = event.report.rank,
                        .host = event.host,
                        .generation = event.report.generation,
                        .pid = event.report.pid,
                        .end = event.report.end,
                        .ended_at = event.ended_at,
                        .uncertainty = event.uncertainty});
}

void JobCore::gang_failed(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  if (state.phase != GangPhase::kStarting && state.phase != GangPhase::kRunning) return;
  state.phase = GangPhase::kFailing;
  state.cause_deadline = now_ + kCauseWindow;
  const StopPolicy& policy = mesh_spec(mesh).stop;
  stop_gang(mesh, g, policy.signal, policy.after_failure);
}

void JobCore::stop_gang(MeshId mesh, GangId g, std::int32_t signal, Duration grace) {
  GangState& state = gang(mesh, g);
  switch (state.phase) {
    case GangPhase::kWaiting:
    case GangPhase::kReserving: state.phase = GangPhase::kStopped; return;  // no process was started
    case GangPhase::kStarting:
    case GangPhase::kRunning: state.phase = GangPhase::kStopping; break;
    case GangPhase::kFailing:
    case GangPhase::kStopping: break;  // said again, with a shorter grace or after a crash of the supervisor
    case GangPhase::kDone:
    case GangPhase::kFailed:
    case GangPhase::kStopped: return;
  }
  state.stop_signal = signal;
  state.stop_grace = grace;
  state.stop_deadline = now_ + grace + limits::kKillDeadline + kStopMargin;
  for (const HostId id : placement_.hosts_of(mesh, g)) {
    Stop message = stop_message(mesh, g, id);
    if (!message.ranks.empty()) actions_.emplace_back(SendStop{id, std::move(message)});
  }
  for (const RankId& id : placement_.ranks_of(mesh, g)) {
    if (lives(rank(id).stage)) rank(id).stage = RankStage::kStopping;
  }
  check_gang(mesh, g);
}

Stop JobCore::stop_message(MeshId mesh, GangId g, HostId where) const {
  const GangState& state = gang(mesh, g);
  Stop message{.ranks = {}, .generation = state.generation, .signal = state.stop_signal, .grace = state.stop_grace};
  for (const RankId& id : placement_.ranks_of(mesh, g, where)) {
    if (lives(rank(id).stage)) message.ranks.push_back(id);
  }
  return message;
}

// Moves a gang on once its ranks have: to running, to done, or to its end.
void JobCore::check_gang(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  if (has_ended(state.phase) || state.phase == GangPhase::kWaiting || state.phase == GangPhase::kReserving) return;
  bool started = true;
  bool ended = true;
  for (const RankId& id : placement_.ranks_of(mesh, g)) {
    started = started && rank(id).stage != RankStage::kStarting;
    ended = ended && !lives(rank(id).stage);
  }
  const std::string name = text(mesh_spec(mesh).name, ": gang ", g.value());
  const auto say = [&](const char* type, Severity severity, const std::string& what) {
    JobEvent event = event_of(type, severity, text(name, what));
    event.mesh = mesh_spec(mesh).name;
    event.generation = state.generation.counter;
    emit(std::move(event));
  };
  if (state.phase == GangPhase::kStarting && started) {
    state.phase = GangPhase::kRunning;
    say("gang.running", Severity::kInfo, " is running");
  }
  if (!ended) return;
  state.stop_deadline = Instant::never();
  switch (state.phase) {
    case GangPhase::kRunning:
      state.phase = GangPhase::kDone;
      say("gang.done", Severity::kInfo, " is done");
      return;
    case GangPhase::kFailing:
      decide_cause(mesh, g);
      state.phase = GangPhase::kFailed;
      return;
    case GangPhase::kStopping:
      state.phase = GangPhase::kStopped;
      say("gang.stopped", Severity::kInfo, " has stopped");
      return;
    case GangPhase::kWaiting:
    case GangPhase::kReserving:
    case GangPhase::kStarting:
    case GangPhase::kDone:
    case GangPhase::kFailed:
    case GangPhase::kStopped: return;  // left above, or moved on already
  }
}

void JobCore::decide_cause(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  if (state.cause_decided) return;
  state.cause_decided = true;
  state.cause_deadline = Instant::never();
  const MeshSpec& spec = mesh_spec(mesh);
  const std::optional<std::size_t> first = first_cause(state.ends);
  Verdict verdict;
  FirstCause& cause = verdict.cause;
  cause.mesh = spec.name;
  cause.generation = state.generation.counter;
  const bool exec_error = first && was_not_executed(state.ends[*first].end);
  if ((state.host_lost && !exec_error) || !first) {
    // Ranks that lose a peer's host abort within the window: the host is the cause, they are not. Where every end came after a
    // signal that we never ordered, a worker ended its ranks by itself: it had lost us for a lease, or was told to end.
    cause.kind = CauseKind::kHost;
    cause.host = hosts_[(state.host_lost ? state.lost_host : state.ends.front().host).value()].name;
    cause.summary = state.host_lost && host(state.lost_host).wedged
                        ? text("host ", cause.host, " is wedged: a process on it does not end after SIGKILL")
                    : state.host_lost
                        ? text("host ", cause.host, " was lost: ", host(state.lost_host).lost_because)
                        : text("the worker on ", cause.host,
                               " ended its ranks: it had no lease from the supervisor, or was told to end");
    cause.rule = "host lost: no replacement in this build: fail";
    cause.secondary = static_cast<std::uint32_t>(state.ends.size());
    verdict.exit_code = kExitHost;
    verdict.reason = cause.summary;
  } else {
    const EndedRank& end = state.ends[*first];
    cause.kind = CauseKind::kRank;
    cause.host = hosts_[end.host.value()].name;
    cause.rank = end.rank.rank.value();
    if (spec.gangs() > 1) {
      cause.gang = g.value();
      cause.gang_rank = end.rank.rank.value() - placement_.ranks_of(mesh, g).front().rank.value();
    }
    cause.pid = end.pid;
    cause.end = end.end;
    cause.summary = describe_end(end.end);
    cause.secondary = static_cast<std::uint32_t>(state.ends.size() - 1);
    const auto& fatal = spec.supervision.fatal_exit_codes;
    const bool is_fatal =
        end.end.kind == EndKind::kExited && std::find(fatal.begin(), fatal.end(), end.end.value) != fatal.end();
    cause.rule = exec_error ? "exec error: fail, no retry"
                 : is_fatal ? text("fatal_exit_codes has ", end.end.value, ": fail")
                            : std::string("restart: acts as max 0 in this build: fail");
    verdict.exit_code = exit_code_of(end.end);
    verdict.reason =
        text(spec.name, "/", end.rank.rank.value(), " on ", cause.host, " (pid ", end.pid, "): ", cause.summary);
  }
  JobEvent event = event_of("gang.failed", Severity::kError, text(verdict.reason, " [", cause.rule, "]"));
  event.host = cause.host;
  event.mesh = cause.mesh;
  event.rank = cause.rank;
  event.generation = cause.generation;
  event.pid = cause.pid;
  emit(std::move(event));
  fail_job(std::move(verdict));
}

}  // namespace monarch
