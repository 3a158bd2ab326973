#pragma once

// The list of every message that travels, for tests that hold for all of them: each is made, written and read here,
// once, for these are the dearest templates that we have.
//
// Thread: pure functions.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "transport/base/result.h"

namespace monarch {

struct MessageKind {
  const char* name;
  std::uint16_t number;  // 0: it is part of others, or travels alone
  // The payload of one with random values: the same for the same seed.
  std::string (*arbitrary)(std::uint64_t seed);
  // The payload of one whose list `which`, counted from 0 through all that is nested, has so many entries, and each
  // other list one. Nothing: it has fewer lists.
  std::optional<std::string> (*with_many)(std::size_t which, std::size_t entries);
  // What a payload holds, written anew. Errors are decode_payload's.
  Result<std::string> (*again)(std::string_view payload, std::size_t limit);
};

std::span<const MessageKind> every_message();

}  // namespace monarch
