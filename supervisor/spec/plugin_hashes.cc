#include "supervisor/spec/plugin_hashes.h"

#include <filesystem>
#include <map>
#include <vector>

#include "supervisor/spec/job/build_workspace.h"
#include "supervisor/spec/yaml/values.h"
#include "supervisor/spec/yaml/yaml_tree.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// What names a plugin and not yet its hash.
std::vector<YamlNode*> parts_without_hash(YamlNode& root) {
  std::vector<YamlNode*> parts;
  const auto take = [&parts](YamlNode* part) {
    if (part == nullptr || !part->is(YamlNode::Kind::kMap) || part->find("sha256") != nullptr) return;
    const YamlNode* plugin = part->find("plugin");
    // `~` is refused where the job is built.
    const bool named = plugin != nullptr && plugin->is(YamlNode::Kind::kScalar) && !plugin->text.empty();
    if (named && !plugin->text.starts_with('~')) parts.push_back(part);
  };
  if (YamlNode* meshes = root.find("meshes"); meshes != nullptr && meshes->is(YamlNode::Kind::kMap)) {
    for (YamlNode& mesh : meshes->items) {
      YamlNode* actors = mesh.is(YamlNode::Kind::kMap) ? mesh.find("actors") : nullptr;
      if (actors == nullptr || !actors->is(YamlNode::Kind::kMap)) continue;
      for (YamlNode& actor : actors->items) take(&actor);
    }
  }
  take(root.find("controller"));
  return parts;
}

}  // namespace

std::optional<YamlNode> with_plugin_hashes(const YamlNode& root, const PathBases& bases, const HashFile& hash,
                                           Report& report) {
  if (!hash || !root.is(YamlNode::Kind::kMap)) return std::nullopt;
  YamlNode whole = root;
  const std::vector<YamlNode*> parts = parts_without_hash(whole);
  if (parts.empty()) return std::nullopt;
  Report elsewhere;  // said where the job is built
  const auto workspace = build_workspace(root, bases, elsewhere);
  const std::filesystem::path folder = workspace ? workspace->path : bases.directory;
  std::map<std::string, std::string> known;
  for (YamlNode* part : parts) {
    const YamlNode& plugin = *part->find("plugin");
    const std::string path = (folder / plugin.text).lexically_normal().string();
    std::string& digits = known[path];
    if (digits.empty()) {
      const auto hashed = hash(path);
      if (!hashed.ok()) {
        report.error("E0334", plugin.place,
                     {.message = text("the plugin cannot be read: ", hashed.error().message),
                      .label = "is needed before the job begins",
                      .help = text("a relative path starts from ", printable(folder.string()),
                                   workspace ? ", the workspace's folder" : ", the spec's folder",
                                   "; hosts elsewhere have it where a `workspace` is copied to them, or under the same "
                                   "path")});
        continue;
      }
      digits = *hashed;
    }
    append_key(*part, "sha256", scalar_node(digits, plugin.place));
  }
  return whole;
}

}  // namespace monarch
