#include "transport/base/host_pressure.h"

#include <charconv>

namespace monarch {

std::optional<std::uint8_t> some_pressure(std::string_view file) {
  constexpr std::string_view kBegins = "some avg10=";
  if (!file.starts_with(kBegins)) return std::nullopt;
  file.remove_prefix(kBegins.size());
  std::uint8_t percent = 0;
  const auto [rest, error] = std::from_chars(file.data(), file.data() + file.size(), percent);
  if (error != std::errc() || percent > 100 || rest == file.data() + file.size() || *rest != '.') return std::nullopt;
  return percent;
}

}  // namespace monarch
