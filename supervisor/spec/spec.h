#pragma once

// A spec, from its files and flags to the JobSpec that the cores work with. All faults are found in one go; a spec with a fault
// yields no job. It knows nothing about running one.
//
// Thread: pure functions but read_spec_file, which reads a file and may block on it.

#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/job_spec.h"
#include "supervisor/spec/diagnostics.h"
#include "supervisor/spec/flag_text.h"
#include "supervisor/spec/yaml.h"
#include "transport/base/result.h"

namespace monarch {

struct SpecSource {
  std::string name;       // as typed; what messages call it
  std::string text;       // its bytes
  std::string directory;  // absolute: what relative paths in it start from
};

// What makes up one spec. Each part lies over the parts before it.
struct SpecParts {
  std::vector<SpecSource> files;  // at least one; relative paths start from the folder of the first
  std::vector<FlagText> settings;
  std::optional<FlagText> launch;
  std::optional<ExtraArguments> arguments;
};

struct LoadedSpec {
  JobSpec spec;
  std::vector<std::string> notes;  // defaults that this build cannot honour yet; `run` and `plan` say them once
  std::string text;                // the whole spec as one file: the only file's own bytes, or the parts merged
  YamlNode tree;                   // the same, with places in the outcome's sources
};

struct SpecText {
  std::string name;
  std::string text;
};

struct SpecOutcome {
  std::optional<LoadedSpec> loaded;     // nothing if there is an error below
  std::vector<Diagnostic> diagnostics;  // in the order of the texts
  std::vector<SpecText> sources;        // what Diagnostic::source counts
};

// A regular file. The error names the path and what the system answered. Of a file with more than limits::kSpecBytes enough
// is read for load_spec to refuse it.
Result<SpecSource> read_spec_file(const std::string& path);

SpecOutcome load_spec(const SpecParts& parts);
SpecOutcome load_spec(const SpecSource& source);

// Its diagnostics, as they are shown.
std::string render(const SpecOutcome& outcome, RenderOptions options = {});

}  // namespace monarch
