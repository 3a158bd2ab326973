#include "cli/start/scenario_input.h"

#include <fcntl.h>

#include <optional>
#include <string>

#include "cli/follow/line_pattern.h"
#include "supervisor/spec/spec.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

// Of what is to have one group.
std::optional<std::string> problem_of(const std::string& pattern) {
  const auto parsed = LinePattern::parse(pattern);
  if (!parsed.ok()) return parsed.error().message;
  if (parsed->groups() == 1) return std::nullopt;
  return text("it has ", parsed->groups() == 0 ? "no group" : counted(parsed->groups(), "group"), ", and not one");
}

}  // namespace

drill::ScenarioSurroundings users_scenario_surroundings() {
  return {.home = users_surroundings().home,
          .exists = [](const std::string& path) { return UniqueFd(::open(path.c_str(), O_PATH | O_CLOEXEC)).valid(); },
          .pattern_problem = problem_of};
}

}  // namespace monarch
