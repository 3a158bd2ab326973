#pragma once

// VaultTable: what a host's vault is told, from what the core knows and from where vaults listen. The version is left
// to who sends it.
//
// Copies of what a gang's ranks save go to hosts that hold none of them, since hosts of a gang are given up together
// with it. Which of these follows from their order in the pool alone: it is the same after a supervisor's return, each
// keeps about as much for others as it has kept for it, and a copy moves only where a host comes or goes.
//
// Thread: pure functions.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/core/spec/placement.h"
#include "supervisor/core/state/job_state.h"
#include "transport/base/ids.h"
#include "transport/messages/vault.h"

namespace monarch {

struct VaultView {
  const JobSpec& spec;
  const JobState& state;
  const Placement& placement;
  const std::vector<PoolHost>& pool;
  const std::vector<std::uint16_t>& ports;  // of the vault of each host of the pool; 0: none is known
};

// Where vaults may listen: of network.ports the highest without one that a rank is given by its number. 0 to 0:
// anywhere.
PortSpan vault_ports(const JobSpec& spec);

// Is this host connected, and others know how to reach its vault?
bool serves_vault(const VaultView& view, HostId host);

// What all hosts are told alike: no gang has targets in it, and each vault is a peer.
VaultTable common_vault_table(const VaultView& view);

// Where copies go of what the ranks of this gang on this host save; hosts that are well first.
std::vector<HostId> vault_targets(const VaultView& view, MeshId mesh, GangId gang, HostId host);

// By host, of each gang that is told of and has ranks there, or copies of whose ranks go there, in order. Nothing but
// its name, its targets and its sources is filled in.
std::vector<std::vector<VaultGang>> own_vault_gangs(const VaultView& view);

// All that those follow from, which changes seldom: hosts that come and go, and gangs that move or are done.
std::vector<std::uint32_t> vault_places(const VaultView& view);

// The common one, as this host is told it; `own` may be of a later state.
VaultTable vault_table_of(VaultTable common, const std::vector<VaultGang>& own, HostId host);

}  // namespace monarch
