#pragma once

// IgnoreRules: what is left out of a workspace. .gitignore files are read as git reads them (gitignore(5)): of a folder
// and of those above it, up to the tree's; the nearest file counts first, and its last pattern that fits.
// .monarchignore files say the same afterwards, and may take in again what git leaves out; the spec's `exclude` counts
// before both. What lies in a folder that is left out is not asked for. A name .git is always left out.
//
// Thread: values.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/workspace/wildmatch.h"

namespace monarch {

enum class IgnoreSource : std::uint8_t { kGit, kMonarch, kSpec };

class IgnoreRules {
 public:
  static constexpr std::size_t kFileBytes = 1U << 20U;  // a larger file of patterns is none

  // The file of a folder of the tree; "" is the tree itself.
  void add_file(IgnoreSource source, const std::string& folder, std::string_view content);
  // One pattern, counted from the tree.
  void add_pattern(IgnoreSource source, std::string_view pattern);

  // A path within the tree, whose folders are not left out.
  bool leaves_out(std::string_view path, bool is_folder) const;

 private:
  struct Pattern {
    bool takes_in = false;                 // began with !
    bool of_folders = false;               // ended with a slash
    bool of_names = false;                 // no slash within: of a name at any depth
    std::string plain;                     // its begin, which stands for itself
    std::optional<WildPattern> rest = {};  // nothing: there is no more of it
  };
  using Patterns = std::map<std::string, std::vector<Pattern>, std::less<>>;  // by folder

  static Pattern parse(std::string_view line);
  static bool fits(const Pattern& pattern, std::string_view below, std::string_view name, bool is_folder);

  Patterns patterns_[3];  // by IgnoreSource
};

}  // namespace monarch
