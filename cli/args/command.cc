#include "cli/args/command.h"

#include <cctype>
#include <utility>

namespace monarch {

std::optional<std::string> Arguments::value(std::string_view flag) const {
  const auto found = flags_.find(flag);
  if (found == flags_.end()) return std::nullopt;
  return found->second.values.front();
}

std::vector<std::string> Arguments::values(std::string_view flag) const {
  const auto found = flags_.find(flag);
  return found == flags_.end() ? std::vector<std::string>() : found->second.values;
}

bool Arguments::from_variable(std::string_view flag) const {
  const auto found = flags_.find(flag);
  return found != flags_.end() && found->second.origin == Origin::kVariable;
}

void Arguments::set(std::string flag, std::vector<std::string> values, Origin origin) {
  flags_[std::move(flag)] = {.values = std::move(values), .origin = origin};
}

std::string Arguments::positional(std::size_t index) const {
  return index < positionals_.size() ? positionals_[index] : std::string();
}

std::vector<Flag> common_flags() {
  return {
      {.name = "color", .value = "WHEN", .help = "auto (default), always or never; NO_COLOR counts for auto"},
      {.name = "quiet", .value = "", .help = "on stderr only errors and how a job ended", .letter = 'q'},
      {.name = "help", .value = "", .help = "show this and exit", .letter = 'h'},
  };
}

std::vector<Flag> flags_of(const Command& command) {
  std::vector<Flag> flags = command.flags;
  for (Flag& flag : common_flags()) flags.push_back(std::move(flag));
  return flags;
}

std::string option_variable(std::string_view flag) {
  std::string name = "MONARCH_OPT_";
  for (const char c : flag) {
    name.push_back(c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
  }
  return name;
}

}  // namespace monarch
