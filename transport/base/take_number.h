#pragma once

// take_number(): a number in decimal at the front of a text, which goes on behind it. Blanks before it are the
// caller's.
//
// Thread: a pure function.

#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>

namespace monarch {

// False: `rest` begins with no number, or with one that does not fit; both stay as they are.
template <class Number>
bool take_number(std::string_view& rest, Number& number) {
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc()) return false;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return true;
}

}  // namespace monarch
