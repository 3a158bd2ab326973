#include "supervisor/spec/yaml/values.h"

#include <limits>

#include "supervisor/spec/yaml/scalar.h"

namespace monarch {

namespace {

const YamlNode* scalar_of(const YamlNode* map, std::string_view key) {
  const YamlNode* node = value_of(map, key);
  return node != nullptr && node->is(YamlNode::Kind::kScalar) ? node : nullptr;
}

}  // namespace

const YamlNode* value_of(const YamlNode* map, std::string_view key) {
  return map == nullptr ? nullptr : map->find(key);
}

const YamlNode* nonempty_scalar_of(const YamlNode* map, std::string_view key) {
  const YamlNode* node = scalar_of(map, key);
  return node != nullptr && !node->text.empty() ? node : nullptr;
}

Duration duration_or(const YamlNode* map, std::string_view key, Duration fallback) {
  const YamlNode* node = scalar_of(map, key);
  return node == nullptr ? fallback : parse_duration(*node).value.value_or(fallback);
}

double number_or(const YamlNode* map, std::string_view key, double fallback) {
  const YamlNode* node = scalar_of(map, key);
  return node == nullptr ? fallback : parse_number(*node).value.value_or(fallback);
}

bool bool_or(const YamlNode* map, std::string_view key, bool fallback) {
  const YamlNode* node = scalar_of(map, key);
  return node == nullptr ? fallback : parse_bool(*node).value.value_or(fallback);
}

std::uint64_t size_or(const YamlNode* map, std::string_view key, std::uint64_t fallback) {
  const YamlNode* node = scalar_of(map, key);
  return node == nullptr ? fallback : parse_size(*node).value.value_or(fallback);
}

std::optional<std::uint32_t> integer_of(const YamlNode* map, std::string_view key) {
  const YamlNode* node = scalar_of(map, key);
  if (node == nullptr) return std::nullopt;
  const std::optional<std::int64_t> value = parse_integer(*node).value;
  if (!value || *value < 0 || *value > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

std::optional<std::string> text_of(const YamlNode* map, std::string_view key) {
  const YamlNode* node = scalar_of(map, key);
  return node == nullptr ? std::nullopt : std::optional(node->text);
}

std::vector<std::string> texts_of(const YamlNode* map, std::string_view key) {
  std::vector<std::string> out;
  const YamlNode* node = value_of(map, key);
  if (node == nullptr || !node->is(YamlNode::Kind::kList)) return out;
  for (const YamlNode& item : node->items) out.push_back(item.text);
  return out;
}

}  // namespace monarch
