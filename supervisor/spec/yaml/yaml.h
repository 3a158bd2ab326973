#pragma once

// Reads the restricted YAML of our files into a tree of values with places: no aliases, anchors, merge keys, no tags
// but
// `!!binary` (bytes in base64, as YAML 1.1 has it), no duplicate keys, directives or second documents, and limits on
// size, depth and number. Scalars stay text as it was written; what they mean is decided by scalar.h, exactly, and not
// by YAML's rules. yaml-cpp is used in yaml.cc alone.
//
// Thread: values; any one thread at a time.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/spec/yaml/diagnostics.h"

namespace monarch {

struct YamlKey {
  std::string text;
  Place place;
};

struct YamlNode {
  enum class Kind : std::uint8_t { kNothing, kScalar, kList, kMap, kRefused };

  Kind kind = Kind::kNothing;   // kNothing: an empty value, ~ or null; kRefused: reported already, says nothing
  Place place{};                // of a scalar all of it, of a flow list or map its bracket, of a block its first key
  bool quoted = false;          // kScalar: "", '', | or >
  std::string text{};           // kScalar
  std::vector<YamlKey> keys{};  // kMap: keys[i] names items[i], in order of writing
  std::vector<YamlNode> items{};

  bool is(Kind other) const { return kind == other; }
  const YamlNode* find(std::string_view key) const;  // of a map; nullptr if it is not written
  YamlNode* find(std::string_view key);
  const YamlKey* find_key(std::string_view key) const;  // likewise
};

std::string_view kind_name(const YamlNode& node);  // "a list", as messages say it

// Nothing: `report` says why, and there is nothing to check further. A tree may come with faults reported, too.
// `number` is what places call the text.
std::optional<YamlNode> read_yaml(std::string_view source, Report& report, std::uint32_t number = 0);

}  // namespace monarch
