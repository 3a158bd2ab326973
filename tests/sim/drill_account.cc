#include "tests/sim/drill_account.h"

#include <algorithm>
#include <csignal>
#include <optional>
#include <string>

#include "tests/sim/violation.h"
#include "tests/sim/world.h"
#include "tests/supervisor/core/state_parts.h"
#include "transport/base/text.h"

namespace monarch::sim {

namespace {

std::optional<HostId> host_of(const JobCore& core, const std::string& name) {
  for (std::uint32_t i = 0; i < core.hosts().size(); ++i) {
    if (core.hosts()[i].name == name) return HostId(i);
  }
  return std::nullopt;
}

// Of an event about one of them.
std::optional<RankId> rank_of(const JobCore& core, const JobEvent& event) {
  for (std::uint32_t m = 0; m < core.spec().meshes.size(); ++m) {
    if (core.spec().meshes[m].name == event.mesh && event.rank) return RankId{MeshId(m), Rank(*event.rank)};
  }
  return std::nullopt;
}

std::string detail(const JobEvent& event, const std::string& name) {
  for (const auto& [key, value] : event.details) {
    if (key == name) return value;
  }
  return "";
}

}  // namespace

void DrillAccount::violated(const std::string& message) { throw Violation{"drill", message}; }

void DrillAccount::decided(const CoreEvent& event, const std::vector<Action>& actions, const JobCore& core) {
  if (world_.scenario.faults.drills == Duration::forever()) return;
  if (const auto* noted = std::get_if<DrillNoted>(&event)) learn(*noted, core);
  for (const Action& action : actions) {
    const auto* told = std::get_if<EmitEvent>(&action);
    if (told == nullptr) continue;
    if (told->event.kind == EventKind::kGangFailed) check_failure(told->event, core);
    if (told->event.kind != EventKind::kHostLost) continue;
    if (const auto host = host_of(core, told->event.host)) check_loss(*host, core);
  }
  for (std::uint32_t i = 0; i < core.hosts().size(); ++i) {
    const HostState& host = state_parts::host(core.state(), HostId(i));
    known_[HostId(i)] = {.suspicions = host.suspicions, .lost_at = host.lost_at};
  }
}

void DrillAccount::learn(const DrillNoted& noted, const JobCore& core) {
  if (noted.what != DrillWhat::kFault || noted.number >= kPlanted) return;
  if (noted.rank) {
    const MeshId mesh = noted.rank->mesh;
    named_.emplace(mesh, core.spec().meshes[mesh.value()].gang_of(noted.rank->rank));
  } else if (noted.host) {
    for (std::uint32_t m = 0; m < core.spec().meshes.size(); ++m) {
      const GangRange here = core.placement().gangs_on(MeshId(m), *noted.host);
      for (std::uint32_t g = here.first; g < here.first + here.count; ++g) named_.emplace(MeshId(m), GangId(g));
    }
  }
}

// Since the event before.
bool DrillAccount::is_evidence(RankId rank, HostId host, const JobCore& core) const {
  const auto before = known_.find(host);
  for (const Suspicion& suspicion : state_parts::host(core.state(), host).suspicions) {
    if (suspicion.rank != rank) continue;
    if (before == known_.end()) return true;
    const auto& old = before->second.suspicions;
    return std::none_of(old.begin(), old.end(),
                        [&](const Suspicion& one) { return one.rank == suspicion.rank && one.at == suspicion.at; });
  }
  return false;
}

void DrillAccount::check_failure(const JobEvent& failed, const JobCore& core) const {
  const auto rank = rank_of(core, failed);
  const auto host = host_of(core, failed.host);
  if (!rank || !host || detail(failed, "remedy") != "restart" || detail(failed, "cause") != "rank") return;
  const std::string name = text("rank ", rank->mesh.value(), "/", rank->rank.value(), " on host ", host->value());
  const bool own = std::any_of(struck_.begin(), struck_.end(), [&](const Incarnation& process) {
    return process.rank == *rank && process.generation.counter == failed.generation;
  });
  if (own && is_evidence(*rank, *host, core)) violated(text(name, " was struck by a drill, and its host is blamed"));
  const GangId gang = core.spec().meshes[rank->mesh.value()].gang_of(rank->rank);
  const auto& failure = state_parts::gang(core.state(), rank->mesh, gang).failure;
  if (named_.contains({rank->mesh, gang}) || !failure) return;
  const RankEnd& end = failure->cause.end;
  const bool speaks = end.kind == EndKind::kSignaled && end.value == SIGSEGV && !end.after_our_signal;
  if (speaks && !is_evidence(*rank, *host, core))
    violated(text(name, " died of something that no drill did, and that is not held against its host"));
}

void DrillAccount::check_loss(HostId host, const JobCore& core) {
  const std::vector<Instant>& now = state_parts::host(core.state(), host).lost_at;
  if (struck_hosts_.erase(host) == 0 || now.empty()) return;
  const auto before = known_.find(host);
  const bool is_new =
      before == known_.end() || before->second.lost_at.empty() || before->second.lost_at.back() != now.back();
  if (is_new) violated(text("host ", host.value(), " was lost by a drill, and that counts against it"));
}

}  // namespace monarch::sim
