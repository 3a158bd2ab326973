#include "supervisor/core/job_core.h"

#include <algorithm>

#include "transport/base/assert.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr int kExitUnreachable = 69;
constexpr int kExitInternal = 70;
constexpr int kExitRequeue = 92;
constexpr int kExitInterrupted = 130;
constexpr int kExitStopped = 143;

}  // namespace

JobCore::JobCore(JobSpec spec, std::vector<PoolHost> hosts, JobCoreOptions options)
    : spec_(std::move(spec)), hosts_(std::move(hosts)), options_(std::move(options)), placement_(spec_) {
  MONARCH_ASSERT(hosts_.size() >= spec_.hosts_needed());
  for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
    state_.hosts.push_back({.spare = !placement_.holds_ranks(HostId(i))});
  }
  for (const MeshSpec& mesh : spec_.meshes) {
    MeshState state;
    state.ranks.resize(mesh.size());
    state.gangs.resize(mesh.gangs());
    state_.meshes.push_back(std::move(state));
  }
}

void JobCore::restore(JobState state) {
  MONARCH_ASSERT(state_.phase == JobPhase::kNew);
  MONARCH_ASSERT(state.hosts.size() == hosts_.size() && state.meshes.size() == spec_.meshes.size());
  state_ = std::move(state);
}

std::vector<Action> JobCore::step(const CoreEvent& event, Instant now) {
  now_ = now;
  actions_.clear();
  std::visit([this](const auto& e) { on(e); }, event);
  check_running();
  check_ended();
  return std::move(actions_);
}

Instant JobCore::next_deadline() const {
  Instant next = Instant::never();
  if (state_.phase == JobPhase::kEnded) return next;
  next = std::min({state_.start_deadline, state_.time_deadline, state_.drain_deadline});
  for (const HostState& host : state_.hosts) next = std::min(next, host.deadline);
  for (const MeshState& mesh : state_.meshes) {
    for (const GangState& gang : mesh.gangs) next = std::min({next, gang.cause_deadline, gang.stop_deadline});
  }
  return next;
}

void JobCore::on(const JobBegun& event) {
  MONARCH_ASSERT(state_.phase == JobPhase::kNew);
  state_.phase = JobPhase::kStarting;
  state_.job = event.job;
  state_.term = event.term;
  state_.start_deadline = now_ + spec_.start_timeout;
  state_.time_deadline = now_ + spec_.time_limit;
  emit(event_of("job.starting", Severity::kInfo, text(options_.job_id, ": starting on ", hosts_.size(), " hosts")));
  const std::uint32_t wanted = spec_.hosts_needed() + spec_.launch.spares;
  for (std::uint32_t i = 0; i < hosts_.size() && i < wanted; ++i) {
    state_.hosts[i].phase = HostPhase::kLaunching;
    actions_.emplace_back(LaunchWorker{HostId(i)});
  }
}

void JobCore::on(const SupervisorReturned& event) {
  MONARCH_ASSERT_BECAUSE(event.term > state_.term, "I7: terms only grow");
  state_.term = event.term;
  if (state_.phase == JobPhase::kEnded) return;
  emit(event_of("supervisor.returned", Severity::kError,
                text("the supervisor ended unexpectedly and was started again as term ", event.term.value())));
  state_.start_deadline = Instant::never();
  state_.time_deadline = Instant::never();
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    HostState& host = state_.hosts[i];
    // Its key was on the way to the supervisor that is gone: it can never be let in.
    if (host.phase == HostPhase::kLaunching || host.phase == HostPhase::kDestroying) destroy(HostId(i));
    host.shutdown_told = false;
  }
  Verdict verdict;
  verdict.exit_code = kExitInternal;
  verdict.cause.kind = CauseKind::kInternal;
  verdict.cause.summary = "the supervisor ended unexpectedly";
  verdict.reason =
      "the supervisor ended unexpectedly; this build does not take its ranks over again, so the job was stopped";
  const bool was_shutting_down = state_.phase == JobPhase::kShuttingDown;
  fail_job(std::move(verdict));
  stop_gangs();
  if (was_shutting_down) shut_down_hosts();
}

void JobCore::on(const StopOrdered& event) {
  const StopRequest& request = event.request;
  if (request.how == StopHow::kKill) state_.kill_ordered = true;
  if (!state_.verdict) {
    Verdict verdict;
    verdict.outcome = request.interrupted ? Outcome::kInterrupted : Outcome::kStopped;
    verdict.exit_code = request.interrupted ? kExitInterrupted : kExitStopped;
    if (request.exit_code != 0) verdict.exit_code = request.exit_code;
    verdict.cause.kind = CauseKind::kRequest;
    verdict.cause.summary = text("stopped by ", printable(request.who));
    verdict.reason = verdict.cause.summary;
    fail_job(std::move(verdict));
  } else if (state_.kill_ordered) {
    stop_gangs();
  }
  if (state_.kill_ordered && state_.phase == JobPhase::kShuttingDown) {
    for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) destroy(HostId(i));
  }
}

