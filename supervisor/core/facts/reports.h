#pragma once

// Reports: where ranks are, and ran, and what a host's report of one is to the job.
//
// Thread: pure functions.

#include <optional>

#include "supervisor/core/crew/core_basis.h"
#include "supervisor/core/crew/judgement.h"

namespace monarch {

// What that host says there is to the job.
Judgement judge(const CoreFacts& job, HostId where, const RankReport& report);
// Of a member of a crew beside the gangs.
Judgement judge_beside(const CoreFacts& job, const CrewPlace& place, HostId where, Generation generation);
// Where a rank of the spec is; of one that has ended: where it ran.
HostId place_of(const CoreFacts& job, RankId id);
std::optional<HostId> where_is(const CoreFacts& job, RankId id);
// Where one runs, also what warms a spare, and a rank of a standby gang; or ran, if its rank has moved on and what it
// wrote last is still awaited.
std::optional<HostId> where_ran(const CoreFacts& job, const Incarnation& process);
// Has it ended there, with more to come of what it wrote?
bool is_on_its_way(const CoreFacts& job, RankId id, HostId from);
// Is it owed of the generation that the rank's own state is about?
bool is_of_last(const CoreFacts& job, const Incarnation& owed, HostId from);
// Does somebody stop this rank on purpose, so that it must not be called hung? By `monarch hold`, and in any way.
bool is_held(const CoreFacts& job, RankId id);
inline bool is_left_alone(const CoreFacts& job, RankId id) { return is_held(job, id) || job.rank(id).suspended; }

}  // namespace monarch
