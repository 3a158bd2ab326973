#pragma once

// Paths of this machine, as a spec writes them.
//
// Thread: pure functions.

#include <optional>
#include <string>

#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

// What relative paths, and those with `~`, start from; both absolute. Without a home `~` stays as it is.
struct PathBases {
  std::string directory;
  std::string home;
};

// A path of this machine as it was written; nothing: reported. `key` is how messages call it.
std::optional<std::string> local_path(const YamlNode& node, const std::string& key, const PathBases& bases,
                                      Report& report);

}  // namespace monarch
