// Hosts: from the launch of a worker to its proven end; and what a beat shows to be missing.

#include <algorithm>
#include <utility>

#include "supervisor/core/health/fence.h"
#include "supervisor/core/job/job_core.h"
#include "supervisor/core/recovery/restart_budget.h"
#include "supervisor/core/state/host_life.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"
#include "transport/messages/launch.h"
#include "transport/messages/rank.h"
#include "transport/messages/vault.h"
#include "transport/messages/viewer.h"
#include "transport/messages/worker.h"

namespace monarch {

std::vector<Action> JobCore::outstanding(HostId id, const std::vector<RankReport>& reported) const {
  std::vector<Action> missing;
  const HostState& state = state_.hosts[id.value()];
  const bool given_up = is_cold(state.phase) && state.unproven;
  if (is_destroying(state.phase) || state.phase == HostPhase::kLost || given_up) {
    // The launcher's order has not reached it, and it is heard again: it is told itself, or our answers would keep it
    // for ever.
    missing.emplace_back(SendShutdown{id, Shutdown{.reason = "this host was given up"}});
    return missing;
  }
  if (!is_joined(state.phase) || state.failing) return missing;
  if (state.shutdown_told) {
    missing.emplace_back(SendShutdown{id, Shutdown{.reason = state_.verdict->reason}});
    return missing;
  }
  crews_.add_outstanding(id, reported, missing);
  // What runs there at a generation that nobody wants: it is killed, whatever it is.
  for (const RankReport& report : reported) {
    if (report.phase >= RankPhase::kStopping || judge(basis_, id, report).granted) continue;
    missing.emplace_back(SendStop{id, Stop{.ranks = {report.process.rank},
                                           .generation = report.process.generation,
                                           .signal = 9,
                                           .grace = Duration::zero()}});
  }
  return missing;
}

// What follows for those who are on these hosts.
void JobCore::settle_hosts() {
  while (hosts_.has_news()) {
    for (const HostNews& news : hosts_.take_news()) {
      switch (news.what) {
        case HostNews::What::kLost: lose_ranks(news.host, news.silence); break;
        case HostNews::What::kDecides: decide_causes_within(news.host, news.within); break;
        case HostNews::What::kGone: mark_ranks_lost(news.host); break;
      }
    }
  }
}

// They are to end: their host is lost, and may be about to be proven to have ended.
void JobCore::lose_ranks(HostId id, std::optional<Duration> silence) {
  const std::optional<std::uint32_t> slot = placement_.slot_on(id);
  if (!slot) return;
  give_up_reservations(*slot);
  each_gang([&](MeshId m, GangId g) {
    GangState& state = gang(m, g);
    const bool alive = runs(state.phase) || (is_failing(state.phase) && !state.cause_decided);
    const std::vector<RankId> here = placement_.ranks_of(m, g, id);
    const bool held_ranks =
        std::any_of(here.begin(), here.end(), [this](const RankId& r) { return lives(basis_.member(r).stage); });
    if (!alive || !held_ranks) return;
    state.host_lost = true;
    state.lost_host = id;
    gang_failed(m, g, silence ? now_ - *silence : Instant::never());
  });
}

// Of gangs that fail because of this host.
void JobCore::decide_causes_within(HostId id, Duration patience) {
  each_gang([&](MeshId m, GangId g) {
    GangState& state = gang(m, g);
    const bool open = is_failing(state.phase) && !state.cause_decided;
    if (open && state.host_lost && state.lost_host == id) state.cause_deadline = now_ + patience;
  });
}

// The host has ended, or is given up: nothing more will be heard of its ranks.
void JobCore::mark_ranks_lost(HostId id) {
  lose_crews(id);
  each_gang([&](MeshId m, GangId g) {
    const bool changed = crews_.lose({m, g}, id);
    if (changed && host(id).fence > now_) fence_by(gang(m, g), id);
    if (changed) check_gang(m, g);
  });
}

}  // namespace monarch
