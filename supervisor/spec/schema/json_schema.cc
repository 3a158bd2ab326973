#include "supervisor/spec/schema/json_schema.h"

#include <limits>
#include <utility>

#include "supervisor/spec/schema/explain.h"
#include "supervisor/spec/schema/key_path.h"
#include "supervisor/spec/yaml/scalar.h"
#include "supervisor/spec/yaml/yaml.h"
#include "transport/base/json.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::int64_t kOpen = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view kName = "^[a-z][a-z0-9_]{0,31}$";
constexpr std::string_view kVariable = "^[A-Za-z_][A-Za-z0-9_]{0,254}$";
constexpr std::string_view kDuration = "^([0-9]+(\\.[0-9]+)?(ms|s|m|h|d))+$";
constexpr std::string_view kSize = "^[0-9]+(\\.[0-9]+)?(B|KiB|MiB|GiB|TiB)$";
constexpr std::string_view kPorts = "^[0-9]{1,5}-[0-9]{1,5}$";

// Other readers of YAML make numbers and booleans of what a spec takes as text; both are the same text here.
Json any_scalar() { return Json::array({"string", "number", "boolean"}); }

Json number_schema(const KeyRow& row, std::string_view type) {
  Json out = Json::object({{"type", type}, {"minimum", row.least}});
  if (row.most != kOpen) out.set("maximum", row.most);
  return out;
}

Json pattern_schema(std::string_view pattern) { return Json::object({{"type", "string"}, {"pattern", pattern}}); }

Json words_schema(const KeyRow& row) {
  Json words = Json::array();
  for (const std::string& word : split_words(row.words)) words.append(word);
  return Json::object({{"enum", std::move(words)}});
}

