#pragma once

// The parts of a job's state by name: where they lie in it is written here alone, for tests and the simulator.
//
// Thread: pure functions. Lifetime: what they return is the state's.

#include <cstdint>
#include <optional>
#include <vector>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/state/job_state.h"
#include "transport/base/ids.h"

namespace monarch::state_parts {

inline std::uint32_t meshes(const JobState& state) { return static_cast<std::uint32_t>(state.meshes.size()); }

// `State` is a JobState, or a const one.
template <class State>
auto& gangs(State& state, MeshId mesh) {
  return state.meshes[mesh.value()].gangs;
}
template <class State>
auto& ranks(State& state, MeshId mesh) {
  return state.meshes[mesh.value()].ranks;
}
template <class State>
auto& gang(State& state, MeshId mesh, GangId gang) {
  return gangs(state, mesh)[gang.value()];
}
template <class State>
auto& rank(State& state, RankId rank) {
  return ranks(state, rank.mesh)[rank.rank.value()];
}
template <class State>
auto& host(State& state, HostId host) {
  return state.hosts[host.value()];
}

template <class State>
auto& crew(State& state, MeshId mesh, GangId gang) {
  return state.crews[mesh.value()][gang.value()];
}
inline const CrewMember& member(const JobState& state, RankId rank) {
  const auto& gangs = state.crews[rank.mesh.value()];
  const std::size_t size = gangs.front().members.size();
  return gangs[rank.rank.value() / size].members[rank.rank.value() % size];
}

// Which this rank is of.
inline const GangState& gang_with(const JobCore& core, RankId rank) {
  return gang(core.state(), rank.mesh, core.spec().meshes[rank.mesh.value()].gang_of(rank.rank));
}
inline const std::vector<StandbyState>& standbys(const JobState& state, MeshId mesh) {
  return state.standbys[mesh.value()];
}
// What ranks wrote last there, and is on its way.
inline const std::vector<Incarnation>& owed(const JobState& state, HostId host) {
  return state.last_words[host.value()].owed;
}
inline const std::vector<Rank>& held(const JobState& state, MeshId mesh) { return state.holds.held[mesh.value()]; }
// May it run where it is?
inline bool is_granted(const JobCore& core, const Incarnation& process) {
  const std::optional<HostId> host = where_ran(core.facts(), process);
  return host && judge(core.facts(), *host, {.process = process}).granted;
}

}  // namespace monarch::state_parts
