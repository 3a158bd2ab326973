#pragma once

// The sha256 of each plugin is a part of the job: what a rank loads later is what was there when the job began.
//
// Thread: a function as pure as `hash` is.

#include <functional>
#include <optional>
#include <string>

#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/local_path.h"
#include "supervisor/spec/yaml/yaml.h"
#include "transport/base/result.h"

namespace monarch {

using HashFile = std::function<Result<std::string>(const std::string& path)>;

// The tree with a `sha256` beside each `plugin` that has none; nothing: there is none such. A plugin that cannot be
// read is reported.
std::optional<YamlNode> with_plugin_hashes(const YamlNode& root, const PathBases& bases, const HashFile& hash,
                                           Report& report);

}  // namespace monarch
