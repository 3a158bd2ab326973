#include "supervisor/spec/overlay.h"

#include <map>
#include <span>
#include <string>
#include <utility>

#include "supervisor/spec/schema/launcher_spec.h"
#include "supervisor/spec/schema/schema.h"

namespace monarch {

namespace {

// Keys of which a map has one at most. Without this a later file could never change the launcher of an earlier one: it
// can write keys, but take none away.
struct Choice {
  std::string_view path;
  std::string_view keys;
};
std::span<const Choice> choices() {
  static const Choice kChoices[] = {{"launch", launcher_words()},
                                    {"launch.ssh", "hosts|hosts_file"},
                                    {"meshes.*", "program|actors"},
                                    {"meshes.*.actors.*", "plugin|python|module"}};
  return kChoices;
}

// `idle: false` chooses nothing.
bool chooses(const YamlNode& node) { return !node.is(YamlNode::Kind::kScalar) || node.text != "false"; }

void drop_alternatives(YamlNode& base, const YamlNode& over, const Choice& choice) {
  bool chosen = false;
  for (std::size_t i = 0; i < over.keys.size(); ++i) {
    chosen = chosen || (word_in(choice.keys, over.keys[i].text) && chooses(over.items[i]));
  }
  if (!chosen) return;
  for (std::size_t i = base.keys.size(); i-- > 0;) {
    if (!word_in(choice.keys, base.keys[i].text) || over.find_key(base.keys[i].text) != nullptr) continue;
    base.keys.erase(base.keys.begin() + static_cast<std::ptrdiff_t>(i));
    base.items.erase(base.items.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::string row_path_below(const std::string& path, const std::string& key) {
  if (path.empty()) return key;
  return path + "." + (path == "meshes" ? "*" : key);
}

void merge(YamlNode& base, YamlNode over, const std::string& path) {
  if (!base.is(YamlNode::Kind::kMap) || !over.is(YamlNode::Kind::kMap)) {
    base = std::move(over);
    return;
  }
  for (const Choice& choice : choices()) {
    if (choice.path == path) drop_alternatives(base, over, choice);
  }
  std::map<std::string, std::size_t> known;
  for (std::size_t i = 0; i < base.keys.size(); ++i) known.emplace(base.keys[i].text, i);
  for (std::size_t i = 0; i < over.keys.size(); ++i) {
    const auto found = known.find(over.keys[i].text);
    if (found == known.end()) {
      base.keys.push_back(std::move(over.keys[i]));
      base.items.push_back(std::move(over.items[i]));
      continue;
    }
    YamlNode& item = base.items[found->second];
    const bool both_maps = item.is(YamlNode::Kind::kMap) && over.items[i].is(YamlNode::Kind::kMap);
    const std::string next = row_path_below(path, over.keys[i].text);
    if (!both_maps) base.keys[found->second] = std::move(over.keys[i]);
    merge(item, std::move(over.items[i]), next);
  }
}

}  // namespace

void lay_over(YamlNode& base, YamlNode over) { merge(base, std::move(over), ""); }

}  // namespace monarch
