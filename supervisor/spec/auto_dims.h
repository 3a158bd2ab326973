#pragma once

// A dimension that is `auto` has as many ranks as a host has GPUs. Those of virtual hosts are this machine's, which are
// counted when the spec is loaded; the job's own copy of its spec holds the number, so that it stays what it was.
//
// Thread: pure functions, but for the counter that they are given.

#include <optional>
#include <string>
#include <vector>

#include "supervisor/spec/spec.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

struct AutoDims {
  YamlNode root;                   // the spec, with a number in the place of each
  std::vector<std::string> notes;  // what each is
};

// Nothing: there is none. One that cannot be counted is reported, and is 1.
std::optional<AutoDims> with_counted_dims(const YamlNode& root, const SpecParts& parts, const SpecSurroundings& around,
                                          const std::vector<SpecText>& sources, Report& report);

}  // namespace monarch
