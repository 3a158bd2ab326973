#pragma once

// How the messages of a check (transport/messages/check.h) follow each other in a stream: a line with the number of
// bytes, then the bytes. Who reads them bounds both.
//
// Thread: values.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "transport/base/result.h"

namespace monarch {

inline constexpr std::size_t kCheckBytes = 1U << 20U;  // of one message; more is an error

// With its length before it.
std::string encode_piece(std::string_view payload);

// Takes the first whole piece out of what has come; nothing yet, or kInvalid where no piece can begin so.
Result<std::optional<std::string>> take_piece(std::string& bytes);

}  // namespace monarch
