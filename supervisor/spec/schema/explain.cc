#include "supervisor/spec/schema/explain.h"

#include <algorithm>

#include "supervisor/spec/schema/key_path.h"
#include "supervisor/spec/schema/suggest.h"
#include "supervisor/spec/yaml/scalar.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('.'), path.size());
    parts.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

// "[3]" and "[]" both mean any entry.
bool is_index(std::string_view part) {
  return part.size() >= 2 && part.front() == '[' && part.back() == ']' &&
         std::all_of(part.begin() + 1, part.end() - 1, [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view items_text(const Schema& schema, const KeyRow& list) {
  const KeyRow* item = schema.find_row(text(list.path, ".[]"));
  if (item == nullptr) return "a list";
  switch (item->type) {
    case ValueType::kMap: return "a list of maps";
    case ValueType::kInteger: return "a list of integers";
    case ValueType::kText:
    case ValueType::kName: return "a list of texts";
    case ValueType::kWord: return "a list of words";
    case ValueType::kNamedMap:
    case ValueType::kList:
    case ValueType::kNumber:
    case ValueType::kBool:
    case ValueType::kDuration:
    case ValueType::kSize:
    case ValueType::kPorts:
    case ValueType::kHosts:
    case ValueType::kAny: return "a list";
  }
  return "";
}

std::string_view type_text(const Schema& schema, const KeyRow& row) {
  switch (row.type) {
    case ValueType::kMap: return "a map of the keys below";
    case ValueType::kNamedMap:
      return row.names == NameRule::kVariable ? "a map of variables and values" : "a map of names of your own";
    case ValueType::kList: return items_text(schema, row);
    case ValueType::kInteger: return "an integer";
    case ValueType::kNumber: return "a number";
    case ValueType::kBool: return "true or false";
    case ValueType::kDuration: return "a duration such as 500ms, 1.5s or 1h30m";
    case ValueType::kSize: return "a size such as 64MiB";
    case ValueType::kText: return "a text";
    case ValueType::kName: return "a name: a-z, 0-9 and _, a letter first, at most 32 characters";
    case ValueType::kWord: return "";
    case ValueType::kPorts: return "a range of ports such as 20000-20999";
    case ValueType::kHosts: return "a list of hosts such as node[01-20]";
    case ValueType::kAny: return "any value";
  }
  return "";
}

std::string bound_text(const KeyRow& row, std::int64_t bound) {
  return row.type == ValueType::kDuration ? write_duration(Duration::milliseconds(bound)) : text(bound);
}

std::string range_text(const KeyRow& row) {
  const bool list = row.type == ValueType::kList || row.type == ValueType::kNamedMap;
  const bool measured =
      row.type == ValueType::kInteger || row.type == ValueType::kNumber || row.type == ValueType::kDuration || list;
  if (row.type == ValueType::kSize && row.least > 0) return text("at least ", row.least, "B");
  if (!measured) return "";
  const bool open = row.most == std::numeric_limits<std::int64_t>::max();
  const std::string_view unit = list ? " entries" : "";
  if (open && row.least <= 0) return "";
  if (open) return text("at least ", bound_text(row, row.least), list && row.least == 1 ? " entry" : unit);
  if (row.least <= 0) return text("at most ", bound_text(row, row.most), unit);
  return text("from ", bound_text(row, row.least), " to ", bound_text(row, row.most), unit);
}

// What an example calls an entry of this map.
std::string_view name_below(std::string_view map) {
  if (map == "meshes") return "trainer";
  return map == "stores" ? "weights" : "policy";
}

// Of "did you mean `heartbeat`?" the whole path, where that is a key of the same map.
std::optional<std::string> sibling_meant(const Schema& schema, std::string_view path, std::string_view row_path,
                                         std::string_view sentence) {
  const std::size_t begin = sentence.find('`') + 1;
  const std::size_t end = sentence.rfind('`');
  if (!sentence.starts_with("did you mean `") || !sentence.ends_with("`?")) return std::nullopt;
  const std::string_view key = sentence.substr(begin, end - begin);
  return schema.find_row(child_path(row_path, key)) == nullptr ? std::nullopt : std::optional(child_path(path, key));
}

// The key of as many parts that is nearest to all of them.
std::optional<std::string> nearest_path(const Schema& schema, std::string_view written) {
  const std::size_t parts = parts_of(written).size();
  if (parts < 2) return std::nullopt;
  std::vector<std::string> known;
  for (const KeyRow& row : schema.rows()) {
    if (parts_of(row.path).size() == parts) known.emplace_back(row.path);
  }
  return nearest(written, known);
}

std::string quoted(std::string_view words) {
  std::vector<std::string> out;
  for (const std::string& word : split_words(words)) out.push_back(text("`", word, "`"));
  return join(out, ", ");
}

}  // namespace

std::optional<NamedKey> find_key(const Schema& schema, std::string_view written) {
  NamedKey key{.path = std::string(written), .row_path = "", .row = nullptr};
  if (written.empty() || written.back() == '.' || written.find("..") != std::string_view::npos) return std::nullopt;
  key.path.clear();
  for (const std::string& part : parts_of(written)) {
    const std::string item = child_path(key.row_path, "[]");
    const KeyRow* row = is_index(part) ? schema.find_row(item) : schema.find_child(key.row_path, part);
    if (row == nullptr && !is_index(part) && (row = schema.find_child(item, part)) != nullptr) {
      key.row_path = item;
      key.path = child_path(key.path, "[]");
    }
    if (row == nullptr) return std::nullopt;
    key.path = child_path(key.path, part);
    const bool own = !is_index(part) && schema.find_row(child_path(key.row_path, part)) == row && part != "*";
    key.row_path = is_index(part) ? item : child_path(key.row_path, own ? std::string_view(part) : "*");
    key.row = row;
  }
  return key;
}

std::string suggest_keys(const Schema& schema, std::string_view written) {
  constexpr std::size_t kMostListed = 6;
  std::vector<std::string> longer;
  for (const KeyRow& row : schema.rows()) {
    if (row.path.ends_with(text(".", written))) longer.push_back(text("`", explained_path(schema, row.path), "`"));
  }
  if (!longer.empty() && longer.size() <= kMostListed) return text("did you mean ", join(longer, " or "), "?");
  std::string row_path;
  std::string before;  // the same as it was written
  for (const std::string& part : parts_of(written)) {
    const auto next = find_key(schema, child_path(row_path, part));
    if (!next) {
      if (schema.find_row(child_path(row_path, "[]")) != nullptr) {
        row_path = child_path(row_path, "[]");
        before = child_path(before, "[]");
      }
      // What follows tells which of two neighbours is meant: a lease is none of `supervisor`.
      const auto path = row_path.empty() ? nearest_path(schema, written) : std::nullopt;
      if (path) return text("did you mean `", explained_path(schema, *path), "`?");
      const std::string meant = suggest_key(schema, row_path, part);
      const auto whole = sibling_meant(schema, before, row_path, meant);
      if (meant.empty()) break;
      if (whole) return text("did you mean `", explained_path(schema, *whole), "`?");
      return row_path.empty() ? meant : text("below `", explained_path(schema, before), "`: ", meant);
    }
    row_path = next->row_path;
    before = child_path(before, part);
  }
  const std::string_view top = schema.parts().explained_at;
  return text("`monarch explain", top.empty() ? "" : " ", top, "` lists the keys of the top level");
}

std::string takes_text(const Schema& schema, const KeyRow& row) {
  std::vector<std::string> choices;
  if (const std::string_view type = type_text(schema, row); !type.empty()) choices.emplace_back(type);
  for (const std::string& word : split_words(row.words)) choices.push_back(word);
  if (row.or_map) choices.emplace_back("a map of the keys below");
  std::string out = choices.size() > 1 && row.type == ValueType::kWord ? "one of " : "";
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) out += i + 1 == choices.size() ? " or " : ", ";
    out += choices[i];
  }
  const std::string range = range_text(row);
  return range.empty() ? out : text(out, "; ", range);
}

