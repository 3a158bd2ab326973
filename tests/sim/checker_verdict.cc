// What the checker asks of a run's end: the verdict is true, every rank has an end, and nothing is left (I9, I11, I17).

#include <algorithm>

#include "supervisor/core/state/first_cause.h"
#include "tests/sim/checker.h"
#include "tests/sim/exit_codes.h"
#include "tests/sim/guard.h"
#include "tests/sim/supervisor.h"
#include "tests/sim/world.h"
#include "tests/supervisor/core/state_parts.h"
#include "transport/base/text.h"
#include "transport/messages/describe_end.h"

namespace monarch::sim {

namespace {

// A job that has ended well stopped none but those without which it went on.
bool was_parked(const JobCore& core, MeshId mesh, GangId gang) {
  const GangPhase phase = state_parts::gang(core.state(), mesh, gang).phase;
  return core.spec().meshes[mesh.value()].supervision.shrink && phase == GangPhase::kStopped;
}

// For who looks for what a run waits for.
std::string phases_of(const JobCore& core) {
  const JobState& state = core.state();
  std::string out = text("job phase ", static_cast<int>(state.phase), "; hosts");
  for (const HostState& host : state.hosts) {
    out += text(" ", static_cast<int>(host.phase), host.wedged ? "w" : "", host.unproven ? "u" : "",
                host.standing == HostStanding::kGood ? "" : text("s", static_cast<int>(host.standing)));
  }
  for (std::uint32_t m = 0; m < core.spec().meshes.size(); ++m) {
    out += text("; gangs of mesh ", m, core.spec().meshes[m].sidecar ? " (sidecar)" : "");
    for (const GangState& gang : state_parts::gangs(state, MeshId(m))) out += text(" ", static_cast<int>(gang.phase));
  }
  out += "; slots";
  for (const HostId host : state.slots) out += text(" ", host.value());
  return out;
}

// Of one generation before, a START may come late to a host that stood still.
const RankProcess& newest_of(const std::vector<RankProcess*>& processes) {
  return **std::max_element(processes.begin(), processes.end(), [](const RankProcess* a, const RankProcess* b) {
    return a->key.generation < b->key.generation;
  });
}

}  // namespace

void Checker::check_success(const JobCore& core) const {
  for (std::uint32_t m = 0; m < core.spec().meshes.size(); ++m) {
    if (core.spec().meshes[m].sidecar) continue;
    check_shrunk(core, MeshId(m));
    for (std::uint32_t r = 0; r < core.spec().meshes[m].size(); ++r) {
      const RankId rank{MeshId(m), Rank(r)};
      const GangId gang = core.spec().meshes[m].gang_of(rank.rank);
      if (was_parked(core, MeshId(m), gang)) continue;
      const auto found = processes_.find(rank);
      check(found != processes_.end(), "truth", text("exit 0, but rank ", m, "/", r, " never ran"));
      const RankProcess& last = newest_of(found->second);
      check(!last.alive() && last.end.kind == EndKind::kExited && last.end.value == 0, "truth",
            text("exit 0, but rank ", m, "/", r, " did not end with 0"));
    }
  }
}

// As many as the spec asks for have gone on to the end.
void Checker::check_shrunk(const JobCore& core, MeshId mesh) const {
  const auto& shrink = core.spec().meshes[mesh.value()].supervision.shrink;
  if (!shrink) return;
  std::uint32_t left = 0;
  for (std::uint32_t g = 0; g < core.spec().meshes[mesh.value()].gangs(); ++g) {
    left += was_parked(core, mesh, GangId(g)) ? 0U : 1U;
  }
  check(left >= shrink->min, "truth", text("exit 0, but mesh ", mesh.value(), " had only ", left, " gangs"));
}

// When the verdict is decided: what decides may do so, and what it says of readiness is so then.
void Checker::check_decision(const Verdict& verdict, const JobCore& core) const {
  if (verdict.cause.kind == CauseKind::kNone) check_success(core);
  const bool late = somebody_is_tardy() || somebody_waits_for_a_fence(core);
  check(!settled() || verdict.cause.rule != "start_timeout: fail" || late, "I15",
        text("start_timeout, though all has been well for a while: ", verdict.reason));
  check_hosts_are_known(verdict);
  check_budget_spent(verdict);
  if (made_no_progress(verdict.cause)) check_no_progress(verdict);
  const auto& meshes = world_.scenario.spec.meshes;
  const auto mesh =
      std::find_if(meshes.begin(), meshes.end(), [&](const MeshSpec& m) { return m.name == verdict.cause.mesh; });
  if (mesh == meshes.end() || !mesh->sidecar) return;
  // It may not come up: then nothing that waits for it, which is all that is no sidecar, can have begun.
  check(verdict.cause.kind == CauseKind::kStart, "sidecar",
        text("sidecar ", mesh->name, " decides while others are undecided: ", verdict.reason));
  for (const auto& [key, host] : started_) {
    if (!is_of_spec(key.rank)) continue;
    check(meshes[key.rank.mesh.value()].sidecar, "sidecar",
          text("mesh ", key.rank.mesh.value(), " had begun when sidecar ", mesh->name, " failed the start"));
  }
}

// Of a rank that was never ready any process counts, for all of them had the one start_timeout; else the newest.
bool Checker::somebody_is_tardy() const {
  const auto is_tardy = [](const RankProcess* p) { return p->tardy; };
  return std::any_of(processes_.begin(), processes_.end(), [&](const auto& known) {
    const auto& [rank, processes] = known;
    if (processes.empty()) return false;
    if (!ready_.contains(rank)) return std::any_of(processes.begin(), processes.end(), is_tardy);
    const auto older = [](const RankProcess* a, const RankProcess* b) { return a->key.generation < b->key.generation; };
    const RankProcess* newest = *std::max_element(processes.begin(), processes.end(), older);
    return newest->tardy && !said_ready_.contains(newest->key);
  });
}

// What ran on a host that is out may hold a lease longer than the job has to start (I3).
bool Checker::somebody_waits_for_a_fence(const JobCore& core) const {
  const Instant here = world_.supervisor_clock.local(now());
  for (std::uint32_t m = 0; m < core.spec().meshes.size(); ++m) {
    for (const GangState& gang : state_parts::gangs(core.state(), MeshId(m))) {
      const bool fenced = std::any_of(gang.fenced_by.begin(), gang.fenced_by.end(),
                                      [&](HostId id) { return state_parts::host(core.state(), id).fence > here; });
      if (fenced) return true;
    }
  }
  return false;
}

// It was given the time that the spec says, and it was not ready then, or could not say so.
void Checker::check_no_progress(const Verdict& verdict) const {
  const FirstCause& cause = verdict.cause;
  check(world_.scenario.faults.any, "I11", text("nothing is wrong, and a rank ", cause.summary));
  const RankId rank = rank_of(cause);
  if (cause.rule.starts_with("hang.action")) return;  // judged when it was seen
  const JobSpec& spec = world_.scenario.spec;
  const GangId gang = spec.meshes[rank.mesh.value()].gang_of(rank.rank);
  const auto known = gangs_.find({rank.mesh, gang});
  check(known != gangs_.end(), "truth", "a gang that never began makes no progress");
  const Duration waited = world_.scheduler.now() - known->second.begun_at;
  check(waited + waited / kClocksDiffer >= spec.start_timeout, "truth",
        text("gang ", gang.value(), " of mesh ", cause.mesh, " had ", to_text(waited), " to be ready"));
  check(!settled() || somebody_is_tardy(), "I15", text("all has been well for a while, and a rank ", cause.summary));
}

RankId Checker::rank_of(const FirstCause& cause) const {
  check(cause.rank.has_value(), "truth", "a rank is the cause, and none is named");
  const auto& meshes = world_.scenario.spec.meshes;
  const auto mesh = std::find_if(meshes.begin(), meshes.end(), [&](const MeshSpec& m) { return m.name == cause.mesh; });
  check(mesh != meshes.end(), "truth", "the cause is of no mesh");
  return {MeshId(static_cast<std::uint32_t>(mesh - meshes.begin())), Rank(*cause.rank)};
}

void Checker::check_rank_cause(const Verdict& verdict) const {
  const FirstCause& cause = verdict.cause;
  const RankId rank = rank_of(cause);
  check(!world_.scenario.spec.meshes[rank.mesh.value()].sidecar, "sidecar", "a sidecar decides how the job ends");
  // Of a process that never was, or was never a program; or of one that was judged when it was stopped.
  if (was_not_executed(cause.end) || made_no_progress(cause)) return;
  const auto found = processes_.find(rank);
  check(found != processes_.end(), "truth", "the cause never ran");
  const RankProcess& process = newest_of(found->second);
  check(!process.alive() && process.end.kind == cause.end.kind && process.end.value == cause.end.value, "truth",
        text("the cause did not end so: ", describe_end(cause.end), " was told, ", describe_end(process.end),
             " happened"));
  // It may have been long at ending, and killed meanwhile: the code is that of the first to exit.
  const bool said_why = cause.end.after_our_signal && process.evidence_at != Instant::never();
  check(!process.signalled || said_why, "truth", text("the cause is rank ", *cause.rank, ", which we had signalled"));
  if (said_why) check_code_of_another(verdict, rank);
  check_crash_in_a_row(cause, rank);
}

void Checker::check_code_of_another(const Verdict& verdict, RankId cause) const {
  const auto gave = [&](const auto& known) {
    const auto& [rank, processes] = known;
    return rank.mesh == cause.mesh && std::any_of(processes.begin(), processes.end(), [&](const RankProcess* process) {
             return !process->alive() && !process->signalled && exit_code_of(process->end) == verdict.exit_code;
           });
  };
  check(std::any_of(processes_.begin(), processes_.end(), gave), "truth",
        text("no rank has ended with the exit code ", verdict.exit_code, " of a job whose cause was killed"));
}

// A gang that is given up since it crashes at one step has done so, in three generations.
void Checker::check_crash_in_a_row(const FirstCause& cause, RankId rank) const {
  if (!cause.rule.starts_with("crash ")) return;
  const MeshSpec& mesh = world_.scenario.spec.meshes[rank.mesh.value()];
  std::set<Generation> crashed;
  for (const auto& [other, processes] : processes_) {
    if (other.mesh != rank.mesh || mesh.gang_of(other.rank) != mesh.gang_of(rank.rank)) continue;
    for (const RankProcess* process : processes) {
      if (!process->alive() && is_failure(process->end) && process->progress.step)
        crashed.insert(process->key.generation);
    }
  }
  check(crashed.size() >= 3, "truth",
        text(crashed.size(), " generations of a gang ended at a step, and the verdict says: ", cause.rule));
}

void Checker::verdict(const Verdict& verdict, const JobCore& core) {
  world_.note("verdict", static_cast<std::uint64_t>(verdict.exit_code), static_cast<std::uint64_t>(verdict.cause.kind));
  check(!finished_ || finished_->first < highest_term_ || is_durable(*finished_), "I5",
        "the verdict is told before it is durable");
  if (told_) check(told_->exit_code == verdict.exit_code, "I6", "a second supervisor tells another verdict");
  told_ = verdict;
  check(exit_code_fits(verdict), "truth", text("exit code ", verdict.exit_code, " for: ", verdict.reason));
  switch (verdict.cause.kind) {
    case CauseKind::kNone: check_success(core); break;
    case CauseKind::kRank: check_rank_cause(verdict); break;
    case CauseKind::kHost: check(world_.scenario.faults.any, "I11", "a host is lost and nothing is wrong"); break;
    case CauseKind::kStart:
      // A sidecar may end by itself before it was ready.
      check(world_.scenario.faults.any || verdict.cause.summary.starts_with("sidecar "), "I11",
            "the start fails and nothing is wrong");
      break;
    case CauseKind::kTimeLimit:
      check(foreseen_ || world_.scenario.spec.time_limit != Duration::forever() ||
                world_.scenario.spec.lifetime.max != Duration::forever(),
            "truth", "a time limit that nobody set");
      break;
    case CauseKind::kRequest: check(stop_requested_, "truth", "stopped, though nobody asked"); break;
    case CauseKind::kInternal: check(deaths_ > 0, "truth", "a crash of the supervisor is blamed that never was"); break;
  }
  check_failed_hosts(verdict, core);
  check_terminal(core);
  check_left_behind(verdict, core);
}

// I17: what lives on when the verdict is told lives on a host that it names.
void Checker::check_left_behind(const Verdict& verdict, const JobCore& core) const {
  for (const auto& host : world_.hosts) {
    const std::string& name = core.hosts()[host->id.value()].name;
    const auto& named = verdict.left_behind;
    if (std::find(named.begin(), named.end(), name) != named.end()) continue;
    for (const auto& worker : host->workers) {
      for (const auto& [key, process] : worker->ranks().processes()) {
        check(!process.alive() || process.killed, "I17",
              text("a rank lives on ", name, ", which the verdict does not name"));
      }
    }
  }
}

void Checker::check_terminal(const JobCore& core) const {
  for (std::uint32_t m = 0; m < core.spec().meshes.size(); ++m) {
    for (std::uint32_t r = 0; r < core.spec().meshes[m].size(); ++r) {
      const RankState& rank = state_parts::rank(core.state(), {MeshId(m), Rank(r)});
      const RankStage stage = core.facts().member({MeshId(m), Rank(r)}).stage;
      check(!lives(stage), "I9", "a rank has no terminal record at the end");
      check(stage != RankStage::kEnded || rank.end.kind != EndKind::kNone || !core.state().verdict->left_behind.empty(),
            "I9", "a rank ended without a cause");
    }
  }
}

void Checker::check_leftovers() const {
  for (const auto& host : world_.hosts) {
    // `run` asks for ranks that outlive the supervisor, and their worker with them.
    if (host->off || (world_.scenario.remote && world_.scenario.spec.supervision.orphan == OrphanPolicy::kRun))
      continue;
    for (const auto& worker : host->workers) {
      const bool ranks = worker->ranks().anything_left();
      check(!ranks, "I17", text("processes of ranks live on host ", host->id.value(), " after the end"));
      check(!worker->keeper_alive() && !worker->daemon_alive(), "I17",
            text("the worker of host ", host->id.value(), " lives after the end"));
    }
  }
}

void Checker::ended(int exit_code) {
  check_leftovers();
  check_journal();
  if (told_) {
    check(exit_code == told_->exit_code, "truth",
          text("the guard exits ", exit_code, " and the verdict says ", told_->exit_code));
    return;
  }
  // Without a verdict only because the supervisor could not be kept alive, or its journal not be written.
  check(deaths_ > 0 || world_.scenario.faults.disk_full != Duration::forever(), "I15",
        "the job ended without a verdict");
}

void Checker::not_ended(const std::string& why) const {
  const Supervisor* supervisor = world_.guard->supervisor();
  const bool open = supervisor != nullptr && supervisor->open();
  violated("I15", open ? text(why, "; ", phases_of(supervisor->core())) : why);
}

}  // namespace monarch::sim
