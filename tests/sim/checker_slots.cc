// The checker's account of hosts that do not start: who has which slot, and that no started gang ever moves.

#include <algorithm>

#include "tests/sim/checker.h"
#include "tests/sim/world.h"
#include "transport/base/text.h"

namespace monarch::sim {

// Counted as the spec counts them, without a look at where the core has put them.
std::uint32_t Checker::slot_of(RankId rank) const { return slots_.first_slot(rank.mesh) + slots_.host_index(rank); }

void Checker::learn_of_hosts(const Ticket& here, const CoreEvent& event, const std::vector<Action>& actions) {
  const auto destroyed = [&](HostId host) {
    return std::any_of(actions.begin(), actions.end(), [host](const Action& action) {
      const auto* destroy = std::get_if<DestroyWorker>(&action);
      return destroy != nullptr && destroy->host == host;
    });
  };
  if (const auto* joined = std::get_if<WorkerJoined>(&event)) account(joined->host).joined = true;
  const auto is_out_from_here = [&](HostId host) {
    if (!is_out(account(host), here.first)) account(host).out = here;
  };
  if (const auto* ended = std::get_if<WorkerEnded>(&event)) is_out_from_here(ended->host);
  for (const Action& action : actions) {
    if (const auto* destroy = std::get_if<DestroyWorker>(&action)) is_out_from_here(destroy->host);
  }
  // One that was destroyed meanwhile has not failed by itself.
  const auto* failed = std::get_if<WorkerLaunchFailed>(&event);
  if (failed != nullptr && destroyed(failed->host)) account(failed->host).named = here;
}

// What a supervisor decided and never made durable is as if it had not been, for the next one.
bool Checker::is_out(const HostAccount& host, Term term) const {
  return host.out && (host.out->first == term || is_durable(*host.out));
}

// A gang starts as a whole, on hosts that have all said hello and are not out.
void Checker::check_starts(const Ticket& here, const std::vector<Action>& actions, const JobCore& core) {
  std::map<std::pair<MeshId, GangId>, std::size_t> ranks;
  for (const Action& action : actions) {
    const auto* start = std::get_if<SendStart>(&action);
    if (start == nullptr) continue;
    ranks[{start->message.mesh, start->message.gang}] += start->message.ranks.size();
    const HostAccount& where = account(start->host);
    const bool out = is_out(where, here.first);
    check(where.heard && !out, "slots",
          text("mesh ", start->message.mesh.value(), " starts on host ", start->host.value(), ", which ",
               out ? "is out" : "has not joined"));
  }
  for (const auto& [gang, count] : ranks) {
    check(count == slots_.range_of(gang.first, gang.second).count, "slots",
          text("gang ", gang.second.value(), " of mesh ", gang.first.value(), " starts with ", count, " ranks"));
    const Generation generation = core.state().meshes[gang.first.value()].gangs[gang.second.value()].generation;
    const auto [before, first] = started_gangs_.try_emplace(gang, generation, here);
    const auto& [started, when] = before->second;
    const bool lost = when.first != here.first && !is_durable(when);
    check(first || lost || started == generation, "slots",
          text("gang ", gang.second.value(), " of mesh ", gang.first.value(), " is started a second time"));
    if (lost) before->second = {generation, here};
  }
}

// A slot that has started stays on its host, and a host has one slot.
void Checker::check_slot(const SendStart& start) {
  for (const RankStart& rank : start.message.ranks) {
    const std::uint32_t slot = slot_of(rank.rank);
    const auto [known, first] = slot_hosts_.try_emplace(slot, start.host);
    check(known->second == start.host, "slots",
          text("slot ", slot, " has started on host ", known->second.value(), " and starts on ", start.host.value()));
    if (!first) continue;
    const auto users = std::count_if(slot_hosts_.begin(), slot_hosts_.end(),
                                     [&](const auto& other) { return other.second == start.host; });
    check(users == 1, "slots", text("host ", start.host.value(), " has ", users, " slots"));
  }
}

// The verdict names whoever did not start, and hosts are wanting only when all have been tried.
void Checker::check_failed_hosts(const Verdict& verdict, const JobCore& core) const {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (!hosts_[i].named || !is_durable(*hosts_[i].named)) continue;
    const auto& told = verdict.failed_hosts;
    const bool named = std::any_of(told.begin(), told.end(),
                                   [&](const HostFailure& failed) { return failed.host == core.hosts()[i].name; });
    check(named || verdict.failed_hosts_untold > 0, "truth",
          text("host ", i, " did not start, and the verdict does not name it"));
  }
  if (!verdict.cause.rule.starts_with("host does not start")) return;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    check(hosts_[i].launches > 0, "slots", text("the job fails for lack of hosts, and host ", i, " was never tried"));
  }
}

}  // namespace monarch::sim
