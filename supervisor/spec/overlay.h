#pragma once

// Lays one tree of a spec over another: maps merge, lists and single values replace what was there. Every value keeps
// its place, so that a fault is shown in the text that wrote it.
//
// Thread: pure functions.

#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

// Where just one of several keys may be written (the launchers; program and actors of a mesh), one that `over`
// writes takes the place of the other that `base` has. A new key comes behind those that are there, a new dimension
// innermost.
void lay_over(YamlNode& base, YamlNode over);

}  // namespace monarch
