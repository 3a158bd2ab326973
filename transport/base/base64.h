#pragma once

// Base64 as RFC 4648 has it, with padding.
//
// Thread: pure functions.

#include <optional>
#include <string>
#include <string_view>

namespace monarch {

std::string to_base64(std::string_view bytes);

// Blanks and line ends between its letters are passed over. Nothing: it is no base64.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace monarch
