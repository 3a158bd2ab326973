#include "supervisor/spec/relocate.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "supervisor/spec/yaml/source_text.h"
#include "supervisor/spec/yaml/yaml.h"
#include "supervisor/spec/yaml/yaml_tree.h"
#include "supervisor/spec/yaml/yaml_writer.h"
#include "transport/base/assert.h"

namespace monarch {

namespace {

// `~` and `$(…)` are the reader's to expand.
void write_out(YamlNode* path, const std::string& from) {
  if (path == nullptr || !path->is(YamlNode::Kind::kScalar) || path->text.empty()) return;
  const char first = path->text.front();
  if (first == '/' || first == '~' || first == '$') return;
  path->text = (std::filesystem::path(from) / path->text).lexically_normal().string();
  while (path->text.size() > 1 && path->text.ends_with('/')) path->text.pop_back();
}

YamlNode* find_in(YamlNode* map, std::string_view key) { return map == nullptr ? nullptr : map->find(key); }

// `is_shipped`: plugins are counted from the workspace, which goes along.
void move_program(YamlNode& mesh, const std::string& from, bool is_shipped) {
  if (!mesh.is(YamlNode::Kind::kMap)) return;
  if (mesh.find("workdir") == nullptr) {
    append_key(mesh, "workdir", scalar_node("."));
  }
  write_out(mesh.find("workdir"), from);
  if (is_shipped) return;
  write_out(mesh.find("plugin"), from);
  YamlNode* actors = mesh.find("actors");
  if (actors == nullptr) return;
  for (YamlNode& actor : actors->items) write_out(actor.find("plugin"), from);
}

}  // namespace

std::string moved_spec(std::string_view text, const Move& move) {
  if (move.from == move.to) return std::string(text);
  Report nobody;
  std::optional<YamlNode> root = read_yaml(without_byte_order_mark(text), nobody);
  MONARCH_ASSERT(root && root->is(YamlNode::Kind::kMap));
  const bool is_shipped = root->find("workspace") != nullptr;
  if (YamlNode* meshes = root->find("meshes")) {
    for (YamlNode& mesh : meshes->items) move_program(mesh, move.from, is_shipped);
  }
  YamlNode* ssh = find_in(root->find("launch"), "ssh");
  for (const char* key : {"hosts_file", "identity", "known_hosts"}) write_out(find_in(ssh, key), move.from);
  YamlNode* config = find_in(ssh, "config");
  if (config != nullptr && config->text != "none") write_out(config, move.from);
  write_out(find_in(root->find("workspace"), "path"), move.from);
  if (YamlNode* controller = root->find("controller")) move_program(*controller, move.from, is_shipped);
  return write_yaml(*root);
}

}  // namespace monarch
