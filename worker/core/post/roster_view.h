#pragma once

// RosterView: the newest roster, and what a post looks up in it.
//
// Thread: a value; pure.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/ids.h"
#include "transport/messages/post.h"
#include "transport/messages/roster.h"

namespace monarch {

class RosterView {
 public:
  // False: it is not newer than the one that is here.
  bool take(Roster roster);
  bool known() const { return roster_.term != Term(0); }
  const Roster& roster() const { return roster_; }

  std::optional<MeshId> mesh_named(const std::string& name) const;
  // What a call may name: also kGuestsMesh.
  std::optional<MeshId> called_mesh(const std::string& name) const;
  // Of kGuestsMeshId more than there are: their post knows them.
  std::uint32_t ranks_of(MeshId mesh) const;
  // Nothing: it is on no host.
  const RosterRun* find(const RankId& rank) const;
  const RosterHost* host(HostId host) const;
  std::optional<HostId> host_named(const std::string& name) const;

  std::string host_name(HostId host) const;
  std::string rank_name(const RankId& rank) const;
  // Why a rank is not up, in words; of one that is up why it was lost.
  std::string why_lost(const RankId& rank) const;

  // Whether a caller that a host speaks of is there; unknown: this roster knows nothing yet of that start of it.
  enum class Place : std::uint8_t { kThere, kElsewhere, kUnknown };
  Place place_of(const CallerName& caller, HostId host) const;
  // Why there is none of that name; empty: there may be.
  std::string no_such_rank(const CallerName& caller) const;

  // Empty: the caller counts; else a later start of its rank has its place, in words (I2).
  std::string passed(const CallerName& caller) const;

 private:
  const RosterFailure* newest_failure(const RankId& rank) const;

  Roster roster_;
  std::map<std::string, MeshId> meshes_;
  std::vector<std::uint32_t> ranks_;          // of each mesh
  std::vector<std::vector<RosterRun>> runs_;  // of each mesh, by their first rank
  std::map<HostId, RosterHost> hosts_;
};

}  // namespace monarch
