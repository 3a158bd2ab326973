#pragma once

// A spec that is to stand in another folder: what is relative to its own is written out, so that it means the same
// there.
//
// Thread: pure functions.

#include <string>
#include <string_view>

namespace monarch {

struct Move {
  std::string from;  // both absolute
  std::string to;
};

// `text` is a spec that loads. Its own bytes if it stays where it is.
std::string moved_spec(std::string_view text, const Move& move);

}  // namespace monarch
