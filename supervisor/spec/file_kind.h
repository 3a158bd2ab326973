#pragma once

// Files of different kinds look alike: a spec, and a scenario of a drill. Whoever gives one where the other belongs is
// told which command takes it, and nothing about keys that are right in their own place.
//
// Thread: pure functions.

#include <cstdint>

#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

enum class FileKind : std::uint8_t { kSpec, kScenario };

// True: it is of the other kind, and that is reported.
bool refuse_other_kind(const YamlNode& root, FileKind wanted, Report& report);

}  // namespace monarch
