#pragma once

// Words to ranks: what the programs of a gang are told over MONARCH_EVENTS (monarch-rank(7)).
//
// Thread: pure functions; they add actions.

#include <cstdint>

#include "supervisor/core/crew/core_basis.h"
#include "transport/base/json.h"

namespace monarch {

// Those of its ranks that run.
void tell(const CoreBasis& job, MeshId mesh, GangId g, const Json& event);
// As a keeper says it that stops a rank by itself.
void tell_stopping(const CoreBasis& job, MeshId mesh, GangId g, std::int32_t signal, Duration grace);
// Ranks of other gangs go on; those that talk to the failed one may want to know before their connections say so.
void tell_peers_of(const CoreBasis& job, MeshId mesh, GangId g, const char* what);

}  // namespace monarch
