// The checker's account of hosts that do not start: who has which slot, and that no started gang ever moves.

#include <algorithm>
#include <utility>

#include "tests/sim/checker.h"
#include "tests/sim/world.h"
#include "tests/supervisor/core/state_parts.h"
#include "transport/base/text.h"

namespace monarch::sim {

// Counted as the spec counts them, without a look at where the core has put them.
std::uint32_t Checker::slot_of(RankId rank) const { return slots_.first_slot(rank.mesh) + slots_.host_index(rank); }

void Checker::learn_of_hosts(const Ticket& here, const CoreEvent& event, const std::vector<Action>& actions,
                             const JobCore& core) {
  if (const auto* joined = std::get_if<WorkerJoined>(&event)) {
    account(joined->host).joined = true;
    account(joined->host).joined_at = now();
  }
  const auto is_out_from_here = [&](HostId host) {
    if (!is_out(account(host), here.first)) account(host).out = here;
  };
  if (const auto* ended = std::get_if<WorkerEnded>(&event)) is_out_from_here(ended->host);
  for (const Action& action : actions) {
    const auto* destroy = std::get_if<DestroyWorker>(&action);
    if (destroy == nullptr) continue;
    is_out_from_here(destroy->host);
    learn_of_loss(destroy->host);  // what it could not end there is a cause for all that runs there
  }
  // Whatever the reason, people are told of it one by one, and the verdict has to name them all.
  for (const Action& action : actions) {
    const auto* told = std::get_if<EmitEvent>(&action);
    if (told == nullptr) continue;
    const bool failed = told->event.kind == EventKind::kHostFailed;
    const bool left = told->event.kind == EventKind::kHostQuarantined || told->event.kind == EventKind::kHostDrained;
    for (std::uint32_t i = 0; (failed || left) && i < core.hosts().size(); ++i) {
      if (core.hosts()[i].name != told->event.host) continue;
      if (failed) account(HostId(i)).named = here;
      for (const auto& [slot, host] : slot_hosts_) {
        if (left && host == HostId(i)) may_leave_.insert(slot);
      }
    }
  }
}

// Where nothing will run any more another slot may need the host.
void Checker::learn_of_done_slots(const JobCore& core) {
  std::set<std::uint32_t> taken;
  for (std::uint32_t m = 0; m < core.spec().meshes.size(); ++m) {
    const auto& gangs = state_parts::gangs(core.state(), MeshId(m));
    for (std::uint32_t g = 0; g < gangs.size(); ++g) {
      if (has_ended(gangs[g].phase)) continue;
      for (const RankId& rank : slots_.ranks_of(MeshId(m), GangId(g))) taken.insert(slot_of(rank));
    }
  }
  for (const auto& [slot, host] : slot_hosts_) {
    if (!taken.contains(slot)) may_leave_.insert(slot);
  }
}

// What a supervisor decided and never made durable is as if it had not been, for the next one.
bool Checker::is_out(const HostAccount& host, Term term) const {
  return host.out && (host.out->first == term || is_durable(*host.out));
}

// Decided also where nothing is asked of a host for it, and its start waits for another.
void Checker::learn_of_generations(const Ticket& here, const JobCore& core) {
  for (std::uint32_t m = 0; m < core.spec().meshes.size(); ++m) {
    const auto& gangs = state_parts::gangs(core.state(), MeshId(m));
    for (std::uint32_t g = 0; g < gangs.size(); ++g) {
      std::map<Generation, Ticket>& decided = decided_gangs_[{MeshId(m), GangId(g)}];
      // What a supervisor had decided and took with it.
      decided.erase(decided.upper_bound(core.facts().crew(MeshId(m), GangId(g)).generation), decided.end());
      decided.try_emplace(core.facts().crew(MeshId(m), GangId(g)).generation, here);
    }
  }
}

// A gang starts as a whole, on hosts that have all said hello and are not out.
void Checker::check_starts(const Ticket& here, const std::vector<Action>& actions, const JobCore& core) {
  learn_of_generations(here, core);
  std::map<std::pair<MeshId, GangId>, std::size_t> ranks;
  for (const Action& action : actions) {
    const bool begins = std::holds_alternative<SendStart>(action) || std::holds_alternative<LaunchWorker>(action);
    check(!begins || !core.state().foreseen, "foreseen", "something is begun though an end is foreseen");
    if (const auto* reserve = std::get_if<SendReserve>(&action)) {
      gangs_[{reserve->message.mesh, reserve->message.gang}].begun_at = world_.scheduler.now();
    }
    const auto* start = std::get_if<SendStart>(&action);
    if (start == nullptr) continue;
    const bool of_spec = start->message.mesh.value() < core.spec().meshes.size();
    if (of_spec) check_slot(*start, core);
    if (of_spec) ranks[{start->message.mesh, start->message.gang}] += start->message.ranks.size();
    const HostAccount& where = account(start->host);
    const bool out = is_out(where, here.first);
    check(where.heard && !out, "slots",
          text("mesh ", start->message.mesh.value(), " starts on host ", start->host.value(), ", which ",
               out ? "is out" : "has not joined"));
  }
  for (const auto& [gang, count] : ranks) {
    check(count == slots_.range_of(gang.first, gang.second).count, "slots",
          text("gang ", gang.second.value(), " of mesh ", gang.first.value(), " starts with ", count, " ranks"));
    const Generation generation = core.facts().crew(gang.first, gang.second).generation;
    const auto [before, first] = started_gangs_.try_emplace(gang, generation, here);
    const auto& [started, when] = before->second;
    const bool lost = when.first != here.first && !is_durable(when);
    const std::uint64_t life = claims_.life_of(core, gang.first, gang.second);
    // A slot that is claimed begins anew.
    const bool anew = std::exchange(gangs_[gang].life, life) != life;
    if (anew) gangs_[gang] = {.life = life, .begun_at = gangs_[gang].begun_at};
    check(first || generation >= started, "I4",
          text("gang ", gang.second.value(), " of mesh ", gang.first.value(), " goes back to an earlier generation"));
    if (!first && !lost && !anew && started != generation) check_restart(gang.first, gang.second, started, generation);
    if (first || lost || started != generation) {
      before->second = {generation, here};
      gangs_[gang].started_at = world_.scheduler.now();
    }
  }
}

// A slot leaves its host only where that is out, wedged or was left since the slot's last start, or where all of its
// gangs had ended, and a host has one slot (I18).
void Checker::check_slot(const SendStart& start, const JobCore& core) {
  const auto stays = [&](HostId host) {
    const HostState& state = state_parts::host(core.state(), host);
    return state.phase == HostPhase::kJoined && !state.wedged && state.standing == HostStanding::kGood &&
           account(host).launches == 1 && !state.failing;
  };
  const HostState& state = state_parts::host(core.state(), start.host);
  check(state.standing != HostStanding::kQuarantined, "I18",
        text("a gang starts on host ", start.host.value(), ", which is in quarantine"));
  check(!state.wedged, "I21", text("a gang starts on host ", start.host.value(), ", which is wedged"));
  std::optional<std::uint32_t> looked_at;
  for (const RankStart& rank : start.message.ranks) {
    const std::uint32_t slot = slot_of(rank.rank);
    if (std::exchange(looked_at, slot) == slot) continue;
    const auto [known, first] = slot_hosts_.try_emplace(slot, start.host);
    const HostId before = std::exchange(known->second, start.host);
    const bool left = may_leave_.erase(slot) > 0;
    // A standby takes the place of a gang that has failed, wherever that was.
    const bool given = given_.contains({start.message.mesh, start.message.gang});
    check(before == start.host || left || given || !stays(before), "slots",
          text("slot ", slot, " leaves host ", before.value(), " for ", start.host.value(), " without need"));
    check(core.state().slots[slot] == start.host, "I18", text("slot ", slot, " is not where it starts"));
  }
  const auto users = std::count(core.state().slots.begin(), core.state().slots.end(), start.host);
  check(users == 1, "I18", text("host ", start.host.value(), " has ", users, " slots"));
}

// A start fails for want of hosts when nobody can change that any more: of all that were launched it is known what
// became of them. What a host lacks counts as such, but where ranks are bound to it by others that have started.
void Checker::check_hosts_are_known(const Verdict& verdict) const {
  const std::string& rule = verdict.cause.rule;
  check(!rule.starts_with("what a mesh needs") || !started_.empty(), "slots",
        text("the job fails at once, and nothing binds it to its hosts: ", verdict.reason));
  if (!rule.starts_with("host does not start")) return;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const HostAccount& host = hosts_[i];
    check(host.launches == 0 || host.joined || host.out, "slots",
          text("the job fails for lack of hosts, and nobody knows yet whether host ", i, " starts"));
  }
}

// The verdict names whoever did not start, and hosts are wanting only when all have been tried.
void Checker::check_failed_hosts(const Verdict& verdict, const JobCore& core) const {
  for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
    if (!hosts_[i].named || !is_durable(*hosts_[i].named)) continue;
    if (state_parts::host(core.state(), HostId(i)).phase == HostPhase::kCold) continue;  // it may serve again
    const auto& told = verdict.failed_hosts;
    const bool named = std::any_of(told.begin(), told.end(),
                                   [&](const HostFailure& failed) { return failed.host == core.hosts()[i].name; });
    check(named || verdict.failed_hosts_untold > 0, "truth",
          text("host ", i, " did not start, and the verdict does not name it"));
  }
  if (!verdict.cause.rule.starts_with("host does not start")) return;
  for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
    if (state_parts::host(core.state(), HostId(i)).standing != HostStanding::kGood) continue;  // nobody wants it
    check(hosts_[i].launches > 0, "slots", text("the job fails for lack of hosts, and host ", i, " was never tried"));
  }
}

}  // namespace monarch::sim
