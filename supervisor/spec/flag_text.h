#pragma once

// What a command line adds to a spec, as trees whose places point at the flags: one key of `--set`, the launcher of `--launch`,
// and what follows `--`.
//
// Thread: pure functions.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/spec/diagnostics.h"
#include "supervisor/spec/yaml.h"

namespace monarch {

// A flag as it was typed, "--set supervision.lease=5s", and where in it its value starts.
struct FlagText {
  std::string text;
  std::size_t begin = 0;
  bool operator==(const FlagText&) const = default;
};

// `number` is what places call the text. Nothing: reported.
std::optional<YamlNode> read_setting(const FlagText& flag, Report& report, std::uint32_t number);
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
