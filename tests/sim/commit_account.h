#pragma once

// CommitAccount: the checker's own account of checkpoints: which were really written, which were journalled and are
// durable, and what ranks and generations were told of them (I20). It throws at the first that must not be.
//
// Thread: one simulation's. Lifetime: its checker's.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/spec/placement.h"
#include "supervisor/core/state/inheritance.h"
#include "supervisor/core/state/job_state.h"
#include "tests/sim/durable_account.h"
#include "transport/messages/rank.h"
#include "worker/core/keeper_actions.h"

namespace monarch::sim {

class CommitAccount {
 public:
  CommitAccount(const JobSpec& spec, const DurableAccount& durable, const Inheritance& continues);

  // A process of a generation was started: from now on no earlier one of its gang commits.
  void started(const Incarnation& key);
  // A process has written this, and says so.
  void wrote(const Incarnation& key, const CommitRequest& said) { wrote_[key][said.number] = said; }
  void journalled(const Ticket& ticket, const Incarnation& key, const CommitRequest& commit);
  // A gang starts: what its ranks are told to go on from, in its first START and in those that are said again.
  void resumes(const Ticket& ticket, const Start& start);
  void resumes_on_the_wire(const Start& start) const;
  void answered(const CommitAnswer& answer);
  // The core's state after any event.
  void after_event(const JobState& state) const;
  // Another supervisor has read the journal: what was not durable never was.
  void recovered();

 private:
  using GangKey = std::pair<MeshId, GangId>;
  struct Taken {
    Ticket ticket;
    Incarnation key;
    CommitRequest commit;
  };
  struct Gang {
    std::optional<std::uint64_t> had;   // of the job that this one continues
    Generation started;                 // the highest
    std::vector<Taken> taken;           // in the order of the journal
    std::optional<std::uint64_t> told;  // the highest that somebody was told, or was started from
    std::map<Generation, std::pair<Ticket, std::optional<std::uint64_t>>> resumed;
  };

  GangKey key_of(RankId rank) const { return {rank.mesh, spec_.meshes[rank.mesh.value()].gang_of(rank.rank)}; }
  // That all ranks of the gang have of one generation; only of what is durable, if asked.
  std::optional<std::uint64_t> newest(const GangKey& key, const Gang& gang, bool durable) const;

  const JobSpec& spec_;
  Placement placement_;
  const DurableAccount& durable_;
  std::map<GangKey, Gang> gangs_;
  std::map<Incarnation, std::map<std::uint64_t, CommitRequest>> wrote_;  // by the number of the question
};

}  // namespace monarch::sim
