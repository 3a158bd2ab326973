#include "supervisor/spec/spec_diff.h"

#include <algorithm>
#include <optional>

#include "supervisor/spec/schema/key_path.h"
#include "supervisor/spec/yaml/source_text.h"
#include "supervisor/spec/yaml/yaml.h"
#include "supervisor/spec/yaml/yaml_text.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kMostShown = 3;
constexpr std::size_t kLongestValue = 60;

YamlNode tree(std::string_view source) {
  Report nobody;
  std::optional<YamlNode> root = read_yaml(without_byte_order_mark(source), nobody);
  return root ? std::move(*root) : YamlNode{};
}

std::string flow_text(const YamlNode* node) { return node == nullptr ? "" : yaml_flow(*node); }

void compare(const YamlNode* before, const YamlNode* after, const std::string& path, std::vector<SpecChange>& changes) {
  const auto is_map = [](const YamlNode* node) { return node != nullptr && node->is(YamlNode::Kind::kMap); };
  if (!is_map(before) || !is_map(after)) {
    SpecChange change{.path = path, .before = flow_text(before), .after = flow_text(after)};
    if (change.before != change.after) changes.push_back(std::move(change));
    return;
  }
  for (std::size_t i = 0; i < before->keys.size(); ++i) {
    const std::string& key = before->keys[i].text;
    compare(&before->items[i], after->find(key), child_path(path, key), changes);
  }
  for (std::size_t i = 0; i < after->keys.size(); ++i) {
    const std::string& key = after->keys[i].text;
    if (before->find(key) == nullptr) compare(nullptr, &after->items[i], child_path(path, key), changes);
  }
}

std::string shown_value(const std::string& value) {
  return value.size() <= kLongestValue ? printable(value) : text(printable(value.substr(0, kLongestValue)), "...");
}

std::string change_text(const SpecChange& change) {
  const std::string path = printable(change.path);
  if (change.before.empty()) return text(path, ": new, ", shown_value(change.after));
  if (change.after.empty()) return text(path, ": ", shown_value(change.before), ", now left out");
  return text(path, ": ", shown_value(change.before), ", now ", shown_value(change.after));
}

}  // namespace

std::vector<SpecChange> spec_changes(std::string_view before, std::string_view after) {
  const YamlNode old_tree = tree(before);
  const YamlNode new_tree = tree(after);
  std::vector<SpecChange> changes;
  compare(&old_tree, &new_tree, "", changes);
  return changes;
}

std::string changes_text(const std::vector<SpecChange>& changes) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(changes.size(), kMostShown); ++i) parts.push_back(change_text(changes[i]));
  if (changes.size() > kMostShown) parts.push_back(text("and ", changes.size() - kMostShown, " more"));
  return join(parts, "; ");
}

}  // namespace monarch
