#include "supervisor/core/accounts/adoption.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/text.h"

namespace monarch {

namespace {

std::size_t living_ranks(const CoreFacts& job) {
  std::size_t ranks = 0;
  for (std::uint32_t m = 0; m < job.state.meshes.size(); ++m) {
    for (const Crew& crew : job.state.crews[m]) {
      ranks += static_cast<std::size_t>(std::count_if(crew.members.begin(), crew.members.end(),
                                                      [](const CrewMember& member) { return lives(member.stage); }));
    }
  }
  return ranks;
}

}  // namespace

void Adoption::begin() {
  mine_.returned_at = basis_.now;
  mine_.awaited.clear();
  for (std::uint32_t i = 0; i < basis_.state.hosts.size(); ++i) {
    if (is_joined(basis_.host(HostId(i)).phase)) mine_.awaited.emplace_back(i);
  }
  const std::size_t awaited = mine_.awaited.size();
  mine_.adopting = awaited > 0;
  mine_.unheard.clear();
  const std::size_t ranks = living_ranks(basis_);
  basis_.emit(basis_.event(EventKind::kSupervisorReturned, Severity::kWarning,
                           text("the supervisor ended unexpectedly and was started again as term ",
                                basis_.state.term.value(), "; ", ranks, ranks == 1 ? " rank" : " ranks", " on ",
                                awaited, awaited == 1 ? " host" : " hosts", " are taken over as they are")));
}

void Adoption::on(const WorkerJoined& event) {
  if (is_joined(basis_.host(event.host).phase)) std::erase(mine_.awaited, event.host);
}

void Adoption::look() {
  if (!mine_.adopting) return;
  std::erase_if(mine_.awaited, [this](HostId id) {
    if (is_joined(basis_.host(id).phase)) return false;
    mine_.unheard.push_back(id);
    return true;
  });
  if (!mine_.awaited.empty()) return;
  mine_.adopting = false;
  std::vector<std::string> unheard;
  for (const HostId id : std::exchange(mine_.unheard, {})) unheard.push_back(basis_.name_of(id));
  const auto& all = basis_.state.hosts;
  const auto hosts = std::count_if(all.begin(), all.end(), [](const HostState& host) { return is_joined(host.phase); });
  const std::size_t ranks = living_ranks(basis_);
  basis_.emit(basis_.event(EventKind::kSupervisorAdopted, unheard.empty() ? Severity::kInfo : Severity::kWarning,
                           text(hosts, hosts == 1 ? " host has" : " hosts have", " answered within ",
                                to_text(Duration::milliseconds((basis_.now - mine_.returned_at).count_milliseconds())),
                                unheard.empty() ? "" : text(", lost before they did: ", join(unheard, ", ")), "; ",
                                ranks, ranks == 1 ? " rank goes" : " ranks go", " on")));
}

}  // namespace monarch
