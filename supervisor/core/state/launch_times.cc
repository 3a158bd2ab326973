#include "supervisor/core/state/launch_times.h"

#include <array>

#include "transport/base/text.h"

namespace monarch {

namespace {

struct Part {
  const char* name;
  const char* key;
  Duration took;
};

std::array<Part, 5> parts(const LaunchTimes& times, Duration call_back) {
  return {Part{"waited", "waited_ms", times.waited}, Part{"log-in", "log_in_ms", times.log_in},
          Part{"copy", "copy_ms", times.copy}, Part{"start", "start_ms", times.start},
          Part{"call back", "call_back_ms", call_back}};
}

}  // namespace

std::string where_time_went(const LaunchTimes& times, Duration call_back) {
  if (times == LaunchTimes{}) return {};
  std::string said;
  for (const Part& part : parts(times, call_back)) {
    const std::int64_t milliseconds = part.took.count_milliseconds();
    if (milliseconds <= 0) continue;
    said += text(said.empty() ? " (" : ", ", part.name, " ", to_text(Duration::milliseconds(milliseconds)));
  }
  return said.empty() ? said : said + ")";
}

std::vector<std::pair<std::string, std::string>> launch_details(const LaunchTimes& times, Duration call_back) {
  std::vector<std::pair<std::string, std::string>> details;
  if (times == LaunchTimes{}) return details;
  for (const Part& part : parts(times, call_back)) details.emplace_back(part.key, text(part.took.count_milliseconds()));
  return details;
}

}  // namespace monarch
