#include "supervisor/spec/yaml/yaml_tree.h"

#include <utility>

namespace monarch {

YamlNode scalar_node(std::string text, Place place) {
  return {.kind = YamlNode::Kind::kScalar, .place = place, .text = std::move(text)};
}

void append_key(YamlNode& map, std::string key, YamlNode value) {
  map.kind = YamlNode::Kind::kMap;
  map.keys.push_back({.text = std::move(key), .place = value.place});
  map.items.push_back(std::move(value));
}

}  // namespace monarch
