#include "supervisor/workspace/ignore_rules.h"

#include <algorithm>
#include <utility>

namespace monarch {

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Blanks at the end count only behind a backslash.
std::string_view without_blanks(std::string_view line) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == ' ') continue;
    if (line[i] == '\\') ++i;
    kept = std::min(i + 1, line.size());
  }
  return line.substr(0, kept);
}

}  // namespace

IgnoreRules::Pattern IgnoreRules::parse(std::string_view line) {
  Pattern pattern;
  if (line.starts_with('!')) {
    pattern.takes_in = true;
    line.remove_prefix(1);
  }
  if (line.ends_with('/')) {
    pattern.of_folders = true;
    line.remove_suffix(1);
  }
  pattern.of_names = line.find('/') == std::string_view::npos;
  if (line.starts_with('/')) line.remove_prefix(1);
  // As git does it: what stands for itself is compared first, and a ** right behind it counts as if it stood at the
  // begin.
  pattern.plain = line.substr(0, line.find_first_of("*?[\\"));
  line.remove_prefix(pattern.plain.size());
  if (!line.empty()) pattern.rest.emplace(line, pattern.of_names ? WildScope::kName : WildScope::kPath);
  return pattern;
}

void IgnoreRules::add_file(IgnoreSource source, const std::string& folder, std::string_view content) {
  if (content.starts_with(kByteOrderMark)) content.remove_prefix(kByteOrderMark.size());
  std::vector<Pattern>& patterns = patterns_[static_cast<std::size_t>(source)][folder];
  while (!content.empty()) {
    std::string_view line = content.substr(0, content.find('\n'));
    content.remove_prefix(std::min(line.size() + 1, content.size()));
    if (line.starts_with('#')) continue;
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = without_blanks(line);
    if (!line.empty()) patterns.push_back(parse(line));
  }
}

void IgnoreRules::add_pattern(IgnoreSource source, std::string_view pattern) {
  patterns_[static_cast<std::size_t>(source)][""].push_back(parse(pattern));
}

bool IgnoreRules::fits(const Pattern& pattern, std::string_view below, std::string_view name, bool is_folder) {
  if (pattern.of_folders && !is_folder) return false;
  std::string_view subject = pattern.of_names ? name : below;
  if (!subject.starts_with(pattern.plain)) return false;
  subject.remove_prefix(pattern.plain.size());
  return pattern.rest ? pattern.rest->matches(subject) : subject.empty();
}

bool IgnoreRules::leaves_out(std::string_view path, bool is_folder) const {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (name == ".git") return true;
  for (const IgnoreSource source : {IgnoreSource::kSpec, IgnoreSource::kMonarch, IgnoreSource::kGit}) {
    const Patterns& patterns = patterns_[static_cast<std::size_t>(source)];
    if (patterns.empty()) continue;
    for (std::string_view folder = path; !folder.empty();) {
      const std::size_t slash = folder.rfind('/');
      folder = folder.substr(0, slash == std::string_view::npos ? 0 : slash);
      const auto file = patterns.find(folder);
      if (file == patterns.end()) continue;
      const std::string_view below = path.substr(folder.empty() ? 0 : folder.size() + 1);
      const auto last = std::find_if(file->second.rbegin(), file->second.rend(),
                                     [&](const Pattern& pattern) { return fits(pattern, below, name, is_folder); });
      if (last != file->second.rend()) return !last->takes_in;
    }
  }
  return false;
}

}  // namespace monarch
