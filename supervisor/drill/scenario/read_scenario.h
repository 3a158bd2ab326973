#pragma once

// Reads a scenario: its text held against its schema, and the values that it says. All faults are found in one go; a
// scenario with a fault yields none. What concerns the scenario and its job together is for check_scenario.h.
//
// Thread: pure functions but for what those of the surroundings do.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/drill/core/scenario.h"
#include "supervisor/spec/spec.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch::drill {

struct ScenarioSurroundings {
  std::string home{};  // absolute; what `~` stands for; empty: it stays as it is
  // Whether there is a file of this whole path; nothing: a job's path is taken as it is.
  std::function<bool(const std::string& path)> exists{};
  // What is wrong with a regular expression that is to have one group; nothing: it is one. An empty function: nobody is
  // asked.
  std::function<std::optional<std::string>(const std::string& pattern)> pattern_problem{};
};

struct ScenarioOutcome {
  std::optional<Scenario> scenario;     // nothing if there is an error below
  YamlNode tree;                        // what is written, with places in the first source
  std::vector<Diagnostic> diagnostics;  // in the order of the texts
  std::vector<SpecText> sources;        // what Diagnostic::source counts; the scenario is the first
};

ScenarioOutcome read_scenario(const SpecSource& source, const ScenarioSurroundings& around = {});

// Its diagnostics, as they are shown.
std::string render(const ScenarioOutcome& outcome, RenderOptions options = {});

// What a command line says of one blow, as the text of a scenario: read_scenario() finds what is wrong with it. Empty:
// not written.
struct OneBlow {
  std::string fault;
  FaultTarget target;
  std::string lasts;      // "10s"
  std::string processes;  // as a scenario would write them
  std::string percent;
  std::string size;
};
std::string scenario_text(const OneBlow& blow);

}  // namespace monarch::drill
