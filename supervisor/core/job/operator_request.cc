#include "supervisor/core/job/operator_request.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "supervisor/core/recovery/restart_budget.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// What is asked has to fit into a record of the journal: a rank takes up to 11 bytes there, a host up to 5.
constexpr std::size_t kMostGangs = 4'000;
constexpr std::size_t kMostHosts = 4'000;

Error cannot(std::string why) { return {ErrorCode::kInvalid, std::move(why)}; }

std::string_view are(std::size_t count) { return count == 1 ? " is " : " are "; }

class Planner {
 public:
  Planner(const JobCore& core, const OperatorRequest& request, Instant now)
      : core_(core), request_(request), now_(now) {
    plan_.event.wish = request.wish;
    plan_.event.who = request.who;
  }

  Result<OperatorPlan> plan() {
    if (core_.state().phase == JobPhase::kNew) return cannot("the job has not begun");
    if (core_.state().phase >= JobPhase::kStopping) return cannot("the job is stopping");
    if (core_.state().foreseen) return cannot(text("nothing is started any more: ", core_.state().foreseen->why));
    Status done;
    switch (request_.wish) {
      case OperatorWish::kRestart: done = restart(); break;
      case OperatorWish::kDrain: done = drain(); break;
      case OperatorWish::kUndrain: done = undrain(); break;
      case OperatorWish::kRetry: done = retry(); break;
    }
    if (!done.ok()) return done.error();
    const std::size_t gangs = plan_.event.ranks.size();
    if (gangs > kMostGangs || plan_.event.hosts.size() > kMostHosts) {
      return cannot(text("at most ", kMostGangs, " gangs and ", kMostHosts,
                         " hosts are asked for at a time, and this is ", gangs, " and ", plan_.event.hosts.size()));
    }
    return std::move(plan_);
  }

 private:
  const GangState& gang_of(RankId id) const {
    const GangId gang = core_.spec().meshes[id.mesh.value()].gang_of(id.rank);
    return core_.facts().gang(id.mesh, gang);
  }

  Status check_ranks() const {
    for (const RankId& id : request_.ranks) {
      const auto& meshes = core_.spec().meshes;
      if (id.mesh.value() >= meshes.size() || id.rank.value() >= meshes[id.mesh.value()].size())
        return cannot("no such rank");
    }
    return {};
  }

  Result<std::vector<HostId>> hosts() const {
    std::vector<HostId> found;
    for (const std::string& name : request_.hosts) {
      std::optional<HostId> id;
      for (std::uint32_t i = 0; i < core_.hosts().size(); ++i) {
        if (core_.hosts()[i].name == name) id = HostId(i);
      }
      if (!id) return cannot(text("the job has no host ", name));
      if (std::find(found.begin(), found.end(), *id) == found.end()) found.push_back(*id);
    }
    if (found.empty()) return cannot("no host is named");
    return found;
  }

  // One rank of each gang that is meant, however many of its ranks are named.
  std::vector<RankId> gangs_meant() const {
    std::set<std::pair<MeshId, GangId>> gangs;
    std::vector<RankId> ranks;
    for (const RankId& id : request_.ranks) {
      const GangId gang = core_.spec().meshes[id.mesh.value()].gang_of(id.rank);
      if (gangs.emplace(id.mesh, gang).second) ranks.push_back(id);
    }
    return ranks;
  }

  Status restart() {
    MONARCH_TRY(check_ranks());
    const std::vector<RankId> meant = gangs_meant();
    for (const RankId& id : meant) {
      if (runs(gang_of(id).phase)) plan_.event.ranks.push_back(id);
    }
    const std::size_t count = plan_.event.ranks.size();
    if (count == 0) return cannot(text("no gang that is meant runs", what_starts(meant)));
    MONARCH_TRY(may_start_again(plan_.event.ranks));
    const std::size_t others = meant.size() - count;
    plan_.words = text(counted(count, "gang"), are(count), "stopped and started again",
                       others == 0 ? "" : text("; ", others, others == 1 ? " does" : " do", " not run"));
    return {};
  }

