#pragma once

// Values as a spec writes them: the other direction of yaml.h. What is written here reads back as the same text, here
// and in any other reader of YAML.
//
// Thread: pure functions.

#include <string>
#include <string_view>
#include <vector>

#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

// Plain where that is safe, also within brackets; else in quotes.
std::string yaml_scalar(std::string_view text);
// In quotes in any case; what is no UTF-8 as `!!binary`.
std::string yaml_quoted(std::string_view text);
// [a, 'b c', d]
std::string yaml_list(const std::vector<std::string>& items);
// Any value on one line: lists and maps in brackets.
std::string yaml_flow(const YamlNode& node);

}  // namespace monarch
