#pragma once

// The roster: what every host's post knows of the job, as the supervisor tells it: the hosts and where their posts are,
// the meshes, where each rank is and how it is, and the newest failures. A roster replaces the one before it; they are
// ordered by (term, number), and an older one is never taken.
//
// Thread: values.

#include <cstdint>
#include <string>
#include <vector>

#include "transport/base/ids.h"
#include "transport/messages/message.h"
#include "transport/messages/peer.h"

namespace monarch {

struct RosterHost {
  PeerAddress peer;  // port 0: it has said of no post yet
  // It has none, and is not about to have one: why. Empty: it has, or is about to.
  std::string without_post;
  bool operator==(const RosterHost&) const = default;
};
MONARCH_FIELDS(RosterHost, peer, without_post)

struct RosterDim {
  std::string name;
  std::uint32_t size = 1;
  bool operator==(const RosterDim&) const = default;
};
MONARCH_FIELDS(RosterDim, name, size)

// Its ranks are numbered row-major over the dims.
struct RosterMesh {
  std::string name;
  std::vector<RosterDim> dims;
  std::uint32_t gang = 0;  // neighbours that live and die together are so many
  bool operator==(const RosterMesh&) const = default;
};
MONARCH_FIELDS(RosterMesh, name, dims, gang)

enum class RosterState : std::uint8_t {
  kUp,
  kStarting,  // for the first time
  kDown,      // it is being started again
  kGivenUp,   // it has failed, and is not started any more
  kEnded,     // it has done what it was for, or was stopped
  kIdle,      // nobody has claimed it
};
constexpr RosterState monarch_enum_max(RosterState) { return RosterState::kIdle; }

// Neighbouring ranks of which the same is said.
struct RosterRun {
  MeshId mesh;
  Rank first;
  std::uint32_t count = 0;
  HostId host;
  Generation generation;
  RosterState state = RosterState::kUp;
  bool operator==(const RosterRun&) const = default;
};
MONARCH_FIELDS(RosterRun, mesh, first, count, host, generation, state)

struct RosterFailure {
  std::uint64_t number = 0;  // they are counted
  MeshId mesh;
  Rank first;
  std::uint32_t count = 0;
  std::uint64_t generation = 0;  // that has ended
  std::string cause;             // and what supervision does about it
  bool operator==(const RosterFailure&) const = default;
};
MONARCH_FIELDS(RosterFailure, number, mesh, first, count, generation, cause)

// supervisor → worker, and daemon → post.
struct Roster {
  Term term;
  std::uint64_t number = 0;
  std::vector<RosterHost> hosts;
  std::vector<RosterMesh> meshes;
  std::vector<RosterRun> runs;  // of each mesh in the order of its ranks
  std::vector<RosterFailure> failures;
  bool operator==(const Roster&) const = default;
};
MONARCH_MESSAGE(Roster, 30, term, number, hosts, meshes, runs, failures)

}  // namespace monarch
