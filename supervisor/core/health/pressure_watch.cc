#include "supervisor/core/health/pressure_watch.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "transport/base/text.h"

namespace monarch {

namespace {

struct Resource {
  const char* name;
  std::uint8_t HostPressure::*percent;
  int limit;  // from here on it is worth a word
};
// Processors are waited for wherever there are more threads than those.
constexpr std::array<Resource, 3> kResources = {{{"memory", &HostPressure::memory, 20},
                                                 {"disk bandwidth", &HostPressure::io, 60},
                                                 {"processors", &HostPressure::cpu, 80}}};
constexpr Duration kCalm = Duration::seconds(120);

std::string shortage_text(const Resource& resource, const HostPressure& pressure) {
  return text("short of ", resource.name, " (", int{pressure.*resource.percent}, " % of the time)");
}

}  // namespace

std::string shortage_of(const HostPressure& pressure) {
  std::vector<std::string> all;
  for (const Resource& resource : kResources) {
    if (pressure.*resource.percent >= resource.limit) all.push_back(shortage_text(resource, pressure));
  }
  return join(all, ", ");
}

std::optional<JobEvent> PressureWatch::note(HostId host, const std::string& name, const HostPressure& pressure,
                                            Instant now) {
  std::vector<std::string> shortages;
  for (std::size_t i = 0; i < kResources.size(); ++i) {
    std::optional<Instant>& told = told_[host][i];
    if (pressure.*kResources[i].percent < kResources[i].limit) {
      if (told && now >= *told + kCalm) told.reset();
      continue;
    }
    if (!std::exchange(told, now)) shortages.push_back(shortage_text(kResources[i], pressure));
  }
  if (shortages.empty()) return std::nullopt;
  JobEvent event;
  event.kind = EventKind::kHostPressure;
  event.severity = Severity::kWarning;
  event.host = name;
  event.message = text(name, ": ", join(shortages, ", "), "; it is slow, and nothing is stopped for that");
  return event;
}

}  // namespace monarch