  // ": 1 gang is parked, and …", where they come to run otherwise.
  std::string what_starts(const std::vector<RankId>& meant) const {
    std::size_t parked = 0;
    std::size_t waiting = 0;
    for (const RankId& id : meant) {
      parked += is_parked(gang_of(id).phase) ? 1U : 0U;
      waiting += is_waiting(gang_of(id).phase) ? 1U : 0U;
    }
    if (parked > 0) {
      return text(": ", counted(parked, "gang"), are(parked), "parked, and monarch retry tries ",
                  parked == 1 ? "it" : "them", " again");
    }
    if (waiting == 0) return "";
    return text(": ", counted(waiting, "gang"), waiting == 1 ? " waits" : " wait",
                " to start, and monarch retry starts ", waiting == 1 ? "it as soon as its" : "them as soon as their",
                " hosts are there");
  }

  template <class IsMeant>
  bool any_gang_on(HostId host, const IsMeant& is_meant) const {
    for (std::uint32_t m = 0; m < core_.state().meshes.size(); ++m) {
      for (std::uint32_t g = 0; g < core_.state().meshes[m].gangs.size(); ++g) {
        if (core_.placement().range_of(MeshId(m), GangId(g), host).count == 0) continue;
        if (is_meant(core_.facts().gang(MeshId(m), GangId(g)))) return true;
      }
    }
    return false;
  }

  // One rank of each gang that runs on one of these.
  std::vector<RankId> gangs_on(const std::vector<HostId>& hosts) const {
    std::vector<RankId> ranks;
    for (std::uint32_t m = 0; m < core_.state().meshes.size(); ++m) {
      for (std::uint32_t g = 0; g < core_.state().meshes[m].gangs.size(); ++g) {
        if (!runs(core_.facts().gang(MeshId(m), GangId(g)).phase)) continue;
        const bool here = std::any_of(hosts.begin(), hosts.end(), [&](HostId host) {
          return core_.placement().range_of(MeshId(m), GangId(g), host).count > 0;
        });
        if (here) ranks.push_back({MeshId(m), Rank(core_.placement().range_of(MeshId(m), GangId(g)).first)});
      }
    }
    return ranks;
  }

  // Where nothing new may start, what is stopped has to start elsewhere, and all that runs there with it.
  Status may_start_again(const std::vector<RankId>& ranks) const {
    std::set<std::pair<MeshId, GangId>> gangs;
    for (const RankId& id : ranks) gangs.emplace(id.mesh, core_.spec().meshes[id.mesh.value()].gang_of(id.rank));
    std::vector<HostId> left;
    for (const auto& [mesh, gang] : gangs) {
      for (const HostId host : core_.placement().hosts_of(mesh, gang)) {
        const bool good = core_.facts().host(host).standing == HostStanding::kGood;
        if (!good && std::find(left.begin(), left.end(), host) == left.end()) left.push_back(host);
      }
    }
    for (const HostId host : left) {
      for (const RankId& id : gangs_on({host})) {
        if (gangs.contains({id.mesh, core_.spec().meshes[id.mesh.value()].gang_of(id.rank)})) continue;
        const std::string& name = core_.hosts()[host.value()].name;
        const bool drained = core_.facts().host(host).standing == HostStanding::kDrained;
        return cannot(text(name, drained ? " is drained" : " is quarantined",
                           ", and another gang goes on there: monarch drain --now ", name, " moves all of them"));
      }
    }
    return can_move(left.size(), left.size(), left);
  }

  // Hosts that could take the place of others.
  std::size_t free_hosts(const std::vector<HostId>& but) const {
    std::size_t free = 0;
    for (std::uint32_t i = 0; i < core_.state().hosts.size(); ++i) {
      const HostState& host = core_.facts().host(HostId(i));
      const bool serves =
          is_joined(host.phase) || is_launched(host.phase) || is_launching(host.phase) || is_cold(host.phase);
      const bool fit = serves && !host.wedged && !host.shutdown_told && host.standing == HostStanding::kGood;
      if (!fit || core_.placement().holds_ranks(HostId(i))) continue;
      free += std::find(but.begin(), but.end(), HostId(i)) == but.end() ? 1U : 0U;
    }
    return free;
  }

