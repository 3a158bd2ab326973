#include "worker/keeper/standstill.h"

#include <algorithm>
#include <charconv>

#include "transport/base/text.h"
#include "transport/process/process_scan.h"
#include "transport/process/read_small.h"

namespace monarch {

namespace {

// A disk that is busy keeps a process waiting for a second or two.
constexpr Duration kLongWait = Duration::seconds(10);

// "Name:\tvalue"
std::optional<std::string_view> field(std::string_view status, std::string_view name) {
  while (!status.empty()) {
    const std::string_view line = status.substr(0, status.find('\n'));
    status.remove_prefix(std::min(line.size() + 1, status.size()));
    if (!line.starts_with(name) || line.size() < name.size() + 2 || line[name.size()] != ':') continue;
    return line.substr(name.size() + 2);
  }
  return std::nullopt;
}

// 0 where there is none.
std::uint64_t leading_number(std::optional<std::string_view> words) {
  std::uint64_t value = 0;
  if (words) (void)std::from_chars(words->data(), words->data() + words->size(), value);
  return value;
}

}  // namespace

std::optional<ProcessStanding> parse_standing(std::string_view status) {
  const auto state = field(status, "State");
  if (!state || state->empty()) return std::nullopt;
  return ProcessStanding{.state = state->front(),
                         .tracer = static_cast<pid_t>(leading_number(field(status, "TracerPid"))),
                         .switches = leading_number(field(status, "voluntary_ctxt_switches")) +
                                     leading_number(field(status, "nonvoluntary_ctxt_switches"))};
}

Standstill StandstillWatch::judge(const ProcessStanding& standing, bool frozen, bool tracer_is_ours, Instant now) {
  const bool waits = standing.state == 'D' && !frozen;
  if (!waits || standing.switches != switches_) waits_since_.reset();
  if (waits && !waits_since_) waits_since_ = now;
  switches_ = standing.switches;
  // One that is traced may be stopped, too, and is its debugger's business.
  if (standing.tracer != 0 && !tracer_is_ours) return Standstill::kTraced;
  if (standing.state == 'T') return Standstill::kStopped;
  if (frozen) return Standstill::kFrozen;
  return waits_since_ && now - *waits_since_ >= kLongWait ? Standstill::kWaiting : Standstill::kNone;
}

std::optional<ProcessStanding> read_standing(pid_t pid) {
  const auto status = read_small(text("/proc/", pid, "/status"));
  return status ? parse_standing(*status) : std::nullopt;
}

}  // namespace monarch
