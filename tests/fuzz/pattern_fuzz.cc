// The patterns of --grep and formats of --prefix: whatever they are, they are refused with a printable reason or match
// any line in time that is linear in it. The input is a pattern, a newline, and the line.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cli/follow/line_pattern.h"
#include "cli/follow/prefix_format.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace monarch;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view pattern = input.substr(0, input.find('\n'));
  const std::string_view line = pattern.size() < input.size() ? input.substr(pattern.size() + 1) : std::string_view();
  const auto parsed = LinePattern::parse(pattern);
  if (parsed.ok()) {
    const bool matched = parsed->matches(line);
    MONARCH_ASSERT(parsed->matches(line) == matched);  // from the states that RE2 kept
  } else {
    MONARCH_ASSERT(printable(parsed.error().message) == parsed.error().message);
  }
  const auto format = PrefixFormat::parse(pattern);
  if (!format.ok()) {
    MONARCH_ASSERT(printable(format.error().message) == format.error().message);
    return 0;
  }
  const std::string prefix = format->expand(LineSources({.job = "j", .mesh = "m", .host = "v1"}), {});
  MONARCH_ASSERT(printable(prefix) == prefix);
  return 0;
}
