#include "cli/args/command_words.h"

#include <algorithm>

#include "transport/base/text.h"

namespace monarch {

std::vector<std::string> command_words(const Command& command, const Arguments& arguments,
                                       const std::vector<std::string>& positionals,
                                       const std::vector<std::string>& without) {
  std::vector<Flag> flags = command.flags;
  for (Flag& flag : common_flags()) flags.push_back(std::move(flag));
  std::vector<std::string> words = {command.name};
  for (const Flag& flag : flags) {
    if (!arguments.has(flag.name) || std::find(without.begin(), without.end(), flag.name) != without.end()) continue;
    if (flag.value.empty()) {
      words.push_back(text("--", flag.name));
      continue;
    }
    for (const std::string& value : arguments.values(flag.name)) words.push_back(text("--", flag.name, "=", value));
  }
  words.insert(words.end(), positionals.begin(), positionals.end());
  return words;
}

}  // namespace monarch
