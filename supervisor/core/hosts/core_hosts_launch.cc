#include "supervisor/core/hosts/core_hosts.h"

#include <algorithm>
#include <utility>

#include "supervisor/core/facts/slots.h"
#include "supervisor/core/state/host_life.h"
#include "transport/base/text.h"

namespace monarch {

void CoreHosts::launch(HostId id) {
  HostState& state = host(id);
  to(state, HostPhase::kLaunching);
  state.launched_at = basis_.now;
  state.name.clear();
  names_.take(id);
  if (!is_in_queue(basis_, id)) state.deadline = basis_.now + launch_deadline(basis_);
  basis_.actions.emplace_back(LaunchWorker{id});
}

void CoreHosts::launch_again(HostId id, const std::string& rule) {
  const std::string& name = basis_.name_of(id);
  JobEvent again =
      basis_.event(EventKind::kHostReplaced, Severity::kWarning,
                   text(name, ": its worker is launched again", rule.empty() ? "" : text(" [", rule, "]")));
  again.host = name;
  again.details = {{"replaces", name}};
  basis_.emit(std::move(again));
  launch(id);
}

void CoreHosts::on(const HostNamed& event) {
  HostState& state = host(event.host);
  if (!basis_.spec.is_on_request(event.host) || !is_launching(state.phase)) return;
  const std::string before = basis_.name_of(event.host);
  // It may be a machine that was of the job before: two hosts of one name could not be told apart.
  const auto is_used = [this](const std::string& name) {
    return std::any_of(basis_.hosts.begin(), basis_.hosts.end(),
                       [&](const PoolHost& other) { return other.name == name; });
  };
  state.name = event.name;
  for (int again = 2; is_used(state.name); ++again) state.name = text(event.name, ".", again);
  names_.take(event.host);
  state.deadline = basis_.now + launch_deadline(basis_);
  requests_.granted();
  if (basis_.state.phase == JobPhase::kStarting) end_.give_time_to_start();
  JobEvent named =
      basis_.event(EventKind::kHostNamed, Severity::kInfo, text(before, " is ", state.name, ": ", event.how));
  named.host = state.name;
  named.details = {{"replaces", before}};
  basis_.emit(std::move(named));
}

void CoreHosts::on(const WorkerLaunchFailed& event) {
  if (!is_launching(host(event.host).phase)) return;
  if (event.failure.kind == LaunchFailureKind::kNotGranted) requests_.refused();
  failed(event.host, event.failure);
  destroy(event.host);  // something of it may run all the same
}

// Hosts on which it takes so long that only another one can be in time: no more of them are given up than there are
// others, and connected ones are taken first. Where there is no such haste, since the job runs or the late one is a
// spare, a host that is not connected counts only once the late one has had all of start_timeout; and no connected one
// is spent on a spare.
void CoreHosts::look_at_late() {
  if (late_.empty()) return;
  std::vector<HostId> late = std::exchange(late_, {});
  std::size_t connected = 0;
  std::size_t more = 0;
  for (std::uint32_t i = 0; i < mine_.size(); ++i) {
    const HostState& state = mine_[i];
    if (!may_take(basis_, HostId(i)) || is_taken(basis_, HostId(i)) || state.doubted) continue;
    if (is_joined(state.phase)) ++connected;
    if (is_cold(state.phase) || is_launched(state.phase)) ++more;
    if (is_launching(state.phase) && state.deadline > basis_.now) ++more;
  }
  for (std::size_t waiting = empty_slots(basis_).size(); waiting > 0 && connected + more > 0; --waiting) {
    --(connected > 0 ? connected : more);
  }
  std::stable_partition(late.begin(), late.end(), [this](HostId id) { return is_taken(basis_, id); });
  for (const HostId id : late) {
    host(id).deadline = basis_.now + kCallBackDeadline;  // there may be one by then
    const bool taken = is_taken(basis_, id);
    const bool in_haste = taken && basis_.state.phase == JobPhase::kStarting;
    const bool had_all = basis_.now >= host(id).launched_at + basis_.spec.start_timeout;
    if (taken && connected > 0) {
      --connected;
    } else if (more > 0 && (in_haste || had_all)) {
      --more;
    } else {
      continue;
    }
    failed(id, {.kind = LaunchFailureKind::kTimeout,
                .phase = "launch",
                .elapsed = basis_.now - host(id).launched_at,
                .message = "no worker has started there, and another host can be had",
                .words = {},
                .again = {}});
    destroy(id);
  }
}

void CoreHosts::not_called_back(HostId id) {
  const HostState& state = host(id);
  const std::string where = state.control_endpoint.empty() ? std::string("the supervisor") : state.control_endpoint;
  const LaunchFacts& launch = basis_.spec.launch.facts();
  const bool tunnelled = launch.tunnels && basis_.spec.control.via == ControlVia::kSsh;
  const std::string_view hint =
      basis_.spec.supervised_away()
          ? "; the supervisor is on the first host: may it be called there (control.address, control.ports)?"
      : tunnelled ? std::string_view()
                  : launch.no_call_back;
  failed(id, {.kind = LaunchFailureKind::kCallBack,
              .phase = "call back",
              .elapsed = basis_.now - state.launched_at,
              .message = text("its worker runs, and has not reached ", where, " within ",
                              to_text(call_back_deadline(basis_)), basis_.late_since(state.late_before), hint),
              .words = {},
              .again = state.call_back_again});
  destroy(id);
}

// It is out for good; the caller ends what may live there.
void CoreHosts::failed(HostId id, LaunchFailure failure) {
  const std::string& name = basis_.name_of(id);
  const bool missed = is_taken(basis_, id) && !replacement(basis_);
  JobEvent failed = basis_.event(EventKind::kHostFailed, missed ? Severity::kError : Severity::kWarning,
                                 text(name, ": ", what_failed(failure)));
  failed.host = name;
  failed.details = {{"kind", name_of(failure.kind)},
                    {"phase", failure.phase},
                    {"elapsed", to_text(failure.elapsed)},
                    {"again", failure.again}};
  basis_.emit(std::move(failed));
  host(id).failure = std::move(failure);
  basis_.waits_due = true;
}

void CoreHosts::lacks(HostId id, const std::string& what) {
  failed(id, lack_of(basis_, id, what));
  destroy(id);
}

// Not proven to have ended in time: what of it lives there ends by itself, and the host is out.
void CoreHosts::not_launched_again(HostId id) {
  if (!std::exchange(host(id).launch_again, false)) return;
  failed(id,
         {.kind = LaunchFailureKind::kOther,
          .phase = "start",
          .elapsed = basis_.now - host(id).launched_at,
          .message = "it was being launched when the supervisor ended, and what of that is there could not be ended",
          .words = {},
          .again = {}});
}

}  // namespace monarch
