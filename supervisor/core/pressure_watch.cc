#include "supervisor/core/pressure_watch.h"

#include <utility>
#include <vector>

#include "transport/base/text.h"

namespace monarch {

namespace {

// Percent of the time in which somebody waits. Processors are waited for wherever there are more threads than those.
constexpr int kShortOfProcessors = 80;
constexpr int kShortOfMemory = 20;
constexpr int kShortOfDisks = 60;
constexpr Duration kCalm = Duration::seconds(120);

}  // namespace

std::string shortage_of(const HostPressure& pressure) {
  std::vector<std::string> all;
  const auto look = [&all](const char* what, int percent, int limit) {
    if (percent >= limit) all.push_back(text("short of ", what, " (", percent, " % of the time)"));
  };
  look("memory", pressure.memory, kShortOfMemory);
  look("disk bandwidth", pressure.io, kShortOfDisks);
  look("processors", pressure.cpu, kShortOfProcessors);
  return join(all, ", ");
}

std::optional<JobEvent> PressureWatch::note(HostId host, const std::string& name, const HostPressure& pressure,
                                            Instant now) {
  const std::string shortage = shortage_of(pressure);
  if (shortage.empty()) {
    const auto known = hosts_.find(host);
    if (known != hosts_.end() && now >= known->second.short_at + kCalm) hosts_.erase(known);
    return std::nullopt;
  }
  Host& known = hosts_[host];
  known.short_at = now;
  if (std::exchange(known.told, true)) return std::nullopt;
  JobEvent event;
  event.type = "host.pressure";
  event.severity = Severity::kWarning;
  event.host = name;
  event.message = text(name, ": ", shortage, "; it is slow, and nothing is stopped for that");
  return event;
}

}  // namespace monarch
