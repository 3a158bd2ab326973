#pragma once

// What must hold of the bytes of a file before a YAML parser sees them: size, UTF-8, no control characters, no
// directives, no tabs in the indentation. Each of these a parser would take in silence, or refuse in words that help
// nobody.
//
// Thread: pure functions.

#include <cstdint>
#include <string_view>

#include "supervisor/spec/yaml/diagnostics.h"

namespace monarch {

// False: reported, and parsing makes no sense. At most one fault is reported. `number` is what places call the text.
bool check_source(std::string_view source, Report& report, std::uint32_t number);

bool is_utf8(std::string_view bytes);

// A byte order mark at the front is no part of the text.
std::string_view without_byte_order_mark(std::string_view source);

}  // namespace monarch
