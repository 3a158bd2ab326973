#pragma once

// The value of a key in a spec, with where it comes from: a line of the file, `supervision` at the top level, or the
// default.
//
// Thread: pure functions.

#include <cstdint>
#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/spec/schema/explain.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

struct EffectiveValue {
  enum class Source : std::uint8_t {
    kWritten,
    kTopLevel,  // `supervision` there, of a mesh that does not say it itself
    kDefault,
    kDerived,  // from other keys
    kNone,
  };

  std::string path;   // "meshes.trainer.gang"
  std::string value;  // as a spec would write it; empty with kNone
  Source source = Source::kNone;
  Place place{};  // kWritten and kTopLevel: of the key
};

// One for each key with a value at or below `key`; `*` stands for every name that the spec has there. Empty: the spec
// has nothing of that name. `root` and `job` are of one LoadedSpec.
std::vector<EffectiveValue> effective_values(const YamlNode& root, const JobSpec& job, const NamedKey& key);

}  // namespace monarch
