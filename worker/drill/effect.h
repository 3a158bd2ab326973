#pragma once

// Effect: what one kind of strike does to this host, how it is seen, and how it is taken back. A kind is one file of
// this folder with its function below, and its row of strike.cc.
//
// Thread: the main one of a process that has no other, for some fork. Lifetime: given_back() before its end.

#include <memory>
#include <optional>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/messages/strike.h"

namespace monarch {

class Effect {
 public:
  Effect() = default;
  Effect(const Effect&) = delete;
  Effect& operator=(const Effect&) = delete;
  virtual ~Effect() = default;

  // Does it, and looks until it is seen, for no longer than `patience`. It says whom it struck, and when: also of what
  // failed, for all of that is given back.
  virtual Status strike(Duration patience, StrikeSeen& seen) = 0;
  // Until it is seen not to be in effect any more. It may be asked again, and before strike(): by a guard, which is a
  // copy of this process from before that.
  virtual Status give_back(Duration patience) = 0;
  // Whether it outlives this process, so that a guard has to give it back where this one is killed.
  virtual bool outlives_us() const { return false; }
  // Whether somebody ran into it, where its kind can say that.
  virtual std::optional<bool> felt() const { return std::nullopt; }
};

// An effect before anything is done: all that give_back() will need is known.
using PlannedEffect = Result<std::unique_ptr<Effect>>;

PlannedEffect plan_signals(const StrikeOrder& order);
PlannedEffect plan_limits(const StrikeOrder& order);
PlannedEffect plan_busy(const StrikeOrder& order);
PlannedEffect plan_cut(const StrikeOrder& order);
PlannedEffect plan_slow(const StrikeOrder& order);
PlannedEffect plan_flood(const StrikeOrder& order);
PlannedEffect plan_reset(const StrikeOrder& order);
PlannedEffect plan_memory_pressure(const StrikeOrder& order);

}  // namespace monarch
