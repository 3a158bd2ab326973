// Whom a blow strikes, and whether what it struck is well again.

#include <algorithm>
#include <tuple>
#include <utility>

#include "supervisor/drill/core/draw.h"
#include "supervisor/drill/core/drill_core.h"

namespace monarch::drill {

namespace {

bool is_host_ready(const JobWatch& watch, const std::string& name) {
  return std::any_of(watch.hosts().begin(), watch.hosts().end(),
                     [&](const WatchedHost& host) { return host.name == name && host.ready; });
}

// Gangs with ranks there; nothing: one of them is not up.
std::optional<std::vector<BlowGang>> gangs_on(const JobWatch& watch, const std::string& host, bool also_down) {
  std::vector<BlowGang> gangs;
  for (const WatchedGang& gang : watch.gangs()) {
    const bool there =
        std::any_of(gang.ranks.begin(), gang.ranks.end(), [&](const WatchedRank& rank) { return rank.host == host; });
    if (!there || gang.over()) continue;
    if (!gang.up() && !also_down) return std::nullopt;
    gangs.push_back({gang.mesh, gang.gang});
  }
  return gangs;
}

// Of all whom it may strike, those who are well.
std::vector<BlowTarget> well_targets(const Fault& fault, const FaultTarget& meant, const DrillPlan& plan,
                                     const JobWatch& watch) {
  std::vector<BlowTarget> targets;
  const bool overlap = plan.scenario.overlap;
  for (const WatchedGang& gang : watch.gangs()) {
    if (gang.over() || (!gang.up() && !overlap)) continue;
    for (std::uint32_t i = 0; i < gang.ranks.size(); ++i) {
      const WatchedRank& rank = gang.ranks[i];
      const auto number = static_cast<std::uint32_t>(gang.gang * gang.ranks.size() + i);
      const RankId id{MeshId(gang.mesh), Rank(number)};
      if (!rank.well || !is_host_ready(watch, rank.host) || !plan.meant(meant, id, rank.host)) continue;
      if (fault.whom == StrikeWhom::kRank) {
        targets.push_back({.host = rank.host,
                           .mesh = plan.meshes[gang.mesh].name,
                           .rank = number,
                           .gangs = {{gang.mesh, gang.gang}}});
        continue;
      }
      const bool known = std::any_of(targets.begin(), targets.end(),
                                     [&](const BlowTarget& target) { return target.host == rank.host; });
      if (known) continue;
      if (auto gangs = gangs_on(watch, rank.host, overlap)) {
        targets.push_back({.host = rank.host, .mesh = "", .rank = 0, .gangs = std::move(*gangs)});
      }
    }
  }
  // The order does not depend on who is where in the pool at this moment.
  std::sort(targets.begin(), targets.end(), [](const BlowTarget& a, const BlowTarget& b) {
    return std::tie(a.host, a.mesh, a.rank) < std::tie(b.host, b.mesh, b.rank);
  });
  return targets;
}

}  // namespace

std::optional<BlowTarget> drawn_target(const DrillPlan& plan, const JobWatch& watch, std::uint32_t entry,
                                       std::uint32_t draw) {
  const FaultEntry& written = plan.scenario.faults[entry];
  const Fault& fault = *find_fault(written.fault);
  if (fault.whom == StrikeWhom::kSupervisor) return BlowTarget{};
  std::vector<BlowTarget> targets = well_targets(fault, written.target, plan, watch);
  if (targets.empty()) return std::nullopt;
  return std::move(targets[draw_index({plan.seed, entry, draw}, targets.size())]);
}

bool DrillCore::concerns(const Tracked& tracked, const JobEvent& event) const {
  const auto& told_by = tracked.fault->told_by;
  if (std::find(told_by.begin(), told_by.end(), event.kind) == told_by.end()) return false;
  const BlowTarget& target = tracked.blow.target;
  if (tracked.fault->whom == StrikeWhom::kSupervisor) return true;
  if (const WatchedGang* const gang = watch_.gang_of(event); gang != nullptr) {
    return std::any_of(target.gangs.begin(), target.gangs.end(),
                       [&](const BlowGang& struck) { return struck.mesh == gang->mesh && struck.gang == gang->gang; });
  }
  if (!target.mesh.empty()) return event.mesh == target.mesh && event.rank == target.rank;
  return event.host == target.host;
}

void DrillCore::on_supervisor_lost() {
  const bool struck = std::any_of(blows_.begin(), blows_.end(), [](const Tracked& tracked) {
    const bool under_way = tracked.life == Life::kStriking || tracked.life == Life::kOpen;
    return under_way && tracked.fault->whom == StrikeWhom::kSupervisor;
  });
  if (struck) return;
  for (const Tracked& tracked : blows_) {
    // What takes effect only now is taken back then.
    const bool in_effect = tracked.life == Life::kOpen && !tracked.back;
    const bool about_to_be = tracked.life == Life::kStriking && tracked.fault->can_last();
    if (in_effect || about_to_be) actions_.emplace_back(TakeBack{tracked.blow.number});
  }
}

bool DrillCore::recovered(const Tracked& tracked) const {
  if (!tracked.back) return false;
  if (tracked.fault->needs_seeing && !tracked.seen) return false;
  const std::vector<BlowGang>& gangs = tracked.blow.target.gangs;
  return std::all_of(gangs.begin(), gangs.end(), [&](const BlowGang& struck) {
    const WatchedGang* const gang = watch_.find(struck.mesh, struck.gang);
    return gang == nullptr || gang->up() || gang->over();
  });
}

std::vector<std::string> DrillCore::hosts_of(const Blow& blow) const {
  std::vector<std::string> hosts;
  if (!blow.target.host.empty()) hosts.push_back(blow.target.host);
  for (const BlowGang& struck : blow.target.gangs) {
    const WatchedGang* const gang = watch_.find(struck.mesh, struck.gang);
    if (gang == nullptr) continue;
    for (const WatchedRank& rank : gang->ranks) {
      if (std::find(hosts.begin(), hosts.end(), rank.host) == hosts.end()) hosts.push_back(rank.host);
    }
  }
  return hosts;
}

}  // namespace monarch::drill
