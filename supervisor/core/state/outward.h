#pragma once

// Which of a decision's actions let something out of the supervisor: its record is waited for (J1). The end of the
// job is not among them: it is written down, behind the record of what ended it, and told when that is durable.

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "supervisor/core/state/actions.h"

namespace monarch {

// Who looks on may hear of it a little later.
inline bool lets_nothing_out(const std::vector<Action>& actions) {
  return std::all_of(actions.begin(), actions.end(),
                     [](const Action& action) { return std::holds_alternative<EmitEvent>(action); });
}

inline std::optional<Action> take_finish(std::vector<Action>& actions) {
  const auto found = std::find_if(actions.begin(), actions.end(),
                                  [](const Action& action) { return std::holds_alternative<FinishJob>(action); });
  if (found == actions.end()) return std::nullopt;
  std::optional<Action> finish = std::move(*found);
  actions.erase(found);
  return finish;
}

}  // namespace monarch
