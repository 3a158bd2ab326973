#include "cli/import/init_template.h"

#include <algorithm>
#include <string_view>

#include "supervisor/spec/schema/explain.h"
#include "supervisor/spec/schema/key_path.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kLive = R"(version: 1
job: hello
launch:
  local: {hosts: 2}
meshes:
  greeters:
    dims: {host: 2, gpu: 2}
    program: [/bin/sh, -c, 'echo "hello from rank $RANK of $WORLD_SIZE on host $NODE_RANK"']
)";

constexpr std::size_t kCommentColumn = 42;

std::string with_comment(std::string line, std::string_view comment) {
  if (comment.empty()) return line + "\n";
  if (line.size() < kCommentColumn) line.append(kCommentColumn - line.size(), ' ');
  return text(line, " # ", comment, "\n");
}

// Whether nothing below `path` would be refused: an empty map of it could be written, but no key.
bool has_nothing_built(const std::string& path) {
  const std::vector<std::string> keys = paths_below(spec_schema(), path);
  return !keys.empty() && std::all_of(keys.begin(), keys.end(),
                                      [](const std::string& key) { return built_text(spec_schema(), key) == "no"; });
}

// `key: value` in a comment, and what is below a map.
std::string commented_key(const std::string& path, const std::string& indent, const std::string& inner) {
  const KeyRow& row = *spec_schema().find_row(path);
  if (path.ends_with("*") || path.ends_with("[]") || built_text(spec_schema(), path) == "no") return "";
  if (path == "supervision.shrink") return "";  // the mesh above is one gang, and none of one could be parked
  if (path == "meshes.*.actors" || path == "controller") return "";  // they run something else than the program above
  const std::string_view key = last_key(path);
  const bool map = row.type == ValueType::kMap || (row.type == ValueType::kNamedMap && row.default_value.empty());
  if (map && has_nothing_built(path)) return "";
  if (!map) {
    const KeyHelp* help = spec_schema().find_help(path);
    const std::string_view value = row.default_value.empty() ? help->example : row.default_value;
    return with_comment(text(indent, "# ", inner, key, ": ", value), row.doc);
  }
  std::string out = with_comment(text(indent, "# ", inner, key, ":"), row.doc);
  for (const std::string& child : paths_below(spec_schema(), path)) out += commented_key(child, indent, inner + "  ");
  return out;
}

}  // namespace

std::string init_template() {
  std::string out =
      "# `monarch run FILE` runs this. Every line in a comment shows a key with its default, or an example where it "
      "has none:\n"
      "# take away the `# ` to write it. `monarch explain KEY` tells more about a key.\n";
  out += kLive;
  for (const std::string& path : paths_below(spec_schema(), "meshes.*")) {
    const std::string_view key = last_key(path);
    if (key != "dims" && key != "program" && key != "supervision") out += commented_key(path, "    ", "");
  }
  out += "\n";
  for (const std::string& path : paths_below(spec_schema(), "")) {
    if (path != "version" && path != "job" && path != "launch" && path != "meshes") out += commented_key(path, "", "");
  }
  return out;
}

}  // namespace monarch
