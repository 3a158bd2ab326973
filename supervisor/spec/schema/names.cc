#include "supervisor/spec/schema/names.h"

#include <algorithm>
#include <cctype>

namespace monarch {

namespace {

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool is_name(std::string_view name) {
  if (name.empty() || name.size() > kLongestName || !is_lower(name[0])) return false;
  return std::all_of(name.begin(), name.end(), [](char c) { return is_lower(c) || is_digit(c) || c == '_'; });
}

bool is_reserved_name(std::string_view name) { return name == "last" || name == "all" || name == "each"; }

std::string nearest_name(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, std::min<std::size_t>(name.size(), kLongestName))) {
    if (is_upper(c)) {
      out.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    } else if (is_lower(c) || is_digit(c) || c == '_') {
      out.push_back(c);
    } else if (!out.empty() && out.back() != '_') {
      out.push_back('_');
    }
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  if (!out.empty() && !is_lower(out[0])) out = ("n" + out).substr(0, kLongestName);
  return is_name(out) ? out : "";
}

}  // namespace monarch
