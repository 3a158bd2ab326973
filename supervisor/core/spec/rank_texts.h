#pragma once

// The texts of a mesh that are expanded for each rank (program with what wraps it, env, workdir), parsed once.
//
// Thread: values and pure functions.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/spec/expansion.h"
#include "supervisor/core/spec/job_spec.h"
#include "supervisor/core/spec/placement.h"
#include "transport/base/ids.h"

namespace monarch {

struct MeshTexts {
  std::vector<CompiledText> argv;  // wrap, then program
  std::map<std::string, CompiledText> env;
  std::optional<CompiledText> workdir;
};

MeshTexts compile_texts(const JobSpec& spec, MeshId mesh);

// Where the values of references come from.
struct ReferenceSources {
  const JobSpec& spec;
  const Placement& placement;
  const std::vector<PoolHost>& hosts;
  // Port number `index` of a rank's mesh, as the rank has it; 0: not known yet.
  std::function<std::uint16_t(RankId, std::size_t index)> port;
  // $(env.NAME); values are the user's, and may be secret.
  std::map<std::string, std::string> shell;
};

struct ExpandedText {
  std::string value;
  bool open = false;    // a port in it is not known yet: 0 stands there
  bool secret = false;  // a value of the submitting shell is in it
};

// Is anything but values of the submitting shell in it?
bool depends_on_place(const CompiledText& text);

ExpandedText expand_for(const CompiledText& text, const ReferenceSources& sources, RankId rank);

// Absolute, or below the tree of the workspace that the rank's host has: what is relative starts at base_directory().
std::string workdir_of(const MeshTexts& texts, const ReferenceSources& sources, RankId rank);

}  // namespace monarch
