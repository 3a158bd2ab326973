#include "supervisor/spec/job/build_workspace.h"

#include "supervisor/spec/yaml/values.h"

namespace monarch {

std::optional<WorkspaceSpec> build_workspace(const YamlNode& root, const PathBases& bases, Report& report) {
  const YamlNode* written = value_of(&root, "workspace");
  if (written == nullptr || !written->is(YamlNode::Kind::kMap)) return std::nullopt;
  WorkspaceSpec workspace;
  workspace.path = bases.directory;
  const YamlNode* path = value_of(written, "path");
  if (path != nullptr && path->is(YamlNode::Kind::kScalar) && !path->text.empty()) {
    const auto whole = local_path(*path, "workspace.path", bases, report);
    if (!whole) return std::nullopt;
    workspace.path = *whole;
  }
  if (workspace.path.size() > 1 && workspace.path.ends_with('/')) workspace.path.pop_back();
  workspace.exclude = texts_of(written, "exclude");
  workspace.include = texts_of(written, "include");
  workspace.max_bytes = size_or(written, "max_size", workspace.max_bytes);
  return workspace;
}

}  // namespace monarch