void JobCore::on(const DeadlinePassed&) {
  if (state_.start_deadline <= now_) {
    state_.start_deadline = Instant::never();
    Verdict verdict;
    verdict.exit_code = kExitUnreachable;
    verdict.cause.kind = CauseKind::kStart;
    verdict.cause.summary = text("not started within start_timeout (", to_text(spec_.start_timeout), ")");
    verdict.cause.rule = "start_timeout: fail";
    verdict.reason = text(verdict.cause.summary, ": ", missing_at_start());
    fail_job(std::move(verdict));
  }
  if (state_.time_deadline <= now_) {
    state_.time_deadline = Instant::never();
    Verdict verdict;
    verdict.exit_code = kExitRequeue;
    verdict.cause.kind = CauseKind::kTimeLimit;
    verdict.cause.summary = text("time_limit (", to_text(spec_.time_limit), ") reached");
    verdict.cause.rule = "time_limit: stop";
    verdict.reason = verdict.cause.summary;
    fail_job(std::move(verdict));
  }
  each_gang([this](MeshId m, GangId g) {
    if (gang(m, g).cause_deadline <= now_) decide_cause(m, g);
    GangState& state = gang(m, g);
    if (state.stop_deadline > now_) return;
    state.stop_deadline = Instant::never();
    for (const RankId& id : placement_.ranks_of(m, g)) {
      if (lives(rank(id).stage)) destroy(placement_.host_of(id));
    }
  });
  host_deadlines();
  // A drain that is over its deadline is noticed by check_ended().
}

std::string JobCore::missing_at_start() const {
  std::vector<std::string> hosts;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const HostPhase phase = state_.hosts[i].phase;
    if (phase == HostPhase::kLaunching) hosts.push_back(text(hosts_[i].name, " (its worker has not started)"));
    if (phase == HostPhase::kLaunched) hosts.push_back(text(hosts_[i].name, " (its worker has not called back)"));
  }
  if (!hosts.empty()) return text("waiting for ", join(hosts, ", "));
  std::vector<std::string> gangs;
  for (std::size_t m = 0; m < spec_.meshes.size(); ++m) {
    const auto& ranks = state_.meshes[m].ranks;
    for (std::size_t r = 0; r < ranks.size() && gangs.size() < 8; ++r) {
      if (ranks[r].stage == RankStage::kPending || ranks[r].stage == RankStage::kStarting) {
        const RankId id{MeshId(static_cast<std::uint32_t>(m)), Rank(static_cast<std::uint32_t>(r))};
        gangs.push_back(text(spec_.meshes[m].name, "/", r, "@", hosts_[placement_.host_of(id).value()].name));
      }
    }
  }
  return text("waiting for ranks ", join(gangs, ", "));
}

// The first verdict stands; what fails afterwards is its consequence.
void JobCore::fail_job(Verdict verdict) {
  if (!state_.verdict) state_.verdict = std::move(verdict);
  state_.start_deadline = Instant::never();
  state_.time_deadline = Instant::never();
  if (state_.phase >= JobPhase::kStopping) return;
  state_.phase = JobPhase::kStopping;
  if (state_.verdict->exit_code != 0) {
    const bool asked = state_.verdict->cause.kind == CauseKind::kRequest;
    emit(event_of("job.stopping", asked ? Severity::kInfo : Severity::kWarning,
                  text("stopping: ", state_.verdict->reason)));
  }
  stop_gangs();
}

void JobCore::stop_gangs() {
  each_gang([this](MeshId m, GangId g) {
    const StopPolicy& policy = mesh_spec(m).stop;
    const bool failing = gang(m, g).phase == GangPhase::kFailing;
    if (failing && !state_.kill_ordered) return;  // it is being stopped already, with after_failure
    stop_gang(m, g, policy.signal, state_.kill_ordered ? Duration::zero() : policy.grace);
  });
}

void JobCore::check_running() {
  if (state_.phase != JobPhase::kStarting) return;
  bool all = true;
  each_gang([&](MeshId m, GangId g) {
    const GangPhase phase = gang(m, g).phase;
    all = all && (phase == GangPhase::kRunning || phase == GangPhase::kDone);
  });
  if (!all) return;
  state_.phase = JobPhase::kRunning;
  state_.start_deadline = Instant::never();
  emit(event_of("job.running", Severity::kInfo, text(options_.job_id, ": every mesh is ready")));
}

