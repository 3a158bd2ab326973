// The checker's account of what runs beside the job's ranks: processes that warm spares, and standby gangs. None of
// them counts for the job before it has a place, and where ranks run they have the host for themselves (I18).

#include "tests/sim/checker.h"
#include "tests/sim/world.h"
#include "tests/supervisor/core/state_parts.h"
#include "transport/base/text.h"

namespace monarch::sim {

bool Checker::is_of_spec(RankId rank) const { return rank.mesh.value() < world_.scenario.spec.meshes.size(); }

// A standby's process is this rank's from now on.
void Checker::taken_over(const Incarnation& from, RankProcess& process) {
  const std::string name = text("rank ", process.key.rank.mesh.value(), "/", process.key.rank.rank.value());
  check(process.at_gate, "standby", text(name, " is given a process that is not at its gate"));
  std::erase(processes_[from.rank], &process);
  forked(process);
}

void Checker::learn_of_standby(const Ticket& here, const std::vector<Action>& actions, const JobCore& core) {
  for (const Action& action : actions) {
    const auto* start = std::get_if<SendStart>(&action);
    if (start == nullptr) continue;
    const Start& message = start->message;
    for (const RankStart& rank : message.ranks) {
      if (!is_of_spec(rank.rank)) decided_beside_[rank.rank] = {message.generation, here};
    }
  }
  for (std::uint32_t m = 0; m < core.spec().meshes.size(); ++m) {
    for (const StandbyState& standby : state_parts::standbys(core.state(), MeshId(m))) {
      if (standby.place) given_.emplace(MeshId(m), *standby.place);
    }
  }
}

// Once a successor is decided, nothing of it is wanted any more.
bool Checker::is_superseded_beside(const RankProcess& process) const {
  const auto successor = decided_beside_.find(process.key.rank);
  return successor != decided_beside_.end() && successor->second.first > process.key.generation &&
         is_durable(successor->second.second);
}

// I18: what warmed the host has ended, and a standby there has become what runs now.
void Checker::check_company(const RankProcess& process) const {
  if (!is_of_spec(process.key.rank)) return;
  Worker* worker = world_.host(process.host).worker();
  if (worker == nullptr) return;
  for (const auto& [key, other] : worker->ranks().processes()) {
    const bool in_the_way = !is_of_spec(key.rank) && other.executes();
    check(!in_the_way, "I18",
          text("rank ", process.key.rank.mesh.value(), "/", process.key.rank.rank.value(), " runs on host ",
               process.host.value(), " beside what is kept on spares"));
  }
}

// A rank is ready by its own word, and never by that of the standby that it was.
void Checker::check_readiness(const RankReport& report) const {
  if (!report.ready || !is_of_spec(report.process.rank)) return;
  check(said_ready_.contains(report.process), "ready",
        text("rank ", report.process.rank.mesh.value(), "/", report.process.rank.rank.value(), " generation ",
             report.process.generation.counter, " counts as ready, and is not"));
}

}  // namespace monarch::sim
