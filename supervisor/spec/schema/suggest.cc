#include "supervisor/spec/schema/suggest.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

#include "supervisor/spec/schema/key_path.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// As people write keys elsewhere: maxRestarts, max-restarts, MAX_RESTARTS.
std::string snake(std::string_view key) {
  std::string out;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const auto c = static_cast<unsigned char>(key[i]);
    if (std::isupper(c) != 0 && i > 0 && std::islower(static_cast<unsigned char>(key[i - 1])) != 0) out.push_back('_');
    out.push_back(c == '-' ? '_' : static_cast<char>(std::tolower(c)));
  }
  return out;
}

// "meshes.*.env" seen from "meshes.*" is `env`; seen from the top it is `env` of a mesh.
std::string seen_from(const Schema& schema, std::string_view path, std::string_view target) {
  const std::string prefix = path.empty() ? "" : text(path, ".");
  if (target.starts_with(prefix)) {
    const std::string_view relative = target.substr(prefix.size());
    if (relative.find('*') == std::string_view::npos && relative.find("[]") == std::string_view::npos)
      return text("`", relative, "`");
  }
  for (const NamedEntries& entries : schema.parts().entries) {
    const std::string below = text(entries.path, ".");
    if (target.starts_with(below)) return text("`", target.substr(below.size()), "` of ", entries.one);
  }
  if (!path.empty() && target.find('.') == std::string_view::npos) return text("`", target, "` at the top level");
  return text("`", target, "`");
}

// A sentence; nothing: nobody calls a key so.
std::optional<std::string> synonym(const Schema& schema, std::string_view path, std::string_view key) {
  std::optional<std::string> elsewhere;
  for (const Synonym& candidate : schema.parts().synonyms) {
    if (candidate.theirs != key) continue;
    if (!candidate.says.empty()) return std::string(candidate.says);
    if (parent_path(candidate.ours) == path) return text("did you mean `", last_key(candidate.ours), "`?");
    if (!elsewhere) elsewhere = text("did you mean ", seen_from(schema, path, candidate.ours), "?");
  }
  return elsewhere;
}

// A key that exists, but in another map.
std::optional<std::string> misplaced(const Schema& schema, std::string_view path, std::string_view key) {
  for (const KeyRow& row : schema.rows()) {
    if (last_key(row.path) == key) return seen_from(schema, path, row.path);
  }
  return std::nullopt;
}

}  // namespace

std::string suggest_key(const Schema& schema, std::string_view path, std::string_view key) {
  std::vector<std::string> known;
  for (const std::string_view sibling : schema.keys_below(path)) known.emplace_back(sibling);
  if (known.empty() || key.size() > kLongestCompared) return "";
  const std::string name = snake(key);
  if (std::find(known.begin(), known.end(), name) != known.end()) return text("did you mean `", name, "`?");
  if (const auto meant = synonym(schema, path, name)) return *meant;
  if (const auto meant = nearest(name, known)) return text("did you mean `", *meant, "`?");
  if (const auto meant = misplaced(schema, path, name)) return text("did you mean ", *meant, "?");
  constexpr std::size_t kMostListed = 12;
  if (known.size() <= kMostListed) return text("the keys here are: ", join(known, ", "));
  const std::string at = explained_path(schema, path);
  return text("`monarch explain", at.empty() ? "" : " ", at, "` lists the keys here");
}

std::string explained_path(const Schema& schema, std::string_view path) {
  return path.empty() ? std::string(schema.parts().explained_at) : child_path(schema.parts().explained_at, path);
}

std::string as_program_list(std::string_view command_line) {
  constexpr std::size_t kLongestRepeated = 120;
  if (command_line.size() > kLongestRepeated) return "";
  const bool shell = command_line.find_first_of("|&;<>()$`\\\"'*?#~={}[]!\n:,%@") != std::string_view::npos;
  std::vector<std::string> words;
  std::string_view rest = command_line;
  while (true) {
    const std::size_t begin = rest.find_first_not_of(" \t\n");
    if (begin == std::string_view::npos) break;
    rest.remove_prefix(begin);
    const std::size_t length = std::min(rest.find_first_of(" \t\n"), rest.size());
    words.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  if (words.empty()) return "";
  if (!shell) return text("[", join(words, ", "), "]");
  std::string quoted;
  for (const char c : command_line) {
    if (c == '\'') quoted.push_back(c);  // YAML doubles it within single quotes
    quoted.push_back(c);
  }
  return text("[/bin/sh, -c, '", quoted, "']");
}

}  // namespace monarch
