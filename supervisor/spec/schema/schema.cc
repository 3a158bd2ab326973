#include "supervisor/spec/schema/schema.h"

#include <algorithm>
#include <utility>

#include "supervisor/spec/schema/key_path.h"
#include "transport/base/text.h"

namespace monarch {

Schema::Schema(SchemaParts parts) : parts_(std::move(parts)) {
  for (const KeyRow& row : parts_.rows) by_path_.emplace(row.path, &row);
}

// Of what an owner has of a shared map, where its rows are.
std::string_view Schema::canonical(std::string_view path) const {
  for (const SharedMap& map : parts_.shared) {
    for (const std::string_view owner : map.owners) {
      if (!path.starts_with(owner) || path.size() <= owner.size() || path[owner.size()] != '.') continue;
      const std::string_view below = path.substr(owner.size() + 1);
      if (below.starts_with(map.path) && below.size() > map.path.size() && below[map.path.size()] == '.') return below;
    }
  }
  return path;
}

const KeyRow* Schema::find_row(std::string_view path) const {
  const auto found = by_path_.find(canonical(path));
  return found == by_path_.end() ? nullptr : found->second;
}

const KeyRow* Schema::find_child(std::string_view path, std::string_view key) const {
  const bool plain = key != "*" && key != "[]" && key.find('.') == std::string_view::npos;
  const KeyRow* own = plain ? find_row(child_path(path, key)) : nullptr;
  return own != nullptr ? own : find_row(child_path(path, "*"));
}

std::vector<std::string_view> Schema::keys_below(std::string_view path) const {
  // A shared map of an owner has no rows below its own.
  const std::string any_key = text(path, ".x");
  const std::string_view shared = canonical(any_key);
  const std::string_view prefix = path.empty() ? path : shared.substr(0, shared.size() - 2);
  const std::size_t skip = prefix.empty() ? 0 : prefix.size() + 1;
  std::vector<std::string_view> keys;
  for (const KeyRow& row : parts_.rows) {
    if (!prefix.empty() && (!row.path.starts_with(prefix) || row.path.size() <= skip || row.path[skip - 1] != '.'))
      continue;
    const std::string_view key = row.path.substr(skip);
    if (key.find('.') == std::string_view::npos && key != "*" && key != "[]") keys.push_back(key);
  }
  return keys;
}

const KeyHelp* Schema::find_help(std::string_view path) const {
  const KeyRow* row = find_row(path);
  if (row == nullptr) return nullptr;
  const auto found =
      std::find_if(parts_.help.begin(), parts_.help.end(), [&](const KeyHelp& h) { return h.path == row->path; });
  return found == parts_.help.end() ? nullptr : &*found;
}

bool is_taken(const KeyRow& row, UnbuiltKeys unbuilt) {
  constexpr std::string_view kRead = "network.interface|network.ports";
  return row.unbuilt.empty() || (unbuilt == UnbuiltKeys::kTake && word_in(kRead, row.path));
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

std::string word_meant(const KeyRow& row, std::string_view word) {
  for (const std::string& pair : split_words(row.meant)) {
    const std::size_t sign = pair.find('=');
    if (pair.substr(0, sign) == word) return pair.substr(sign + 1);
  }
  return "";
}

bool word_in(std::string_view words, std::string_view word) {
  const std::vector<std::string> all = split_words(words);
  return std::find(all.begin(), all.end(), word) != all.end();
}

}  // namespace monarch
