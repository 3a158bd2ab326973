#include "supervisor/client/shell_values.h"

#include <set>

#include "supervisor/core/spec/expansion.h"
#include "transport/base/text.h"

namespace monarch {

Result<std::map<std::string, std::string>> shell_values(const JobSpec& spec, const char* const* environment,
                                                        std::string_view prefix) {
  const std::set<std::string> named = shell_variables(spec);
  std::map<std::string, std::string> values;
  for (const char* const* line = environment; *line != nullptr; ++line) {
    std::string_view variable(*line);
    if (!variable.starts_with(prefix)) continue;
    variable.remove_prefix(prefix.size());
    const std::size_t equals = variable.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string name(variable.substr(0, equals));
    // As getenv(3), which takes the first.
    if (named.contains(name) || is_passed(spec, name)) values.emplace(name, variable.substr(equals + 1));
  }
  for (const std::string& name : named) {
    if (values.contains(name)) continue;
    return Error{ErrorCode::kInvalid,
                 text("the spec uses $(env.", name, "), which is not set in the shell that starts the job")};
  }
  return values;
}

}  // namespace monarch
