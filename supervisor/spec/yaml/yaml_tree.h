#pragma once

// Makes parts of a tree that no YAML was read for: what a command line, a list of hosts or Slurm says, as a spec would
// have it.
//
// Thread: pure functions.

#include <string>

#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

YamlNode scalar_node(std::string text, Place place = {});
// `map` becomes a map if it is none. The key stands behind the others, at the place of its value.
void append_key(YamlNode& map, std::string key, YamlNode value);

}  // namespace monarch
