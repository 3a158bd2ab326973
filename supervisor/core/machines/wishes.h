#pragma once

// Wishes: what an operator asks for while the job runs: gangs started again, hosts that are left or may be used again,
// ranks that are not watched for hangs.
//
// Thread: JobCore's; no locks. Lifetime: JobCore's.

#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/gangs/gangs.h"

namespace monarch {

class Wishes {
 public:
  Wishes(const CoreBasis& basis, HeldRanks& mine, Gangs& gangs, CoreHosts& hosts)
      : basis_(basis), mine_(mine), gangs_(gangs), hosts_(hosts) {
    mine_.held.resize(basis.spec.meshes.size());
  }

  void on(const OperatorAsked& event);
  void on(const HoldAsked& event);

  // Times of hosts may have come by it; moves of slots do not count any longer.
  bool take_asked() { return std::exchange(asked_, false); }
  bool take_forgiven() { return std::exchange(forgiven_, false); }

 private:
  void forgive(const std::vector<std::pair<MeshId, GangId>>& gangs, const std::string& who);

  const CoreBasis& basis_;
  HeldRanks& mine_;
  Gangs& gangs_;
  CoreHosts& hosts_;
  bool asked_ = false;
  bool forgiven_ = false;
};

}  // namespace monarch
