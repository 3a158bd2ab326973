#pragma once

// ClaimAccount: the checker's own account of idle slots: who was given which and has them, what its ranks are started
// with, and that they rest once nobody has them. It throws at the first that must not be.
//
// Thread: one simulation's. Lifetime: its checker's.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/state/actions.h"
#include "supervisor/core/state/events.h"
#include "tests/sim/durable_account.h"
#include "transport/messages/claim.h"

namespace monarch::sim {

class World;

class ClaimAccount {
 public:
  ClaimAccount(World& world, const DurableAccount& durable) : world_(world), durable_(durable) {}

  // After the core has heard it.
  void decided(const Ticket& here, const CoreEvent& event, const JobCore& core);
  // A START is decided; and one leaves, for the first time or again.
  void starts(const SendStart& start, const JobCore& core);
  void starts_on_the_wire(const SendStart& start) const;
  // What is told to the post of a host.
  void answers(HostId host, const ClaimAnswer& answer, const JobCore& core);
  // Another supervisor has read the journal: what was not durable never was.
  void recovered(const JobCore& core);
  // Now and then.
  void look(const JobCore& core, bool calm);

  // Counts the lives of a slot: a generation of another one needs no cause. 0: it is no idle slot, or nobody has it.
  std::uint64_t life_of(const JobCore& core, MeshId mesh, GangId slot) const;

 private:
  using Env = std::map<std::string, std::string>;
  struct Given {  // a claim
    SlotClaim claim;
    Ticket made;
    std::optional<Ticket> ended;  // it was let go, or taken
    bool was_known = false;       // taken from who knew that he has it
  };
  void on(const Ticket& here, const SlotsClaimed& event, const JobCore& core);
  void on(const Ticket& here, const SlotsLetGo& event, const JobCore& core);
  bool may_be_taken(const SlotClaim& claim) const;
  void check_taken(const SlotClaim& claim, const JobCore& core) const;
  void check_state(const JobCore& core) const;
  void check_hosts(const SlotClaim& claim, const JobCore& core) const;
  void look_at_slot(const JobCore& core, MeshId mesh, GangId slot, bool calm);
  bool is_wanted(const SlotClaim& claim) const;
  bool lives_somewhere(RankId rank) const;
  const Given* has(MeshId mesh, Rank rank) const;
  const Given* find(const ClaimHolder& holder, std::uint64_t number) const;

  World& world_;
  const DurableAccount& durable_;
  std::vector<Given> given_;                               // in the order of the journal
  std::map<Incarnation, Env> started_;                     // with these variables
  std::map<std::pair<MeshId, GangId>, Instant> restless_;  // since when it should rest and does not, or waits
  std::map<ClaimId, Instant> unwanted_;                    // since when nobody is there who knows of it
};

}  // namespace monarch::sim
