#pragma once

// Reads single values out of a tree that was held against the schema. What is not written, or was refused there, yields
// the fallback: it has been reported, and the checks that follow go on with a sound value.
//
// Thread: pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/spec/yaml/yaml.h"
#include "transport/base/time.h"

namespace monarch {

// The value of `key` in `map`; nullptr if there is no map, or it is not written.
const YamlNode* value_of(const YamlNode* map, std::string_view key);

// The same if it is a single value that is not empty.
const YamlNode* nonempty_scalar_of(const YamlNode* map, std::string_view key);

Duration duration_or(const YamlNode* map, std::string_view key, Duration fallback);
double number_or(const YamlNode* map, std::string_view key, double fallback);
bool bool_or(const YamlNode* map, std::string_view key, bool fallback);
std::uint64_t size_or(const YamlNode* map, std::string_view key, std::uint64_t fallback);
std::optional<std::uint32_t> integer_of(const YamlNode* map, std::string_view key);  // if it is one, from 0 to 2^32 - 1
std::optional<std::string> text_of(const YamlNode* map, std::string_view key);
std::vector<std::string> texts_of(const YamlNode* map, std::string_view key);  // of a list

}  // namespace monarch
