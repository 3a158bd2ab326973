#pragma once

// What somebody meant who wrote a single value, a list or a map where one of the others belongs.
//
// Thread: pure functions.

#include <string>
#include <string_view>

#include "supervisor/spec/schema/schema.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

// A sentence for help: the value in its right form if that can be told, else an example. May be empty.
std::string suggest_shape(const Schema& schema, const YamlNode& node, const KeyRow& row, std::string_view row_path);

}  // namespace monarch
