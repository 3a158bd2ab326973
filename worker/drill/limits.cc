// Limits: of files or memory, lowered to what a rank and all that it has started have by then.

#include <algorithm>
#include <utility>
#include <vector>

#include "transport/base/clock.h"
#include "worker/drill/effect.h"
#include "worker/drill/struck_limits.h"
#include "worker/drill/targets.h"

namespace monarch {

namespace {

class Limits final : public Effect {
 public:
  Limits(StruckLimits limits, std::vector<ProcessEntry> meant, Status planned)
      : limits_(std::move(limits)), meant_(std::move(meant)), planned_(std::move(planned)) {}

  Status strike(Duration /*patience*/, StrikeSeen& seen) override {
    seen.struck_at = wall_now();
    const std::vector<pid_t> lowered = limits_.lower();
    seen.struck.assign(lowered.begin(), lowered.end());
    if (!lowered.empty()) return {};
    return planned_.ok() ? Status(Error{ErrorCode::kTimeout, "no limit is what it was set to"}) : planned_;
  }
  Status give_back(Duration /*patience*/) override { return limits_.restore(); }
  bool outlives_us() const override { return true; }
  // A program that runs into a limit may also live on, which nobody sees from here.
  std::optional<bool> felt() const override { return std::any_of(meant_.begin(), meant_.end(), is_gone); }

 private:
  StruckLimits limits_;
  std::vector<ProcessEntry> meant_;
  Status planned_;  // why one of them has no limit of ours
};

}  // namespace

PlannedEffect plan_limits(const StrikeOrder& order) {
  MONARCH_ASSIGN(const StrikeTargets targets, targets_of(order));
  StruckLimits limits;
  Status planned;
  for (const ProcessEntry& entry : with_their_own(targets.processes)) {
    if (const Status done = limits.plan(entry, order.what); !done.ok()) planned = done;
  }
  return std::unique_ptr<Effect>(std::make_unique<Limits>(std::move(limits), targets.processes, std::move(planned)));
}

}  // namespace monarch
