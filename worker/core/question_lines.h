#pragma once

// The lines of KEY=VALUE in which a rank asks, and the strings of JSON in which it is answered.
//
// Thread: pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transport/base/result.h"

namespace monarch {

// The value of the first line with this key; nothing: there is no such line.
std::optional<std::string_view> line_value(std::string_view message, std::string_view key);

// What makes a message no question.
Error wrong_question(std::string why);

// Decimal, and nothing beside it.
std::optional<std::uint64_t> whole_number(std::string_view word);

// A string of JSON. What is no printable ASCII becomes `?`.
std::string quoted_ascii(std::string_view words);

}  // namespace monarch
