#pragma once

// Holds a tree of YAML against a schema: unknown and missing keys, kinds, types, ranges, words, names, and values
// that this build cannot honour yet. What concerns more than one value is checked by build.h.
//
// Thread: pure functions.

#include "supervisor/spec/schema/schema.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

void check_against_schema(const Schema& schema, const YamlNode& root, Report& report, UnbuiltKeys unbuilt);

}  // namespace monarch
