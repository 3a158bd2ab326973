#include "cli/term/environment.h"

namespace monarch {

Environment Environment::of_this_process(const char* const* environ) {
  std::map<std::string, std::string, std::less<>> variables;
  for (const char* const* entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view line(*entry);
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;  // execve(2) lets anything through; this is no variable
    variables.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return Environment(std::move(variables));
}

std::string Environment::get(std::string_view name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? std::string() : found->second;
}

}  // namespace monarch
