// Hosts on request: machines that somebody is asked for when they are needed, as Slurm for one more node. Each has a
// name of ours until one is granted, and the machine's from then to its end.

#include <algorithm>

#include "supervisor/core/job/job_core.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// After a request that was not granted, until the next one; twice as long each time.
constexpr Duration kFirstPause = Duration::seconds(60);
constexpr Duration kLongestPause = Duration::seconds(1'800);

}  // namespace

void JobCore::on(const HostNamed& event) {
  HostState& state = host(event.host);
  if (!spec_.is_on_request(event.host) || !is_launching(state.phase)) return;
  const std::string before = hosts_[event.host.value()].name;
  // It may be a machine that was of the job before: two hosts of one name could not be told apart.
  const auto is_used = [this](const std::string& name) {
    return std::any_of(hosts_.begin(), hosts_.end(), [&](const PoolHost& other) { return other.name == name; });
  };
  state.name = event.name;
  for (int again = 2; is_used(state.name); ++again) state.name = text(event.name, ".", again);
  take_name(event.host);
  state.deadline = now_ + launch_deadline(basis_);
  // A gang that is parked may wait for more than this one, and gives it back if that is refused again.
  if (!has_parked(basis_)) state_.refusals = 0;
  state_.no_request_before = Instant{};
  if (state_.phase == JobPhase::kStarting) end_.give_time_to_start();
  JobEvent named = event_of(EventKind::kHostNamed, Severity::kInfo, text(before, " is ", state.name, ": ", event.how));
  named.host = state.name;
  named.details = {{"replaces", before}};
  emit(std::move(named));
}

// That of the machine, or its own where there is none.
void JobCore::take_name(HostId id) {
  if (!spec_.is_on_request(id)) return;
  const std::string& name = state_.hosts[id.value()].name;
  hosts_[id.value()] = name.empty() ? pool_of(spec_)[id.value()] : PoolHost{.name = name, .address = ""};
}

// Whoever asks at once gets the same answer; what waits for it goes on to the next stage.
void JobCore::not_granted() {
  if (!may_request(basis_)) return;  // another one that was asked for together with this one
  Duration pause = kFirstPause;
  for (std::uint32_t i = 0; i < state_.refusals && pause < kLongestPause; ++i) pause = pause * 2;
  state_.no_request_before = now_ + std::min(pause, kLongestPause);
  ++state_.refusals;
}

}  // namespace monarch
