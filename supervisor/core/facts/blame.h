#pragma once

// Blame: who or what a failure is put down to, in words.
//
// Thread: pure functions.

#include <cstddef>

#include "supervisor/core/crew/core_basis.h"

namespace monarch {

Verdict blame_host(const CoreFacts& job, const GangState& state);
// `first`: of the gang's ends.
Verdict blame_rank(const CoreFacts& job, MeshId mesh, GangId g, std::size_t first);
Verdict blame_hung(const CoreFacts& job, MeshId mesh, GangId g);
// Of a sidecar that will never be ready, and ended like that; of a verdict without a cause: well.
Verdict blame_sidecar(const CoreFacts& job, MeshId mesh, GangId g, Verdict verdict);
// Of a job that lacks a host for a slot.
Verdict blame_hosts(const CoreFacts& job);
// For the screen and verdict.json: whatever the job ended with.
void tell_failed_hosts(const CoreFacts& job, Verdict& verdict);

}  // namespace monarch
