#include "supervisor/spec/schema/key_path.h"

#include "transport/base/text.h"

namespace monarch {

std::string child_path(std::string_view path, std::string_view key) {
  return path.empty() ? std::string(key) : text(path, ".", key);
}

std::string_view parent_path(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

std::string_view last_key(std::string_view path) { return path.substr(path.rfind('.') + 1); }

}  // namespace monarch
