#pragma once

// `launch` of a JobSpec: exactly one launcher with its hosts, paths of this machine made absolute. Like build.h.
//
// Thread: pure functions.

#include <optional>
#include <string>

#include "supervisor/core/job_spec.h"
#include "supervisor/spec/diagnostics.h"
#include "supervisor/spec/yaml.h"

namespace monarch {

// What relative paths, and those with `~`, start from; both absolute. Without a home `~` stays as it is.
struct PathBases {
  std::string directory;
  std::string home;
};

Launch build_launch(const YamlNode& root, const PathBases& bases, Report& report);
// What a launcher does not do yet.
void check_launcher_built(const JobSpec& job, const YamlNode& root, Report& report);
// Whether the hosts do for the meshes: `job` has all of these, and they are linked.
void check_hosts_suffice(const JobSpec& job, const YamlNode& root, Report& report);

// A path of this machine as it was written; nothing: reported. `key` is how messages call it.
std::optional<std::string> local_path(const YamlNode& node, const std::string& key, const PathBases& bases,
                                      Report& report);

}  // namespace monarch
