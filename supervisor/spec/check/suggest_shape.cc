#include "supervisor/spec/check/suggest_shape.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "supervisor/core/spec/variables.h"
#include "supervisor/spec/check/check_value.h"
#include "supervisor/spec/schema/key_path.h"
#include "supervisor/spec/schema/names.h"
#include "supervisor/spec/schema/suggest.h"
#include "supervisor/spec/yaml/scalar.h"
#include "supervisor/spec/yaml/yaml_text.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kLongestRepeated = 160;

bool is_scalar(const YamlNode& node) { return node.is(YamlNode::Kind::kScalar); }

bool takes(const KeyRow& row, const YamlNode& node) {
  Report nobody("", "");
  check_scalar(node, row, std::string(row.path), nobody);
  return !nobody.failed();
}

// "16", "2x8" and [2, 8] as sizes.
std::vector<std::int64_t> sizes_of(const YamlNode& node) {
  std::vector<std::int64_t> sizes;
  const auto add = [&](const std::string& written) {
    const YamlNode part{.kind = YamlNode::Kind::kScalar, .text = written};
    sizes.push_back(parse_integer(part).value.value_or(0));
  };
  if (is_scalar(node)) {
    std::string_view rest = node.text;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find_first_of("xX*, "), rest.size());
      add(std::string(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  for (const YamlNode& item : node.items) add(item.text);
  const bool wrong = std::any_of(sizes.begin(), sizes.end(), [](std::int64_t size) { return size <= 0; });
  return wrong ? std::vector<std::int64_t>() : sizes;
}

std::string dims_meant(const YamlNode& node) {
  const std::vector<std::int64_t> sizes = sizes_of(node);
  if (sizes.size() == 1) return text("{slot: ", sizes[0], "}");
  if (sizes.size() == 2) return text("{host: ", sizes[0], ", slot: ", sizes[1], "}");
  if (sizes.size() == 3) return text("{replica: ", sizes[0], ", host: ", sizes[1], ", slot: ", sizes[2], "}");
  return "";
}

// [A=b, C=d] as a map.
std::string variables_meant(const YamlNode& node) {
  std::vector<std::string> parts;
  for (const YamlNode& item : node.items) {
    const std::size_t sign = item.text.find('=');
    if (!is_scalar(item) || sign == std::string::npos || !is_variable(item.text.substr(0, sign))) return "";
    parts.push_back(text(item.text.substr(0, sign), ": ", yaml_scalar(item.text.substr(sign + 1))));
  }
  return parts.empty() ? "" : text("{", join(parts, ", "), "}");
}

// `30s` for `stop`: the one key there that would take it.
std::string map_around(const Schema& schema, const YamlNode& node, std::string_view row_path) {
  if (!is_scalar(node)) return "";
  for (const std::string_view key : schema.keys_below(row_path)) {
    const KeyRow* row = schema.find_child(row_path, key);
    const bool single = row->type != ValueType::kMap && row->type != ValueType::kNamedMap &&
                        row->type != ValueType::kList && row->type != ValueType::kAny && row->type != ValueType::kHosts;
    if (single && takes(*row, node)) return text("{", key, ": ", yaml_scalar(node.text), "}");
  }
  return "";
}

std::string list_around(const Schema& schema, const YamlNode& node, const KeyRow& row) {
  if (row.path == "meshes.*.program") return as_program_list(node.text);
  const KeyRow* item = schema.find_row(text(row.path, ".[]"));
  const bool number = parse_integer(node).value.has_value();  // of hosts or ranks, where names are meant
  if (item == nullptr || (item->type == ValueType::kText && number) || !takes(*item, node)) return "";
  return yaml_list({node.text});
}

}  // namespace

std::string suggest_shape(const Schema& schema, const YamlNode& node, const KeyRow& row, std::string_view row_path) {
  std::string meant;
  if (row.path == "meshes.*.dims") meant = dims_meant(node);
  if (row.type == ValueType::kNamedMap && row.names == NameRule::kVariable) meant = variables_meant(node);
  if (row.type == ValueType::kMap) meant = map_around(schema, node, row_path);
  if (row.type == ValueType::kList && is_scalar(node)) meant = list_around(schema, node, row);
  if (!meant.empty() && meant.size() <= kLongestRepeated) return text("did you mean `", meant, "`?");
  const KeyHelp* help = schema.find_help(row_path);
  if (help == nullptr) return "";
  return text("for example `", last_key(row.path), ": ", help->example, "`");
}

}  // namespace monarch