std::string built_text(const Schema& schema, std::string_view row_path) {
  // What is refused takes all keys below it along.
  for (std::string_view above = parent_path(row_path); !above.empty(); above = parent_path(above)) {
    const KeyRow* row = schema.find_row(above);
    if (row != nullptr && row->unbuilt == "*") return "no";
  }
  const KeyRow* row = schema.find_row(row_path);
  if (row == nullptr || row->unbuilt.empty()) return "yes";
  if (row->unbuilt != "*") return text("yes, but for ", quoted(row->unbuilt));
  if (row->default_value.empty()) return "no";
  return row->built.empty() ? "the default only" : text("the default and ", quoted(row->built), " only");
}

std::string_view doc_of(const Schema& schema, std::string_view row_path) {
  const KeyRow* row = schema.find_row(row_path);
  if (row == nullptr) return "";
  const std::string_view parent = parent_path(row_path);
  return row->doc.empty() && !parent.empty() ? doc_of(schema, parent) : row->doc;
}

std::string example_text(const Schema& schema, std::string_view row_path) {
  const KeyHelp* help = schema.find_help(row_path);
  if (help == nullptr) return row_path.empty() ? "" : example_text(schema, parent_path(row_path));
  std::string out;
  std::string indent;
  const std::vector<std::string> parts = parts_of(row_path);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == "[]") continue;
    const std::string name = parts[i] == "*" ? std::string(name_below(parts[i - 1])) : parts[i];
    const bool item = i > 0 && parts[i - 1] == "[]";
    out += text(indent, item ? "- " : "", name, ":");
    out += i + 1 == parts.size() ? text(" ", help->example, "\n") : "\n";
    indent += item ? "    " : "  ";
  }
  return out;
}

std::vector<std::string> paths_below(const Schema& schema, std::string_view row_path) {
  std::vector<std::string> paths;
  for (const std::string_view key : schema.keys_below(row_path)) paths.push_back(child_path(row_path, key));
  for (const std::string_view any : {"*", "[]"}) {
    const std::string path = child_path(row_path, any);
    if (schema.find_row(path) != nullptr) paths.push_back(path);
  }
  return paths;
}

}  // namespace monarch
