#pragma once

// Writes a tree as YAML that read_yaml() reads back as the same tree, places apart. It is meant to be read by people,
// too: short lists and maps stand on one line, texts of several lines as `|`.
//
// Thread: pure functions.

#include <string>

#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

// Every text in it is UTF-8, and nothing in it is kRefused.
std::string write_yaml(const YamlNode& root);

}  // namespace monarch