void JobCore::check_ended() {
  if (state_.phase == JobPhase::kRunning) {
    bool all_done = true;
    each_gang([&](MeshId m, GangId g) {
      all_done = all_done && (mesh_spec(m).sidecar || gang(m, g).phase == GangPhase::kDone);
    });
    if (!all_done) return;
    Verdict verdict;
    verdict.outcome = Outcome::kSucceeded;
    verdict.exit_code = 0;
    verdict.reason = "every rank ended with exit code 0";
    fail_job(std::move(verdict));
  }
  if (state_.phase == JobPhase::kStopping) {
    bool all_ended = true;
    each_gang([&](MeshId m, GangId g) { all_ended = all_ended && has_ended(gang(m, g).phase); });
    if (!all_ended) return;
    state_.phase = JobPhase::kDraining;
    state_.drain_deadline = now_ + limits::kKillDeadline;
  }
  if (state_.phase == JobPhase::kDraining) {
    bool all_written = true;
    for (const MeshState& mesh : state_.meshes) {
      for (const RankState& rank : mesh.ranks) {
        all_written = all_written && (rank.stage != RankStage::kEnded || rank.output_complete);
      }
    }
    if (!all_written && now_ < state_.drain_deadline) return;
    state_.drain_deadline = Instant::never();
    state_.phase = JobPhase::kShuttingDown;
    shut_down_hosts();
  }
  if (state_.phase == JobPhase::kShuttingDown) finish();
}

void JobCore::finish() {
  for (const HostState& host : state_.hosts) {
    if (host.phase != HostPhase::kCold && host.phase != HostPhase::kEnded && host.phase != HostPhase::kLost) return;
  }
  MONARCH_ASSERT(state_.verdict.has_value());
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (state_.hosts[i].phase == HostPhase::kLost || state_.hosts[i].wedged) {
      state_.verdict->left_behind.push_back(hosts_[i].name);
    }
  }
  state_.phase = JobPhase::kEnded;
  const bool failed = state_.verdict->outcome == Outcome::kFailed;
  emit(event_of("job.ended", failed ? Severity::kError : Severity::kInfo,
                text("ended with exit code ", state_.verdict->exit_code, ": ", state_.verdict->reason)));
  actions_.emplace_back(FinishJob{*state_.verdict});
}

bool JobCore::grants(RankId id, Generation generation) const {
  if (id.mesh.value() >= state_.meshes.size()) return false;
  const MeshState& mesh = state_.meshes[id.mesh.value()];
  if (id.rank.value() >= mesh.ranks.size()) return false;
  const RankState& rank = mesh.ranks[id.rank.value()];
  const GangId gang = mesh_spec(id.mesh).gang_of(id.rank);
  // A host that is being destroyed gets no more time, even if it is heard of once more.
  if (state_.hosts[placement_.host_of(id).value()].phase != HostPhase::kJoined) return false;
  return mesh.gangs[gang.value()].generation == generation && lives(rank.stage) && !rank.reaped;
}

bool JobCore::concerns(HostId where, const RankReport& report) const {
  const RankId id = report.rank;
  if (id.mesh.value() >= state_.meshes.size()) return false;
  const MeshState& mesh = state_.meshes[id.mesh.value()];
  if (id.rank.value() >= mesh.ranks.size() || placement_.host_of(id) != where) return false;
  return mesh.gangs[mesh_spec(id.mesh).gang_of(id.rank).value()].generation == report.generation;
}

bool JobCore::awaits(HostId where, const Reserved& reserved) const {
  if (reserved.mesh.value() >= state_.meshes.size()) return false;
  if (reserved.gang.value() >= state_.meshes[reserved.mesh.value()].gangs.size()) return false;
  const GangState& waiting = gang(reserved.mesh, reserved.gang);
  return waiting.phase == GangPhase::kReserving && waiting.generation == reserved.generation &&
         placement_.hosts_of(reserved.mesh, reserved.gang).front() == where;
}

Duration JobCore::lease_length() const { return std::max(spec_.supervision.lease, spec_.supervision.orphan_ttl); }

GangState& JobCore::gang(MeshId mesh, GangId gang) { return state_.meshes[mesh.value()].gangs[gang.value()]; }

const GangState& JobCore::gang(MeshId mesh, GangId gang) const {
  return state_.meshes[mesh.value()].gangs[gang.value()];
}

RankState& JobCore::rank(RankId id) { return state_.meshes[id.mesh.value()].ranks[id.rank.value()]; }

const RankState& JobCore::rank(RankId id) const { return state_.meshes[id.mesh.value()].ranks[id.rank.value()]; }

HostState& JobCore::host(HostId id) {
  MONARCH_ASSERT(id.value() < state_.hosts.size());
  return state_.hosts[id.value()];
}

JobEvent JobCore::event_of(std::string type, Severity severity, std::string message) const {
  JobEvent event;
  event.type = std::move(type);
  event.severity = severity;
  event.message = std::move(message);
  return event;
}

void JobCore::emit(JobEvent event) {
  event.number = state_.next_event++;
  actions_.emplace_back(EmitEvent{std::move(event)});
}

}  // namespace monarch
