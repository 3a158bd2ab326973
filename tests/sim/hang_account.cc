#include "tests/sim/hang_account.h"

#include <algorithm>
#include <utility>

#include "tests/sim/violation.h"
#include "tests/sim/world.h"
#include "tests/supervisor/core/state_parts.h"
#include "transport/base/text.h"

namespace monarch::sim {

namespace {

constexpr Duration kLookKnown = Duration::milliseconds(1'200);  // of a keeper, with what it takes to be said
constexpr Duration kOnItsWay = Duration::milliseconds(100);     // of a word that no beat has brought yet
constexpr Duration kLately = Duration::seconds(15);             // stood still, when its stacks were about to be taken
constexpr Duration kNoticed = Duration::seconds(30);  // beyond the limit: beats that are lost, the dump, a grace

std::string name_of(RankId rank) { return text("rank ", rank.mesh.value(), "/", rank.rank.value()); }

}  // namespace

std::vector<RankId> every_rank(const JobSpec& spec) {
  std::vector<RankId> ranks;
  for (std::uint32_t m = 0; m < spec.meshes.size(); ++m) {
    for (std::uint32_t r = 0; r < spec.meshes[m].size(); ++r) ranks.push_back({MeshId(m), Rank(r)});
  }
  return ranks;
}

void HangAccount::asked_to_hold(const std::vector<RankId>& ranks) { to_be_held_.insert(ranks.begin(), ranks.end()); }

void HangAccount::held(const std::vector<RankId>& ranks) {
  for (const RankId& rank : ranks) {
    if (to_be_held_.erase(rank) != 0) held_.insert(rank);
  }
}

void HangAccount::released(const std::vector<RankId>& ranks) {
  for (const RankId& rank : ranks) {
    to_be_held_.erase(rank);
    held_.erase(rank);
  }
}

void HangAccount::stopped(const std::vector<RankId>& ranks, const JobCore& core) {
  for (const RankId& rank : ranks) {
    const Incarnation key{rank, core.facts().crew_with(rank).generation};
    if (stopped_.insert(key).second) asked_.insert(key);
  }
}

void HangAccount::stop_is_durable(const std::vector<RankId>& ranks) {
  for (const RankId& rank : ranks) {
    std::erase_if(asked_, [&rank](const Incarnation& key) { return key.rank == rank; });
  }
}

void HangAccount::supervisor_died() {
  unseen_.clear();
  to_be_held_.clear();
  for (const Incarnation& key : std::exchange(asked_, {})) stopped_.erase(key);
}

void HangAccount::continued(const std::vector<RankId>& ranks) {
  for (const RankId& rank : ranks) {
    std::erase_if(stopped_, [&rank](const Incarnation& key) { return key.rank == rank; });
  }
}

void HangAccount::counts(HostId id, Instant sent_at) {
  Worker* worker = world_.host(id).worker();
  if (worker == nullptr) return;
  for (const auto& [key, process] : worker->ranks().processes()) {
    const bool traced = process.alive() && process.standstill == Standstill::kTraced;
    if (!traced) {
      traced_.erase(key);
    } else if (!process.frozen && process.stands_since + kLookKnown < sent_at) {
      traced_.insert(key);
    }
  }
}

void HangAccount::dumped(RankId rank, Generation generation) { dumped_.insert({rank, generation}); }

RankProcess* HangAccount::process_of(HostId host, const Incarnation& key) const {
  Worker* worker = world_.host(host).worker();
  if (worker == nullptr) return nullptr;
  const auto found = worker->ranks().processes().find(key);
  return found == worker->ranks().processes().end() ? nullptr : &found->second;
}

bool HangAccount::left_alone(MeshId mesh, GangId gang, Generation generation) const {
  const MeshSpec& spec = world_.scenario.spec.meshes[mesh.value()];
  const auto of_gang = [&](RankId rank) { return rank.mesh == mesh && spec.gang_of(rank.rank) == gang; };
  const auto present = [&](const Incarnation& key) { return of_gang(key.rank) && key.generation == generation; };
  return std::any_of(held_.begin(), held_.end(), of_gang) || std::any_of(stopped_.begin(), stopped_.end(), present) ||
         std::any_of(traced_.begin(), traced_.end(), present);
}

// After its core has heard of it.
void HangAccount::judged(const RankHung& verdict, const JobCore& core) {
  const MeshId mesh = verdict.process.rank.mesh;
  const GangId g = core.spec().meshes[mesh.value()].gang_of(verdict.process.rank.rank);
  const GangState& gang = state_parts::gang(core.state(), mesh, g);
  if (core.facts().crew(mesh, g).generation != verdict.process.generation || gang.hung != verdict.process.rank) return;
  must(world_.scenario.faults.any, "I11", text(name_of(verdict.process.rank), " hangs and nothing is wrong"));
  must(!left_alone(mesh, g, verdict.process.generation), "hang",
       text("the gang of ", name_of(verdict.process.rank), " is ended for a hang, and somebody holds a rank of it"));
  must(dumped_.contains(verdict.process) && !verdict.stacks.empty(), "hang",
       text(name_of(verdict.process.rank), " is ended, and nobody has looked at its stacks"));
  const RankProcess* process = process_of(verdict.host, verdict.process);
  must(process != nullptr, "truth", text(name_of(verdict.process.rank), " hangs, and there is no such process"));
  const Instant now = world_.scheduler.now();
  // What it said last may be on its way still.
  const Duration since = now - process->last_word_at;
  const Duration silent = since < kOnItsWay ? process->silent_before : since;
  const bool stands = process->standstill != Standstill::kNone || now - process->stood_until < kLately;
  // Who is behind is named for those who wait for it, and may have spoken later than they.
  must(stands || silent + silent / kClocksDiffer >= verdict.limit / 2, "truth",
       text(name_of(verdict.process.rank), " is said to hang, and has spoken ", to_text(since), " ago"));
}

void HangAccount::look(const JobCore& core, const std::set<HostId>& heard) {
  const std::vector<RankId> ranks = every_rank(core.spec());
  for (const auto& host : world_.hosts) {
    if (host->worker() == nullptr || host->off || host->frozen() || !heard.contains(host->id)) continue;
    for (const auto& [key, process] : host->worker()->ranks().processes()) {
      if (key.rank.mesh.value() >= core.spec().meshes.size()) continue;
      const MeshSpec& mesh = core.spec().meshes[key.rank.mesh.value()];
      const GangId g = mesh.gang_of(key.rank.rank);
      const GangState& gang = state_parts::gang(core.state(), key.rank.mesh, g);
      const bool alive = gang.phase == GangPhase::kStarting || gang.phase == GangPhase::kRunning;
      const bool hangs = process.executes() && !process.acts() && process.standstill != Standstill::kTraced &&
                         process.progress.step.has_value();
      if (!hangs || !alive || core.facts().crew(key.rank.mesh, g).generation != key.generation ||
          mesh.supervision.hang.action != HangAction::kRestart) {
        unseen_.erase(key);
        continue;
      }
      // Or held by an order whose answer nobody has heard.
      const bool held = std::any_of(ranks.begin(), ranks.end(), [&, of = key.rank.mesh](const RankId& rank) {
        return rank.mesh == of && mesh.gang_of(rank.rank) == g && is_left_alone(core.facts(), rank);
      });
      if (held || left_alone(key.rank.mesh, g, key.generation)) continue;
      Duration& unseen = unseen_[key];
      unseen = unseen + Duration::seconds(1);
      must(unseen < world_.scenario.hang_limit + kNoticed, "hang",
           text(name_of(key.rank), " has not got on for ", to_text(unseen), ", and nobody notices"));
    }
  }
}

}  // namespace monarch::sim
