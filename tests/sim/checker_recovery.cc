// The checker's account of restarts: each has a cause (I11) and stays within its budget (I10), nothing of the
// generation before it can act any more (I3, I21), and what ranks share refuses those that come too late (I2).

#include <algorithm>
#include <utility>

#include "supervisor/core/state/first_cause.h"
#include "tests/sim/checker.h"
#include "tests/sim/world.h"
#include "tests/supervisor/core/state_parts.h"
#include "transport/base/text.h"

namespace monarch::sim {

namespace {

// Of a program that names no steps; a little less, for clocks differ.
constexpr Duration kProgress = Duration::seconds(59);
constexpr Duration kBookkeeping = Duration::seconds(5);

}  // namespace

void Checker::learn_causes(const CoreEvent& event) {
  if (const auto* change = std::get_if<RankChanged>(&event)) {
    const RankReport& report = change->report;
    if (report.phase == RankPhase::kWedged) learn_of_loss(change->host);
    check_readiness(report);
    if (!is_of_spec(report.process.rank)) return;
    // Who serves is there until it is told to end.
    const bool quit = world_.scenario.spec.meshes[report.process.rank.mesh.value()].serves &&
                      report.end.kind == EndKind::kExited && !report.end.after_our_signal;
    if (report.end.kind == EndKind::kNone || (!is_failure(report.end) && !quit)) return;
    const GangId gang = world_.scenario.spec.meshes[report.process.rank.mesh.value()].gang_of(report.process.rank.rank);
    // The last words of one that is over may come after the end of a later one.
    std::optional<Generation>& caused = gangs_[{report.process.rank.mesh, gang}].caused;
    caused = std::max(caused, std::optional(report.process.generation));
  }
  if (const auto* asked = std::get_if<OperatorAsked>(&event)) learn_of_wish(*asked);
  if (const auto* ended = std::get_if<WorkerEnded>(&event)) learn_of_loss(ended->host);
  if (const auto* silent = std::get_if<HostSilent>(&event)) learn_of_loss(silent->host);
}

// Of those that were not ready in time, which they had; their ranks may all end well, once they are told to.
void Checker::learn_of_hangs(const JobCore& core) {
  const JobSpec& spec = world_.scenario.spec;
  for (auto& [key, started] : started_gangs_) {
    const GangState& gang = state_parts::gang(core.state(), key.first, key.second);
    GangAccount& account = gangs_[key];
    if (!gang.hung || core.facts().crew(key.first, key.second).generation != started.first ||
        account.caused == started.first)
      continue;
    const Duration waited = world_.scheduler.now() - account.begun_at;
    check(waited + waited / kClocksDiffer >= spec.start_timeout, "I11",
          text("gang ", key.second.value(), " of mesh ", key.first.value(), " had ", to_text(waited), " to be ready"));
    account.caused = started.first;
  }
}

void Checker::learn_of_verdict(const RankHung& hung, const JobCore& core) {
  hangs_.judged(hung, core);
  if (hung.action != HangAction::kRestart) return;
  const GangId gang = world_.scenario.spec.meshes[hung.process.rank.mesh.value()].gang_of(hung.process.rank.rank);
  gangs_[{hung.process.rank.mesh, gang}].caused = hung.process.generation;
}

// Of hosts that were heard of within two beats.
void Checker::watch_hangs(const JobCore& core) {
  if (world_.scenario.hang_limit == Duration::forever()) return;
  const Duration lately = world_.scenario.spec.supervision.heartbeat * 2;
  std::set<HostId> heard;
  for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
    if (now() - hosts_[i].last_good_at < lately) heard.insert(HostId(i));
  }
  hangs_.look(core, heard);
}

void Checker::learn_of_parked(const JobCore& core) {
  for (std::uint32_t m = 0; m < core.spec().meshes.size(); ++m) {
    if (!core.spec().meshes[m].supervision.shrink) continue;
    const auto& gangs = state_parts::gangs(core.state(), MeshId(m));
    for (std::uint32_t g = 0; g < gangs.size(); ++g) {
      if (gangs[g].phase == GangPhase::kParked) parked_.emplace(MeshId(m), GangId(g));
    }
  }
}

// Who asks is the cause, also where nothing of it may run at the moment.
void Checker::learn_of_wish(const OperatorAsked& asked) {
  if (asked.wish == OperatorWish::kUndrain) return;
  for (const RankId& rank : asked.ranks) {
    const std::pair gang{rank.mesh, world_.scenario.spec.meshes[rank.mesh.value()].gang_of(rank.rank)};
    GangAccount& account = gangs_[gang];
    const auto known = started_gangs_.find(gang);
    if (known != started_gangs_.end()) account.caused = known->second.first;
    account.asked = true;
    if (asked.wish == OperatorWish::kRetry) account.restarts.clear();
  }
}

