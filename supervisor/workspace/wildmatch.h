#pragma once

// WildPattern: a pattern of .gitignore files against names or paths, as git reads it (gitignore(5)). It is matched by
// all its places at once, never by trying again: in time of the product of both lengths at most, whoever wrote the
// pattern.
//
// Thread: values.

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace monarch {

enum class WildScope : std::uint8_t {
  kName,  // no slash in it: every * matches anything
  kPath,  // * and ? stop at a slash, ** does not where it stands between slashes
};

class WildPattern {
 public:
  // One that git cannot read, with a bracket that nothing closes, matches nothing.
  WildPattern(std::string_view pattern, WildScope scope);
  bool matches(std::string_view subject) const;

 private:
  enum class Kind : std::uint8_t {
    kByte,
    kSet,
    kStar,
    kFolders,  // "**/": may be left out with the star and the slash behind it
  };
  struct Token {
    Kind kind = Kind::kByte;
    char byte = 0;
    bool crosses = false;   // a star, of slashes
    std::uint32_t set = 0;  // among sets_
  };
  using Bytes = std::bitset<256>;
  using Places = std::vector<bool>;  // by token, and one behind the last
  bool takes(const Token& token, char c) const;
  void pass_stars(Places& places) const;

  std::vector<Token> tokens_;
  std::vector<Bytes> sets_;
  bool possible_ = false;
};

}  // namespace monarch
