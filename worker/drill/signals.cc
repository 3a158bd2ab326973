// Signals: of those that stand still until they are told to go on, and of those that are gone.

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/process/spawn.h"
#include "worker/drill/effect.h"
#include "worker/drill/targets.h"

namespace monarch {

namespace {

class Signals final : public Effect {
 public:
  Signals(StrikeTargets targets, std::vector<UniqueFd> pidfds)
      : targets_(std::move(targets)), pidfds_(std::move(pidfds)) {}

  Status strike(Duration patience, StrikeSeen& seen) override {
    seen.struck_at = wall_now();
    for (const UniqueFd& pidfd : pidfds_) (void)send_signal(pidfd.get(), targets_.signal);  // looked at below
    const bool all = until(
        [this] {
          return std::all_of(targets_.processes.begin(), targets_.processes.end(),
                             [this](const ProcessEntry& entry) { return is_struck(entry) || is_gone(entry); });
        },
        patience);
    for (const ProcessEntry& entry : targets_.processes) {
      if (is_struck(entry)) seen.struck.push_back(entry.pid);
    }
    if (all && !seen.struck.empty()) return {};
    return Error{ErrorCode::kTimeout, text("of ", targets_.processes.size(), " processes ", seen.struck.size(),
                                           " were struck within ", to_text(patience))};
  }

  Status give_back(Duration patience) override {
    if (!stops()) return {};
    // Those that were told last go on first: the keeper is to see everything as it was.
    for (auto each = pidfds_.rbegin(); each != pidfds_.rend(); ++each) (void)send_signal(each->get(), SIGCONT);
    const auto go_on = [this] {
      return std::none_of(targets_.processes.begin(), targets_.processes.end(), is_stopped);
    };
    if (until(go_on, patience)) return {};
    return Error{ErrorCode::kTimeout, "what was stopped does not go on: somebody else holds it"};
  }

  bool outlives_us() const override { return stops(); }

 private:
  bool stops() const { return targets_.signal == SIGSTOP; }
  bool is_struck(const ProcessEntry& entry) const { return stops() ? is_stopped(entry) : is_gone(entry); }

  StrikeTargets targets_;
  std::vector<UniqueFd> pidfds_;
};

}  // namespace

PlannedEffect plan_signals(const StrikeOrder& order) {
  MONARCH_ASSIGN(StrikeTargets found, targets_of(order));
  StrikeTargets targets{.processes = {}, .signal = found.signal};
  std::vector<UniqueFd> pidfds;
  for (const ProcessEntry& entry : found.processes) {
    UniqueFd pidfd = open_process(entry);
    if (!pidfd.valid()) continue;
    targets.processes.push_back(entry);
    pidfds.push_back(std::move(pidfd));
  }
  if (pidfds.empty()) return Error{ErrorCode::kNotFound, "it had ended before it was struck"};
  return std::unique_ptr<Effect>(std::make_unique<Signals>(std::move(targets), std::move(pidfds)));
}

}  // namespace monarch