// A cause for all that has ranks there.
void Checker::learn_of_loss(HostId host) {
  for (const auto& [key, where] : started_) {
    if (where != host || !is_of_spec(key.rank)) continue;
    const std::pair gang{key.rank.mesh, world_.scenario.spec.meshes[key.rank.mesh.value()].gang_of(key.rank.rank)};
    const auto known = started_gangs_.find(gang);
    if (known == started_gangs_.end() || known->second.first != key.generation) continue;
    gangs_[gang].caused = key.generation;
    gangs_[gang].by_host = true;
  }
}

void Checker::check_restart(MeshId mesh, GangId gang, Generation before, Generation now_begun) {
  // By a rank's own end, or by its host's: each has a budget of its own.
  GangAccount& account = gangs_[{mesh, gang}];
  const std::string name = text("gang ", gang.value(), " of mesh ", mesh.value());
  const RestartPolicy& policy = world_.scenario.spec.meshes[mesh.value()].supervision.restart;
  const Instant now = world_.scheduler.now();
  check(now_begun > before, "I4", text(name, " goes back to an earlier generation"));
  check(world_.scenario.faults.any, "I11", text(name, " is started again and nothing is wrong"));
  check(account.caused == before, "I11", text(name, " is started again without a cause"));
  ++account.all_restarts;
  if (now - account.started_at >= kProgress) account.restarts.clear();
  const bool asked = std::exchange(account.asked, false);
  if (std::exchange(account.by_host, false) || asked) {
    const auto& most = world_.scenario.spec.supervision.reallocate.max;
    const bool returns = world_.scenario.spec.meshes[mesh.value()].supervision.shrink.has_value();
    check(asked || returns || most != 0U || policy.max != 0U, "I10",
          text(name, " is started again, and its job fails fast"));
    return;
  }
  check(policy.max != 0U, "I10", text(name, " is started a second time, and its job fails fast"));
  const Duration counts = policy.window - policy.backoff_max * 2 - kBookkeeping;
  const auto spent = std::count_if(account.restarts.begin(), account.restarts.end(),
                                   [&](Instant earlier) { return now - earlier < counts; });
  check(!policy.max || static_cast<std::uint32_t>(spent) < *policy.max, "I10",
        text(name, " is started again after ", spent, " restarts"));
  account.restarts.push_back(now);
}

// I15: a job that gives up for want of restarts has used them.
void Checker::check_budget_spent(const Verdict& verdict) const {
  if (verdict.cause.kind != CauseKind::kRank || !verdict.cause.rule.ends_with("are spent: fail") ||
      !verdict.cause.rule.starts_with("restart"))
    return;
  const auto& meshes = world_.scenario.spec.meshes;
  for (std::uint32_t m = 0; m < meshes.size(); ++m) {
    if (meshes[m].name != verdict.cause.mesh) continue;
    const auto gang = gangs_.find({MeshId(m), GangId(verdict.cause.gang.value_or(0))});
    const std::uint32_t used = gang == gangs_.end() ? 0 : gang->second.all_restarts;
    check(used >= meshes[m].supervision.restart.max.value_or(0), "I15",
          text("mesh ", verdict.cause.mesh, " fails for want of restarts, and has used ", used));
  }
}

// A process begins where no other of its rank lives, on its host (I21), or could act, on another (I3).
void Checker::check_predecessors(const RankProcess& process) {
  const Instant now = world_.scheduler.now();
  for (const RankProcess* other : processes_[process.key.rank]) {
    const std::string which = text("rank ", process.key.rank.mesh.value(), "/", process.key.rank.rank.value(),
                                   " generation ", process.key.generation.counter);
    if (other->key.generation > process.key.generation) continue;  // it is this one that comes too late
    // Of a machine whose end nobody could prove: what the kernel has still to end, under a worker that is gone, can do
    // nothing.
    const auto& kept = world_.host(process.host).worker()->ranks().processes();
    const auto known = kept.find(other->key);
    const bool of_another_worker = known == kept.end() || &known->second != other;
    const bool left = world_.scenario.remote && of_another_worker && other->killed;
    const bool gone = left || (!other->alive() && other->children == 0);
    check(gone || other->host != process.host, "I21", text(which, " starts beside its predecessor"));
    if (!is_of_spec(process.key.rank)) continue;  // it does nothing of the job's
    check(gone || other->leased_until < now, "I3", text(which, " starts while its predecessor has a lease"));
  }
}

// I2: the resource knows the highest generation that has written, and refuses lower ones.
void Checker::writes(const RankProcess& process) {
  Generation& highest = written_[process.key.rank];
  const bool refused = process.key.generation < highest;
  if (refused && !world_.mutant(Mutant::kOpenResource)) return;
  check(!refused, "I2",
        text("rank ", process.key.rank.mesh.value(), "/", process.key.rank.rank.value(),
             " writes after its successor has"));
  highest = process.key.generation;
}

}  // namespace monarch::sim
