#pragma once

// What the files of check_scenario.h share: a scenario with its tree, its job, and places in both.
//
// Thread: pure functions.

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "supervisor/drill/core/faults.h"
#include "supervisor/drill/scenario/check_scenario.h"
#include "supervisor/spec/yaml/diagnostics.h"

namespace monarch::drill {

struct ScenarioCheck {
  const Scenario& scenario;
  const YamlNode& tree;
  const ScenarioJob& job;
  Report& report;

  // Of the value at this way through the scenario; nothing written: the text as a whole.
  Place at(std::initializer_list<std::string_view> way) const;
  // Of a key of the fault with this number; else of the fault as a whole.
  Place in_fault(std::size_t i, std::initializer_list<std::string_view> way) const;
  // Where the spec says it, and how it is called there; nothing: it is not written, or there is no tree.
  std::optional<FaultElsewhere> in_spec(std::initializer_list<std::string_view> way, std::string label) const;

  const Fault& fault_of(const FaultEntry& entry) const { return *find_fault(entry.fault); }
  // Whether it costs its host for good, by the times of the spec.
  bool costs_host(const FaultEntry& entry) const;
};

void check_bounds(const ScenarioCheck& check);
void check_targets(const ScenarioCheck& check);

}  // namespace monarch::drill