  // Why these slots cannot go to hosts that are not among `but`, at so many replacements.
  Status can_move(std::size_t slots, std::size_t replacements, const std::vector<HostId>& but) const {
    const std::size_t free = free_hosts(but);
    if (free < slots) {
      return cannot(text(counted(slots, "host"), slots == 1 ? " holds" : " hold", " ranks, and ",
                         free == 0 ? "no other host" : counted(free, "other host"), " could take them"));
    }
    const auto& policy = core_.spec().supervision.reallocate;
    const auto& limit = policy.max;
    const std::size_t made = still_count(core_.state().reallocations, policy.window, now_);
    if (limit && replacements > 0 && made + replacements > *limit) {
      return cannot(text("to move them takes ", counted(replacements, "replacement"),
                         ", and supervision.reallocate allows ",
                         *limit == 0 ? "none" : "fewer; monarch retry forgives those made"));
    }
    return {};
  }

  // What waits to start on a host would have to start elsewhere, at once.
  Status may_leave_what_waits(const std::vector<HostId>& hosts) const {
    std::size_t slots = 0;
    std::size_t replacements = 0;
    for (const HostId host : hosts) {
      const auto on_host = [&](const auto& is_meant) { return any_gang_on(host, is_meant); };
      if (!on_host([](const GangState& gang) { return waits(gang.phase); })) continue;
      ++slots;
      if (!request_.now && on_host([](const GangState& gang) { return runs(gang.phase); })) {
        return cannot(text("a gang waits to start on ", core_.hosts()[host.value()].name,
                           ", where another runs: --now moves both"));
      }
      replacements += on_host([](const GangState& gang) { return !waits(gang.phase) || recovers(gang); }) ? 1U : 0U;
    }
    return can_move(slots, replacements, hosts);
  }

  Status drain() {
    auto found = hosts();
    if (!found.ok()) return found.error();
    plan_.event.hosts = *found;
    MONARCH_TRY(may_leave_what_waits(*found));
    const std::vector<RankId> gangs = gangs_on(*found);
    const std::size_t count = found->size();
    plan_.words = text(counted(count, "host"), are(count), "drained: nothing new starts there");
    if (gangs.empty()) return {};
    if (!request_.now) {
      plan_.words += text("; ", counted(gangs.size(), "gang"), gangs.size() == 1 ? " goes" : " go",
                          " on there until stopped or started again");
      return {};
    }
    const auto held = static_cast<std::size_t>(std::count_if(
        found->begin(), found->end(), [this](HostId host) { return core_.placement().holds_ranks(host); }));
    MONARCH_TRY(can_move(held, held, *found));
    plan_.event.ranks = gangs;
    plan_.words += text("; ", counted(gangs.size(), "gang"), are(gangs.size()), "stopped and started on ",
                        held == 1 ? "another" : "others");
    return {};
  }

  Status undrain() {
    const auto found = hosts();
    if (!found.ok()) return found.error();
    for (const HostId host : *found) {
      if (core_.facts().host(host).standing == HostStanding::kDrained) plan_.event.hosts.push_back(host);
    }
    const std::size_t count = plan_.event.hosts.size();
    if (count == 0) return cannot(found->size() == 1 ? "it is not drained" : "none of them is drained");
    plan_.words = text(counted(count, "host"), " may be used again");
    return {};
  }

  Status retry() {
    MONARCH_TRY(check_ranks());
    plan_.event.ranks = gangs_meant();
    std::size_t waiting = 0;
    for (const RankId& id : plan_.event.ranks) {
      const GangState& gang = gang_of(id);
      waiting += is_parked(gang.phase) || (is_waiting(gang.phase) && recovers(gang)) ? 1U : 0U;
    }
    plan_.words = text("what failed is forgiven",
                       waiting == 0 ? "" : text("; ", counted(waiting, "gang"), are(waiting), "tried again"));
    return {};
  }

  const JobCore& core_;
  const OperatorRequest& request_;
  Instant now_;
  OperatorPlan plan_;
};

}  // namespace

Result<OperatorPlan> operator_plan(const JobCore& core, const OperatorRequest& request, Instant now) {
  return Planner(core, request, now).plan();
}

}  // namespace monarch
