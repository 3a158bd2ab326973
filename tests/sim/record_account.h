#pragma once

// RecordAccount: what the messages of one peer make the supervisor write (I22). Of a rank's incarnation, a gang's
// reservation and a worker's launch only so many records are ever due, however much is said of them.
//
// Thread: one simulation's. Lifetime: its checker's.

#include <cstdint>
#include <map>
#include <tuple>

#include "supervisor/core/state/events.h"

namespace monarch::sim {

class RecordAccount {
 public:
  void decided(Term term, const CoreEvent& event, Instant now);

 private:
  using Of = std::tuple<Term, RankId, Generation>;

  std::map<Of, std::uint32_t> changes_;
  std::map<Of, Instant> committed_;
  std::map<Of, std::uint32_t> told_;
  std::map<std::tuple<Term, HostId, MeshId, GangId, Generation>, std::uint32_t> reserved_;
};

}  // namespace monarch::sim
