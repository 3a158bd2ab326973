#pragma once

// Slots: whether one may move, who could take it, and who will be back.
//
// Thread: pure functions.

#include <cstdint>
#include <optional>
#include <vector>

#include "supervisor/core/crew/core_basis.h"
#include "supervisor/core/recovery/recovery.h"

namespace monarch {

// Has a gang with ranks in it started, in any generation? Then its ranks stay where they are, whatever becomes of the
// host.
bool has_started(const CoreFacts& job, std::uint32_t slot);
// Slots that no host is left for. Once there is one there will be for long: only an operator brings hosts back that are
// out.
std::vector<std::uint32_t> empty_slots(const CoreFacts& job);
// The host that would take a slot now.
std::optional<HostId> replacement(const CoreFacts& job);
// Could what waits on this slot go to another host now?
bool may_leave(const CoreFacts& job, std::uint32_t slot, MeshId mesh);
// Does any budget of the job allow that a host takes another's place?
bool may_reallocate(const CoreFacts& job);
// That could take the place of another now; and those of a gang whose worker ended, and can be started again.
std::uint32_t hosts_left(const CoreFacts& job, const std::vector<HostId>& own);
// How long until each of the hosts that come back by themselves may be launched again, the first of them first.
std::vector<Duration> returns(const CoreFacts& job, const std::vector<HostId>& own);
FailureFacts facts_of_lost_host(const CoreFacts& job, MeshId mesh, const std::vector<HostId>& hosts);
// Hosts that nobody has to be asked for are there, or due back, for all that it lacks.
bool awaits_own(const CoreFacts& job, MeshId mesh, GangId g);
// How long a lease is: where no host could replace a rank without proof of its death, an outage of the supervisor up
// to orphan_ttl freezes nothing.
Duration lease_length(const CoreFacts& job);

}  // namespace monarch
