#include "supervisor/spec/schema/schema.h"

#include <algorithm>
#include <functional>
#include <map>

#include "supervisor/spec/schema/key_path.h"
#include "supervisor/spec/schema/launcher_spec.h"
#include "supervisor/spec/schema/schema_rows.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

struct Schema {
  std::vector<KeyRow> rows;
  std::map<std::string_view, const KeyRow*> by_path;
};

// In the order of the documentation: constant data, made at the first use.
const Schema& schema() {
  static const Schema made = [] {
    Schema all;
    const std::span<const KeyRow> top = schema_rows::job();
    const auto append = [&](std::span<const KeyRow> rows) {
      all.rows.insert(all.rows.end(), rows.begin(), rows.end());
    };
    append(top.first(2));  // version, job
    static const std::string kLaunchDoc = text("exactly one of ", launcher_list(), "; local if it is left out");
    all.rows.push_back({.path = "launch", .type = ValueType::kMap, .doc = kLaunchDoc});
    for (const LauncherSpec* launcher : launcher_specs()) append(launcher->rows);
    append(schema_rows::network());
    append(schema_rows::meshes());
    append(schema_rows::supervision());
    append(top.subspan(2));
    for (const KeyRow& row : all.rows) all.by_path.emplace(row.path, &row);
    return all;
  }();
  return made;
}

// Whose `supervision` has the keys of the top level's.
constexpr std::string_view kSupervised[] = {"meshes.*.", "controller."};

std::string_view canonical_path(std::string_view path) {
  for (const std::string_view owner : kSupervised) {
    if (path.starts_with(owner) && path.substr(owner.size()).starts_with("supervision.")) {
      return path.substr(owner.size());
    }
  }
  return path;
}

bool is_supervision_of_one(std::string_view path) {
  return std::any_of(std::begin(kSupervised), std::end(kSupervised), [path](std::string_view owner) {
    return path.starts_with(owner) && path.substr(owner.size()) == "supervision";
  });
}

}  // namespace

std::span<const KeyRow> all_rows() { return schema().rows; }

const KeyRow* find_row(std::string_view path) {
  const auto found = schema().by_path.find(canonical_path(path));
  return found == schema().by_path.end() ? nullptr : found->second;
}

const KeyRow* find_child(std::string_view path, std::string_view key) {
  const bool plain = key != "*" && key != "[]" && key.find('.') == std::string_view::npos;
  const KeyRow* own = plain ? find_row(child_path(path, key)) : nullptr;
  return own != nullptr ? own : find_row(child_path(path, "*"));
}

std::vector<std::string_view> keys_below(std::string_view path) {
  std::vector<std::string_view> keys;
  const std::string prefix(is_supervision_of_one(path) ? "supervision" : canonical_path(path));
  const std::size_t skip = prefix.empty() ? 0 : prefix.size() + 1;
  for (const KeyRow& row : all_rows()) {
    if (!prefix.empty() && (!row.path.starts_with(prefix) || row.path.size() <= skip || row.path[skip - 1] != '.'))
      continue;
    const std::string_view key = row.path.substr(skip);
    if (key.find('.') == std::string_view::npos && key != "*" && key != "[]") keys.push_back(key);
  }
  return keys;
}

bool is_taken(std::string_view path, UnbuiltKeys unbuilt) {
  constexpr std::string_view kRead = "network.interface|network.ports";
  const KeyRow* row = find_row(path);
  return row != nullptr && (row->unbuilt.empty() || (unbuilt == UnbuiltKeys::kTake && word_in(kRead, path)));
}

std::vector<std::string> split_words(std::string_view words) {
  std::vector<std::string> out;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find('|'), words.size());
    out.emplace_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return out;
}

bool word_in(std::string_view words, std::string_view word) {
  const std::vector<std::string> all = split_words(words);
  return std::find(all.begin(), all.end(), word) != all.end();
}

}  // namespace monarch
