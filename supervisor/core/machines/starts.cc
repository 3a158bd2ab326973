#include "supervisor/core/machines/starts.h"

#include <algorithm>
#include <utility>

#include "supervisor/core/facts/gang_orders.h"
#include "supervisor/core/facts/gangs.h"
#include "supervisor/core/facts/slots.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

void Starts::look() {
  if (basis_.starts_nothing()) return;
  // What cannot come up whole is about to fail: nothing more is begun.
  if (basis_.state.phase == JobPhase::kStarting && !empty_slots(basis_).empty()) return;
  for (std::uint32_t m = 0; m < basis_.state.meshes.size(); ++m) {
    const std::vector<MeshId>& first = basis_.stages.waits_for(MeshId(m));
    if (!std::all_of(first.begin(), first.end(), [this](MeshId other) { return is_ready(basis_, other); })) continue;
    for (std::uint32_t g = 0; g < basis_.state.meshes[m].gangs.size(); ++g) {
      if (basis_.state.phase != JobPhase::kStarting && basis_.state.phase != JobPhase::kRunning) return;
      const GangState& state = basis_.gang(MeshId(m), GangId(g));
      if (is_waiting(state.phase)) {
        gangs_.reserve(MeshId(m), GangId(g));
      } else if (crews_.all_held({MeshId(m), GangId(g)})) {
        gangs_.start(MeshId(m), GangId(g));  // its last answer came while another slot had no host
      }
    }
  }
}

// What a host has not is its failure, as if it had not started. Where a gang has started, its ranks stay, and the job
// fails.
void Starts::lacks(MeshId mesh, HostId where, const std::string& what) {
  const std::optional<std::uint32_t> slot = basis_.placement.slot_on(where);
  const bool free = slot && (basis_.state.phase == JobPhase::kStarting ? !has_started(basis_, *slot)
                                                                       : may_leave(basis_, *slot, mesh));
  if (free) return hosts_.lacks(where, what);
  const auto failed = [](const HostState& state) { return state.failure.has_value(); };
  if (std::any_of(basis_.state.hosts.begin(), basis_.state.hosts.end(), failed)) hosts_.note_lack(where, what);
  if (gangs_.give_up_sidecars(mesh, where, what)) return;
  Verdict verdict;
  verdict.exit_code = kExitUnreachable;
  verdict.cause.kind = CauseKind::kStart;
  verdict.cause.host = basis_.name_of(where);
  verdict.cause.mesh = basis_.mesh(mesh).name;
  verdict.cause.summary = text(verdict.cause.host, ": ", what);
  verdict.cause.rule = "what a mesh needs is not there: fail";
  verdict.reason = verdict.cause.summary;
  end_.fail(std::move(verdict));
}

void Starts::on(const PortsReserved& event) {
  const Reserved& reserved = event.reserved;
  // Else it was said again for a command that was sent twice, or is of an earlier generation.
  const bool of_gang = reserved.mesh.value() < basis_.spec.meshes.size();
  if (!of_gang || !crews_.awaits(event.host, reserved) || basis_.starts_nothing()) return;
  const CrewKey key{reserved.mesh, reserved.gang};
  const Reserve asked = reserve_message(basis_, key, event.host);
  if (!reserved.error.empty() || reserved.ports.size() != asked.count + asked.fixed.size()) {
    const std::string what = reserved.error.empty() ? "it answered with another number of ports" : reserved.error;
    return lacks(
        reserved.mesh, event.host,
        text("could not reserve what mesh ", basis_.mesh(reserved.mesh).name, " needs there: ", printable(what)));
  }
  crews_.holds(event.host, reserved);
  if (!empty_slots(basis_).empty()) {
    basis_.waits_due = true;  // this may be the last answer that was waited for
  } else if (crews_.all_held(key)) {
    gangs_.start(reserved.mesh, reserved.gang);
  }
}

}  // namespace monarch
