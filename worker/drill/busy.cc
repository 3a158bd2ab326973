// Busy: processes that want all of a processor each.

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "worker/drill/effect.h"
#include "worker/drill/own_children.h"

namespace monarch {

namespace {

constexpr std::uint32_t kMostProcesses = 4'096;

class Busy final : public Effect {
 public:
  explicit Busy(std::uint32_t processes) : processes_(processes) {}

  Status strike(Duration /*patience*/, StrikeSeen& seen) override {
    seen.struck_at = wall_now();
    MONARCH_TRY(children_.start(processes_, spin));
    const std::vector<pid_t> pids = children_.pids();
    seen.struck.assign(pids.begin(), pids.end());
    return {};
  }
  Status give_back(Duration /*patience*/) override {
    children_.end();
    return {};
  }

 private:
  std::uint32_t processes_;
  OwnChildren children_;
};

}  // namespace

PlannedEffect plan_busy(const StrikeOrder& order) {
  if (order.processes == 0 || order.processes > kMostProcesses) {
    return Error{ErrorCode::kInvalid, text("1 to ", kMostProcesses, " processes keep a host busy")};
  }
  return std::unique_ptr<Effect>(std::make_unique<Busy>(order.processes));
}

}  // namespace monarch
