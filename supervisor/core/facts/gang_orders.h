#pragma once

// GangOrders: what the hosts of a gang are told: what they hold for it, and its START.
//
// Thread: JobCore's; no locks. Lifetime: JobCore's.

#include <cstddef>
#include <optional>
#include <string>

#include "supervisor/core/crew/core_basis.h"
#include "supervisor/core/crew/crews.h"

namespace monarch {

// What this host has to hold for the gang.
Reserve reserve_message(const CoreFacts& job, const CrewKey& key, HostId where);

class GangOrders final : public CrewKind {
 public:
  GangOrders(const CoreFacts& job, Crews& crews);
  std::optional<Reserve> reserve_of(const CrewKey& key, std::size_t host) const override;
  Start start_of(const CrewKey& key, std::size_t host) const override;
  std::string name_of(const CrewKey& key) const override { return job_.mesh(key.mesh).name; }

 private:
  const CoreFacts& job_;
};

}  // namespace monarch
