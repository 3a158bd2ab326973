#pragma once

// What a command line adds to a spec, as trees whose places point at the flags: one key of `--set`, the launcher of
// `--launch`, and what follows `--`.
//
// Thread: pure functions.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/spec/schema/schema.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

// A flag as it was typed, "--set supervision.lease=5s", and where in it its value starts.
struct FlagText {
  std::string text;
  std::size_t begin = 0;
  std::string from = "command line";  // what messages call the place where it stands
  bool operator==(const FlagText&) const = default;
};

std::string_view flag_value(const FlagText& flag);

struct Setting {
  std::vector<YamlKey> path;
  YamlNode value;
};

// `number` is what places call the text. Nothing: reported.
std::optional<Setting> read_setting(const FlagText& flag, Report& report, std::uint32_t number);
// False: it goes through a mesh or to a dimension that `root` does not have, which is a slip and reported. Whoever
// means to add one lays a file over the spec, or sets the map around it.
bool reaches(const YamlNode& root, const Setting& setting, Report& report);
YamlNode tree_of(Setting setting);

// "local", "local:8" or "ssh:node[01-20]".
std::optional<YamlNode> read_launch(const FlagText& flag, Report& report, std::uint32_t number);

// Arguments as they are shown: "-- --epochs 3", each in quotes where a shell would need them.
FlagText arguments_text(const std::vector<std::string>& arguments);

struct ExtraArguments {
  std::vector<std::string> words;
  std::string mesh;  // whose program gets them; empty: the only one
  bool operator==(const ExtraArguments&) const = default;
};
void append_arguments(YamlNode& root, const ExtraArguments& extra, Report& report, std::uint32_t number);

}  // namespace monarch
