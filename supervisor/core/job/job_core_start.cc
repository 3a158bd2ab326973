// From a gang that waits to its START: whose turn it is, and what its hosts hold for it.

#include <algorithm>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/spec/hostlist.h"
#include "supervisor/core/state/gang_life.h"
#include "transport/base/assert.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// ", from step 190: 4 steps are done again"
std::string from_checkpoint(const GangState& state) {
  if (!state.commits.resumed) return "";
  const std::uint64_t step = state.commits.resumed->step;
  const std::uint64_t again = std::max(state.furthest.value_or(0), step) - step;
  return text(", from step ", step,
              again == 0 ? "" : text(": ", again, again == 1 ? " step is" : " steps are", " done again"));
}

}  // namespace

void JobCore::start_waiting_gangs() {
  if (basis_.starts_nothing()) return;
  // What cannot come up whole is about to fail: nothing more is begun.
  if (state_.phase == JobPhase::kStarting && !empty_slots(basis_).empty()) return;
  for (std::uint32_t m = 0; m < state_.meshes.size(); ++m) {
    const std::vector<MeshId>& first = stages_.waits_for(MeshId(m));
    if (!std::all_of(first.begin(), first.end(), [this](MeshId other) { return is_ready(basis_, other); })) continue;
    for (std::uint32_t g = 0; g < state_.meshes[m].gangs.size(); ++g) {
      if (state_.phase != JobPhase::kStarting && state_.phase != JobPhase::kRunning) return;
      const GangState& state = gang(MeshId(m), GangId(g));
      if (is_waiting(state.phase)) {
        reserve_for(MeshId(m), GangId(g));
      } else if (crews_.all_held({MeshId(m), GangId(g)})) {
        start_gang(MeshId(m), GangId(g));  // its last answer came while another slot had no host
      }
    }
  }
}

void JobCore::reserve_for(MeshId mesh, GangId g) {
  if (!fence_done(basis_, mesh, g)) return;
  const std::vector<HostId> hosts = placement_.hosts_of(mesh, g);
  const bool free = std::all_of(hosts.begin(), hosts.end(), [&](HostId id) {
    return is_joined(host(id).phase) && basis_.may_serve(id) && runs_beside(basis_, id, std::pair(mesh, g)).empty();
  });
  if (!free) return;
  GangState& state = gang(mesh, g);
  to(state, GangPhase::kReserving);
  begin_generation(state);
  crews_.begin({mesh, g}, hosts, Instant::never());
}

// What a host has not is its failure, as if it had not started. Where a gang has started, its ranks stay, and the job
// fails.
void JobCore::lacks(MeshId mesh, HostId where, const std::string& what) {
  const std::optional<std::uint32_t> slot = placement_.slot_on(where);
  const bool free =
      slot && (state_.phase == JobPhase::kStarting ? !has_started(basis_, *slot) : may_leave(basis_, *slot, mesh));
  if (free) return hosts_.lacks(where, what);
  const auto failed = [](const HostState& state) { return state.failure.has_value(); };
  if (std::any_of(state_.hosts.begin(), state_.hosts.end(), failed)) hosts_.note_lack(where, what);
  fail_start(mesh, where, what);
}

void JobCore::fail_start(MeshId mesh, HostId where, const std::string& what) {
  bool given_up = false;
  for (std::uint32_t g = 0; mesh_spec(mesh).sidecar && g < state_.meshes[mesh.value()].gangs.size(); ++g) {
    GangState& state = gang(mesh, GangId(g));
    // Others have begun once it was ready: it is not started again, and decides nothing.
    const bool waits_here = is_reserving(state.phase) && placement_.range_of(mesh, GangId(g), where).count > 0;
    if (!waits_here || !state.ever_ready) continue;
    to(state, GangPhase::kFailed);
    crews_.forget({mesh, GangId(g)});
    state.failure.reset();
    basis_.say_of_gang(mesh, GangId(g), EventKind::kGangFailed, Severity::kWarning,
                       text("is given up: ", pool_[where.value()].name, ": ", what,
                            " [a sidecar does not decide: the job goes on without it]"));
    waits_due_ = given_up = true;
  }
  if (given_up) return;
  Verdict verdict;
  verdict.exit_code = kExitUnreachable;
  verdict.cause.kind = CauseKind::kStart;
  verdict.cause.host = pool_[where.value()].name;
  verdict.cause.mesh = mesh_spec(mesh).name;
  verdict.cause.summary = text(verdict.cause.host, ": ", what);
  verdict.cause.rule = "what a mesh needs is not there: fail";
  verdict.reason = verdict.cause.summary;
  end_.fail(std::move(verdict));
}

void JobCore::on(const PortsReserved& event) {
  const Reserved& reserved = event.reserved;
  // Else it was said again for a command that was sent twice, or is of an earlier generation.
  if (!awaits(event.host, reserved) || basis_.starts_nothing()) return;
  if (reserved.mesh.value() >= state_.meshes.size()) {
    standbys_.reserved(event.host, reserved);
    return settle_crews();
  }
  const CrewKey key{reserved.mesh, reserved.gang};
  const Reserve asked = reserve_message(basis_, key, event.host);
  if (!reserved.error.empty() || reserved.ports.size() != asked.count + asked.fixed.size()) {
    const std::string what = reserved.error.empty() ? "it answered with another number of ports" : reserved.error;
    return lacks(
        reserved.mesh, event.host,
        text("could not reserve what mesh ", mesh_spec(reserved.mesh).name, " needs there: ", printable(what)));
  }
  crews_.holds(event.host, reserved);
  if (!empty_slots(basis_).empty()) {
    waits_due_ = true;  // this may be the last answer that was waited for
  } else if (crews_.all_held(key)) {
    start_gang(reserved.mesh, reserved.gang);
  }
}

void JobCore::start_gang(MeshId mesh, GangId g) {
  GangState& state = gang(mesh, g);
  to(state, GangPhase::kStarting);
  state.commits.resumed = state.commits.newest;
  for (const RankId& id : placement_.ranks_of(mesh, g)) {
    last_words_.forget(id);
    rank(id) = RankState{};
  }
  crews_.start({mesh, g});
  std::vector<std::string> names;
  for (const HostId id : placement_.hosts_of(mesh, g)) {
    names.push_back(pool_[id.value()].name);
  }
  state.started_at = now_;
  EventDetails details = {{"hosts", fold_hostlist(names)}};
  if (state.commits.resumed) details.emplace_back("from_step", text(state.commits.resumed->step));
  if (state.furthest) details.emplace_back("furthest", text(*state.furthest));
  basis_.say_of_gang(mesh, g, EventKind::kGangStarting, Severity::kInfo,
                     text("is starting, generation ", basis_.crew(mesh, g).generation.counter, from_checkpoint(state)),
                     details);
}

}  // namespace monarch
