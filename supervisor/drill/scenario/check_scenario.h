#pragma once

// What a scenario and the job that it is for say together: who there is to be struck, how many hosts can be lost, which
// bounds the spec's own times allow. Whatever is found here is found before anything starts.
//
// Thread: pure functions but for what `target_problem` does.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/drill/core/scenario.h"
#include "supervisor/drill/scenario/read_scenario.h"
#include "supervisor/spec/spec.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch::drill {

struct ScenarioJob {
  const JobSpec& spec;
  // What is written of it, with places in `sources`; nothing: what it says is shown without its line.
  const YamlNode* tree = nullptr;
  std::vector<SpecText> sources{};
  // What is wrong with the words of a target, `random` among none of them, as a selector says it; nothing: they name
  // something. An empty function: nobody is asked.
  std::function<std::optional<std::string>(const FaultTarget&)> target_problem{};
  // One blow of the command line: there is no control and no bound.
  bool one_blow = false;
};

// Of an outcome with a scenario: its faults, behind those that it has; where there are any the scenario is taken away.
void check_scenario(ScenarioOutcome& outcome, const ScenarioJob& job);

}  // namespace monarch::drill