Json hosts_schema() {
  Json host = Json::object(
      {{"type", "object"},
       {"properties", Json::object({{"name", Json::object({{"type", "string"}})},
                                    {"address", Json::object({{"type", "string"}})},
                                    {"user", Json::object({{"type", "string"}})},
                                    {"port", Json::object({{"type", "integer"}, {"minimum", 1}, {"maximum", 65'535}})},
                                    {"host_key", Json::object({{"type", "string"}})}})},
       {"required", Json::array({"name"})},
       {"additionalProperties", false}});
  Json item = Json::object({{"anyOf", Json::array({Json::object({{"type", "string"}}), std::move(host)})}});
  Json list = Json::object({{"type", "array"}, {"items", std::move(item)}, {"minItems", 1}});
  return Json::object(
      {{"anyOf", Json::array({Json::object({{"type", "string"}, {"minLength", 1}}), std::move(list)})}});
}

Json schema_of(const Schema& schema, const std::string& path);

Json map_schema(const Schema& schema, const std::string& path) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const std::string_view key : schema.keys_below(path)) {
    properties.set(std::string(key), schema_of(schema, child_path(path, key)));
    if (schema.find_row(child_path(path, key))->required) required.append(key);
  }
  Json out = Json::object({{"type", "object"}, {"properties", std::move(properties)}});
  if (!required.items().empty()) out.set("required", std::move(required));
  out.set("additionalProperties", false);
  return out;
}

Json named_map_schema(const Schema& schema, const std::string& path, const KeyRow& row) {
  Json out = map_schema(schema, path);
  if (schema.find_row(child_path(path, "*")) != nullptr)
    out.set("additionalProperties", schema_of(schema, child_path(path, "*")));
  Json names = Json::object({{"pattern", row.names == NameRule::kVariable ? kVariable : kName}});
  if (row.names == NameRule::kName) names.set("not", Json::object({{"enum", Json::array({"last", "all", "each"})}}));
  out.set("propertyNames", std::move(names));
  if (row.least > 0) out.set("minProperties", row.least);
  if (row.most != kOpen) out.set("maxProperties", row.most);
  return out;
}

Json list_schema(const Schema& schema, const std::string& path, const KeyRow& row) {
  Json out = Json::object({{"type", "array"}, {"items", schema_of(schema, child_path(path, "[]"))}});
  if (row.least > 0) out.set("minItems", row.least);
  if (row.most != kOpen) out.set("maxItems", row.most);
  return out;
}

// Without the words and the map that do as well.
Json plain_schema(const Schema& schema, const std::string& path, const KeyRow& row) {
  switch (row.type) {
    case ValueType::kMap: return map_schema(schema, path);
    case ValueType::kNamedMap: return named_map_schema(schema, path, row);
    case ValueType::kList: return list_schema(schema, path, row);
    case ValueType::kInteger: return number_schema(row, "integer");
    case ValueType::kNumber: return number_schema(row, "number");
    case ValueType::kBool: return Json::object({{"type", "boolean"}});
    case ValueType::kDuration: return pattern_schema(kDuration);
    case ValueType::kSize: return pattern_schema(kSize);
    case ValueType::kText: {
      Json out = Json::object({{"type", any_scalar()}});
      if (row.least > 0) out.set("minLength", row.least);
      return out;
    }
    case ValueType::kName: return pattern_schema(kName);
    case ValueType::kWord: return words_schema(row);
    case ValueType::kPorts: return pattern_schema(kPorts);
    case ValueType::kHosts: return hosts_schema();
    case ValueType::kAny: return Json::object({});
  }
  return Json::object({});
}

// A default as JSON: an editor inserts it.
Json default_json(const Schema& schema, const YamlNode& node, const KeyRow& row) {
  switch (node.kind) {
    case YamlNode::Kind::kNothing:
    case YamlNode::Kind::kRefused: return nullptr;
    case YamlNode::Kind::kScalar: break;
    case YamlNode::Kind::kList: {
      Json out = Json::array();
      const KeyRow* item_row = schema.find_row(text(row.path, ".[]"));
      for (const YamlNode& item : node.items)
        out.append(default_json(schema, item, item_row == nullptr ? row : *item_row));
      return out;
    }
    case YamlNode::Kind::kMap: return Json::object({});  // no default has more in it
  }
  if (row.type == ValueType::kInteger && parse_integer(node).value) return *parse_integer(node).value;
  if (row.type == ValueType::kNumber && parse_number(node).value) return *parse_number(node).value;
  if (row.type == ValueType::kBool && parse_bool(node).value) return *parse_bool(node).value;
  return node.text;
}

std::string description_of(const Schema& schema, const std::string& path) {
  std::string out(doc_of(schema, path));
  const std::string built = built_text(schema, path);
  if (built != "yes") out += built == "no" ? " (not built yet)" : text(" (built: ", built, ")");
  const KeyHelp* help = schema.find_help(path);
  if (help != nullptr && !help->more.empty()) out += text("\n\n", help->more);
  return out;
}

Json exactly_one(const std::vector<std::string>& keys) {
  Json out = Json::array();
  for (const std::string& key : keys) {
    out.append(Json::object({{"required", Json::array({Json(key)})}}));
  }
  return out;
}

// The map whose keys `path` has, whose owner it is; nothing: it has rows of its own.
const SharedMap* shared_at(const Schema& schema, std::string_view path) {
  for (const SharedMap& map : schema.parts().shared) {
    for (const std::string_view owner : map.owners) {
      if (path == child_path(owner, map.path)) return &map;
    }
  }
  return nullptr;
}

Json schema_of(const Schema& schema, const std::string& path) {
  const KeyRow& row = *schema.find_row(path);
  Json described = Json::object({{"description", description_of(schema, path)}});
  if (!row.default_value.empty()) {
    Report nobody("", row.default_value);
    const auto node = read_yaml(row.default_value, nobody);
    if (node) described.set("default", default_json(schema, *node, row));
  }
  if (const SharedMap* shared = shared_at(schema, path)) {
    // Draft 7 ignores what stands beside a $ref.
    described.set("allOf", Json::array({Json::object({{"$ref", text("#/definitions/", shared->path)}})}));
    return described;
  }
  std::vector<Json> choices = {plain_schema(schema, path, row)};
  if (row.type != ValueType::kWord && !row.words.empty()) choices.push_back(words_schema(row));
  if (row.or_map) choices.push_back(map_schema(schema, path));
  if (choices.size() > 1) {
    described.set("anyOf", Json::array(std::move(choices)));
  } else {
    for (const Json::Member& member : choices.front().members()) described.set(member.first, member.second);
  }
  for (const OneOf& choice : schema.parts().one_of) {
    if (choice.path == path) described.set("oneOf", exactly_one(split_words(choice.keys)));
  }
  if (path == "controller") {
    described.set("dependencies",
                  Json::object({{"plugin", Json::array({"entry"})}, {"entry", Json::array({"plugin"})}}));
  }
  return described;
}

void append_pretty(std::string& out, const Json& value, std::size_t depth) {
  const bool object = value.is_object();
  const std::size_t count = object ? value.members().size() : value.items().size();
  if ((!object && !value.is_array()) || count == 0) {
    out += to_json(value);
    return;
  }
  const std::string indent((depth + 1) * 2, ' ');
  out += object ? "{\n" : "[\n";
  for (std::size_t i = 0; i < count; ++i) {
    out += indent;
    if (object) out += to_json(Json(value.members()[i].first)) + ": ";
    append_pretty(out, object ? value.members()[i].second : value.items()[i], depth + 1);
    out += i + 1 < count ? ",\n" : "\n";
  }
  out += std::string(depth * 2, ' ') + (object ? "}" : "]");
}

}  // namespace

std::string json_schema(const Schema& schema) {
  const SchemaParts& parts = schema.parts();
  const std::string explain = text("monarch explain", parts.explained_at.empty() ? "" : " ", parts.explained_at);
  Json out = Json::object(
      {{"$schema", "http://json-schema.org/draft-07/schema#"},
       {"title", text(parts.called, " of monarch")},
       {"description", text("Keys as `", explain, "` shows them; `", parts.checked_by, "` checks more.")}});
  const Json top = map_schema(schema, "");
  for (const Json::Member& member : top.members()) out.set(member.first, member.second);
  Json definitions = Json::object();
  for (const SharedMap& map : parts.shared) {
    const std::string path(map.path);
    definitions.set(path, schema_of(schema, path));
  }
  if (!definitions.members().empty()) out.set("definitions", std::move(definitions));
  std::string text_of_it;
  append_pretty(text_of_it, out, 0);
  return text_of_it + "\n";
}

}  // namespace monarch
