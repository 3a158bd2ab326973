// Hosts that were given to the job: what becomes of it when who gave them thinks otherwise of one than we do, or takes all of them back.

#include <utility>

#include "supervisor/core/job/operator_request.h"
#include "supervisor/loop/supervisor_loop.h"
#include "transport/base/log.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Of a host that nothing new starts on: was it who gave it that wanted that, and no person?
bool is_left_by(const std::string& giver, const HostState& host) {
  return host.standing == HostStanding::kDrained && host.lost_because.starts_with(text("drained, asked by ", giver));
}

}  // namespace

// Nothing new starts on one that is drained; what runs on one that is down for who gave it ends as soon as it is back there, and goes
// elsewhere before, if there is a host for it.
void Supervisor::on_node_seen(HostId host, const SeenNode& seen) {
  const HostState& state = core_.state().hosts[host.value()];
  const std::string& name = core_.hosts()[host.value()].name;
  const std::string& giver = core_.spec().launch.facts().batch_system;
  if (seen.sight == NodeSight::kWell) {
    if (!is_left_by(giver, state)) return;
    (void)decide(OperatorAsked{.wish = OperatorWish::kUndrain, .ranks = {}, .hosts = {host}, .who = giver});
    return;
  }
  const std::string who = text(giver, ", which says `", seen.words, "`");
  if (state.standing == HostStanding::kGood) {
    (void)decide(OperatorAsked{.wish = OperatorWish::kDrain, .ranks = {}, .hosts = {host}, .who = who});
  }
  if (seen.sight != NodeSight::kDown || !is_left_by(giver, state) || !runs_something(host) || !has_free_host()) return;
  const auto plan = operator_plan(
      core_, {.wish = OperatorWish::kDrain, .ranks = {}, .hosts = {name}, .now = true, .who = who}, loop_->now());
  if (!plan.ok()) {
    log_warn(name, ": what runs there stays: ", plan.error().message);
    return;
  }
  (void)decide(plan->event);
}

// Whoever sees it first: what was told before counts.
void Supervisor::on_end_foreseen(const EndForeseen& event) {
  const auto& known = core_.state().foreseen;
  if (known && event.by >= known->by) return;  // a record less
  (void)decide(event);
}

bool Supervisor::runs_something(HostId host) const {
  if (core_.state().hosts[host.value()].phase != HostPhase::kJoined) return false;
  for (std::uint32_t m = 0; m < core_.state().meshes.size(); ++m) {
    const GangRange here = core_.placement().gangs_on(MeshId(m), host);
    for (std::uint32_t g = here.first; g < here.first + here.count; ++g) {
      const GangPhase phase = core_.state().meshes[m].gangs[g].phase;
      if (phase == GangPhase::kStarting || phase == GangPhase::kRunning) return true;
    }
  }
  return false;
}

// One that is connected, and has nothing to do.
bool Supervisor::has_free_host() const {
  for (std::uint32_t i = 0; i < core_.state().hosts.size(); ++i) {
    const HostState& host = core_.state().hosts[i];
    const bool serves = host.phase == HostPhase::kJoined && host.standing == HostStanding::kGood && !host.wedged &&
                        !host.doubted && !host.failing;
    if (serves && !core_.placement().holds_ranks(HostId(i))) return true;
  }
  return false;
}

}  // namespace monarch
