#pragma once

// Checks of one value against its row of the schema, for check.cc.
//
// Thread: pure functions.

#include <string>
#include <string_view>

#include "supervisor/spec/schema/schema.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

// `node` is a scalar; `path` is how messages call it.
void check_scalar(const YamlNode& node, const KeyRow& row, const std::string& path, Report& report);
void check_name(std::string_view name, Place place, Report& report);      // of a job, mesh or dimension
void check_variable(std::string_view name, Place place, Report& report);  // of the environment, to be set

// Whether this build does what the value asks for; the value is well typed.
bool is_built(const Schema& schema, const YamlNode& node, const KeyRow& row);

}  // namespace monarch
