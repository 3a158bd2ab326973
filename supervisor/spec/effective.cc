#include "supervisor/spec/effective.h"

#include <utility>

#include "supervisor/core/spec/hostlist.h"
#include "supervisor/spec/schema/key_path.h"
#include "supervisor/spec/yaml/yaml_text.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// What is written at a place of the tree; nothing if the way there ends before.
struct Spot {
  const YamlNode* node = nullptr;
  Place key{};
};

Spot child_of(const Spot& spot, std::string_view key) {
  if (spot.node == nullptr) return {};
  const YamlNode* node = spot.node->find(key);
  const YamlKey* place = spot.node->find_key(key);
  return {.node = node, .key = place == nullptr ? Place{} : place->place};
}

class Walker {
 public:
  Walker(const YamlNode& root, const JobSpec& job) : root_(root), job_(job) {}

  std::vector<EffectiveValue> take() { return std::move(found_); }

  // Follows what is left of the wanted path; `row_path` and `path` lead to `spot`.
  void follow(std::string_view rest, const std::string& row_path, const std::string& path, const Spot& spot) {
    if (rest.empty()) {
      wanted_ = path;
      return collect(row_path, path, spot, false);
    }
    const std::size_t end = std::min(rest.find('.'), rest.size());
    const std::string part(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (spot.node != nullptr && spot.node->is(YamlNode::Kind::kList)) {
      for (std::size_t i = 0; i < spot.node->items.size(); ++i) {
        const YamlNode& item = spot.node->items[i];
        if (part == "[]" || part == text("[", i, "]"))
          follow(rest, child_path(row_path, "[]"), text(path, "[", i, "]"), {.node = &item, .key = item.place});
      }
      return;
    }
    const bool fixed = part != "*" && spec_schema().find_row(child_path(row_path, part)) != nullptr;
    const std::string next = child_path(row_path, fixed ? std::string_view(part) : "*");
    if (part != "*") {
      const Spot child = child_of(spot, part);
      if (fixed || child.node != nullptr) follow(rest, next, child_path(path, part), child);
      return;
    }
    if (spot.node == nullptr) return;
    for (const YamlKey& key : spot.node->keys) {
      const bool own = spec_schema().find_row(child_path(row_path, key.text)) != nullptr;
      if (!own) follow(rest, next, child_path(path, key.text), child_of(spot, key.text));
    }
  }

 private:
  // `optional`: a map above is not written and has no default, so its keys mean nothing unless they are written.
  void collect(const std::string& row_path, const std::string& path, const Spot& spot, bool optional) {
    const KeyRow* row = spec_schema().find_row(row_path);
    if (row == nullptr) return;
    const bool descends = row->type == ValueType::kMap ||
                          (row->type == ValueType::kNamedMap && (row->default_value.empty() || has_rows(row_path)));
    if (!descends) return add(*row, row_path, path, spot, optional);
    const bool chosen = row_path == "launch.local" && root_.find("launch") == nullptr;  // what is meant by no `launch`
    const bool absent = spot.node == nullptr && !chosen && (row->unbuilt == "*" || row_path.starts_with("launch."));
    for (const std::string_view key : spec_schema().keys_below(row_path))
      collect(child_path(row_path, key), child_path(path, key), child_of(spot, key), optional || absent);
    if (spot.node == nullptr || spec_schema().find_row(child_path(row_path, "*")) == nullptr) return;
    for (const YamlKey& key : spot.node->keys) {
      if (spec_schema().find_row(child_path(row_path, key.text)) != nullptr) continue;
      collect(child_path(row_path, "*"), child_path(path, key.text), child_of(spot, key.text), optional);
    }
  }

  static bool has_rows(const std::string& row_path) { return !spec_schema().keys_below(row_path).empty(); }

  void add(const KeyRow& row, const std::string& row_path, const std::string& path, const Spot& spot, bool optional) {
    EffectiveValue value{.path = path, .value = "", .source = EffectiveValue::Source::kNone, .place = {}};
    if (spot.node != nullptr) {
      value.value = yaml_flow(*spot.node);
      value.source = EffectiveValue::Source::kWritten;
      value.place = spot.key;
    } else if (!take_from_top_level(row_path, value)) {
      value.value = row.default_value;
      if (!value.value.empty()) value.source = EffectiveValue::Source::kDefault;
      derive(row_path, path, value);
      // In a list of many keys, those without a value only take room.
      if (path != wanted_ && (optional || value.value.empty())) return;
    }
    found_.push_back(std::move(value));
  }

  // A default that depends on other keys.
  void derive(const std::string& row_path, const std::string& path, EffectiveValue& value) const {
    const LaunchFacts& launch = job_.launch.facts();
    const bool from_file = row_path == "launch.ssh.hosts" && launch.name == "ssh";
    if (row_path == "launch.local.hosts" || row_path == "launch.slurm.nodes")
      value.value = text(job_.pool_size() - job_.hosts_on_request());
    if (from_file) value.value = yaml_scalar(fold_hostlist(launch.hosts));
    if (row_path == "meshes.*.per_host") {
      for (const MeshSpec& mesh : job_.meshes) {
        if (path != text("meshes.", mesh.name, ".per_host")) continue;
        std::vector<std::string> inner;
        for (std::size_t i = mesh.dims.size() - mesh.per_host_dims; i < mesh.dims.size(); ++i)
          inner.push_back(mesh.dims[i].name);
        value.value = yaml_list(inner);
      }
    }
    if (row_path == "launch.local.hosts" || row_path == "meshes.*.per_host" || from_file)
      value.source = EffectiveValue::Source::kDerived;
  }

  // What a mesh leaves out of its `supervision` is taken from the top level.
  bool take_from_top_level(const std::string& row_path, EffectiveValue& value) const {
    constexpr std::string_view kMesh = "meshes.*.";
    if (!row_path.starts_with("meshes.*.supervision.")) return false;
    std::string_view rest = std::string_view(row_path).substr(kMesh.size());
    Spot spot{.node = &root_, .key = {}};
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('.'), rest.size());
      spot = child_of(spot, rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (spot.node == nullptr) return false;
    value.value = yaml_flow(*spot.node);
    value.source = EffectiveValue::Source::kTopLevel;
    value.place = spot.key;
    return true;
  }

  const YamlNode& root_;
  const JobSpec& job_;
  std::string wanted_;
  std::vector<EffectiveValue> found_;
};

}  // namespace

std::vector<EffectiveValue> effective_values(const YamlNode& root, const JobSpec& job, const NamedKey& key) {
  Walker walker(root, job);
  walker.follow(key.path, "", "", {.node = &root, .key = {}});
  return walker.take();
}

}  // namespace monarch
