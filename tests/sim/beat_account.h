#pragma once

// BeatAccount: what the supervisor has heard by beats, and what it may make of that. An end is journalled that
// was told of this very process, with the step that it had named by then, and a host forgets no rank whose output is
// not copied, where copies are kept.
//
// Thread: one simulation's. Lifetime: its checker's.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "supervisor/core/state/events.h"
#include "transport/messages/worker.h"

namespace monarch::sim {

class BeatAccount {
 public:
  explicit BeatAccount(bool copies) : copies_(copies) {}

  // By a supervisor that has heard nothing yet.
  void begun() { steps_.clear(); }
  void heard(HostId host, const Beat& beat);
  void decided(const CoreEvent& event) const;
  void copied(const Incarnation& process) { copied_.insert(process); }
  bool is_copied(const Incarnation& process) const { return copied_.contains(process); }
  void answered(const Ack& ack) const;

 private:
  struct NamedStep {
    std::uint64_t seq = 0;  // of the beat that told it
    std::uint64_t step = 0;
  };

  bool copies_;
  // As each host has told of them last; of a rank that is not there it may say what it likes.
  std::map<std::pair<HostId, Incarnation>, NamedStep> steps_;
  std::set<std::pair<HostId, Incarnation>> ended_;  // as hosts have told
  std::set<Incarnation> copied_;
};

}  // namespace monarch::sim
