#pragma once

// text(a, b, 7, 'c'): its arguments written one after the other, as a std::string. For messages; it knows no formats.

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

namespace monarch {

namespace text_detail {

inline void append(std::string& out, std::string_view part) { out.append(part); }
inline void append(std::string& out, const std::string& part) { out.append(part); }
inline void append(std::string& out, const char* part) { out.append(part); }
inline void append(std::string& out, char part) { out.push_back(part); }
inline void append(std::string& out, bool part) { out.append(part ? "true" : "false"); }

template <class Number>
requires(std::integral<Number> || std::floating_point<Number>) void append(std::string& out, Number part) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, part);
  out.append(buffer, end.ptr);
}

}  // namespace text_detail

template <class... Parts>
[[nodiscard]] std::string text(const Parts&... parts) {
  std::string out;
  (text_detail::append(out, parts), ...);
  return out;
}

// "a, b, c"
[[nodiscard]] std::string join(const std::vector<std::string>& parts, std::string_view separator);

// "1 host", "2 hosts"; `many` where an s does not make it more than one.
[[nodiscard]] std::string counted(std::uint64_t number, std::string_view one);
[[nodiscard]] std::string counted(std::uint64_t number, std::string_view one, std::string_view many);

// Bytes that could steer a terminal or forge a line are written as \xNN; tab stays, and UTF-8 above U+009F stays.
[[nodiscard]] std::string printable(std::string_view raw);
// Printable text as it may stand in an element of XML or HTML, or between double quotes there; newlines stay.
[[nodiscard]] std::string xml_text(std::string_view raw);
// Nothing but the characters from ' ' to '~'.
[[nodiscard]] bool is_printable_ascii(std::string_view raw);
// Nothing but digits, one at least.
[[nodiscard]] bool all_digits(std::string_view raw);

[[nodiscard]] std::string to_hex(std::string_view bytes);

// "12.5MiB", for people.
[[nodiscard]] std::string amount_text(std::uint64_t bytes);

// In a form that a shell leaves alone.
[[nodiscard]] std::string shell_word(const std::string& word);

}  // namespace monarch
