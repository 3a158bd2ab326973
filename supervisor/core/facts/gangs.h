#pragma once

// Gangs: how far they are, what they wait for, and which of their checkpoints count.
//
// Thread: pure functions.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "supervisor/core/crew/core_basis.h"

namespace monarch {

// Or done, which a sidecar must not be before it was ready. For slots that may be claimed nobody waits.
bool is_ready(const CoreFacts& job, MeshId mesh);
// The first rank of it that ended well and will never be ready: the gang will not be, either, whatever the others do.
std::optional<std::size_t> ended_unready(const CoreFacts& job, const GangState& state);
// The other meshes cannot start without it: a sidecar that has never been ready, unless nobody waits for it.
inline bool is_needed(const MeshSpec& mesh, const GangState& gang) {
  return mesh.sidecar && !mesh.idle && !gang.ever_ready;
}
inline constexpr const char* kDecidesNothing = "a sidecar does not decide: the job goes on without it";
bool all_ended_well(const CoreFacts& job, MeshId mesh, GangId g);
// Its gang has failed, and what is known of it is of a generation that is over.
bool starts_again(const CoreFacts& job, RankId id);
// "trainer/3@v2 (has not said READY=1)"
std::string unready_text(const CoreFacts& job, RankId id);
// Who keeps a gang from being ready; the first of them counts as the rank that makes no progress.
struct NotReady {
  std::vector<std::string> names;
  std::optional<RankId> first;
};
NotReady not_ready(const CoreFacts& job, MeshId mesh, GangId g);
// For whom the job waits, that has never been ready.
std::string missing_at_start(const CoreFacts& job);

// May its next generation start, as far as time and the one before it go? (I3: nothing of that may act any longer.)
bool fence_done(const CoreFacts& job, MeshId mesh, GangId g);
bool lacks_host(const CoreFacts& job, MeshId mesh, GangId g);
// What has its turn before it has a deadline of its own: a job that starts, a gang that is being stopped or is to be
// ready.
bool waits_at_length(const CoreFacts& job, MeshId mesh, GangId g);
// " again, 312ms after it failed", or was stopped since an operator asked for that.
std::string since_failure(const CoreFacts& job, const GangState& state);
// Where its time goes from now on.
std::optional<TimeBin> bin_of(const GangState& gang);

// Of those with a gang that has not ended.
std::optional<std::uint32_t> highest_stage(const CoreFacts& job);
// How long all stages may take to end, one after the other; and what is left of a grace before an end that is foreseen.
Duration longest_stop(const CoreFacts& job);
Duration grace_left(const CoreFacts& job, Duration grace);

// For the ends that a failed gang's hosts could not tell meanwhile: a worker dials again within this, and its first
// beat tells all.
inline constexpr Duration kEndsArriveWithin = Duration::seconds(1);
// How long ends of a failed gang are collected: those that could not be told while we were away come with the first
// beats.
Duration cause_window(const CoreFacts& job);

// Do enough gangs go on without one more?
bool may_park(const CoreFacts& job, MeshId mesh);
// "; parked: trainer gang 0 and 3 more"
std::string parked_text(const CoreFacts& job);
inline bool has_parked(const CoreFacts& job) { return !parked_text(job).empty(); }

// The newest that all ranks of its gang have committed.
std::optional<std::uint64_t> committed_step(const CoreFacts& job, RankId id);
Committer committer(const CoreFacts& job, RankId id);
// Does this checkpoint count? For who is about to tell CheckpointCommitted, and for an answer that was lost.
CommitDecision rule_on(const CoreFacts& job, HostId where, const Incarnation& process, const CommitRequest& asked);

}  // namespace monarch
