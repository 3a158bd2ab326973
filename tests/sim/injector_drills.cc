// A drill, as `monarch drill --live` does it: each blow is told first, and struck once that is durable. It strikes
// gangs with even numbers alone, so that of others it is known that it never named them.

#include <csignal>

#include "tests/sim/checker.h"
#include "tests/sim/guard.h"
#include "tests/sim/injector.h"
#include "tests/sim/supervisor.h"
#include "tests/sim/world.h"
#include "tests/supervisor/core/state_parts.h"
#include "transport/base/text.h"

namespace monarch::sim {

namespace {

constexpr Duration kLease = Duration::seconds(60);

bool only_even_gangs(const JobCore& core, HostId host) {
  for (std::uint32_t m = 0; m < core.spec().meshes.size(); ++m) {
    const GangRange here = core.placement().gangs_on(MeshId(m), host);
    for (std::uint32_t g = here.first; g < here.first + here.count; ++g) {
      if (g % 2 != 0) return false;
    }
  }
  return true;
}

}  // namespace

void Injector::drill() {
  Supervisor* supervisor = world_.guard->supervisor();
  if (supervisor == nullptr || !supervisor->open()) return;
  const JobCore& core = supervisor->core();
  DrillNotice notice{.what = DrillWhat::kFault,
                     .drill = "1a2b",
                     .number = ++last_fault_,
                     .forgiven = true,
                     .who = "monarch drill, pid 4713"};
  if (world_.random.one_in(4)) {
    const HostId host = any_host();
    if (!only_even_gangs(core, host)) return;
    notice.fault = "power-loss";
    notice.host = core.hosts()[host.value()].name;
    return tell_drill(std::move(notice), [this, host] { strike(host); });
  }
  const auto mesh = static_cast<std::uint32_t>(world_.random.below(core.spec().meshes.size()));
  const MeshSpec& spec = core.spec().meshes[mesh];
  const RankId rank{MeshId(mesh), Rank(static_cast<std::uint32_t>(world_.random.below(spec.size())))};
  const GangId gang = spec.gang_of(rank.rank);
  if (gang.value() % 2 != 0) return;
  notice.fault = "segv";
  notice.mesh = spec.name;
  notice.rank = rank.rank.value();
  const Incarnation key{rank, core.facts().crew_with(rank).generation};
  tell_drill(std::move(notice), [this, key, where = core.placement().host_of(rank)] { strike(key, where); });
}

void Injector::tell_drill(DrillNotice notice, std::function<void()> then) {
  Supervisor* supervisor = world_.guard->supervisor();
  send_after(world_.scheduler, Duration::microseconds(50), supervisor->life(),
             [supervisor, notice = std::move(notice), then = std::move(then)] {
               supervisor->drill({.drill = notice.drill, .name = "sim", .lease = kLease, .who = notice.who}, [] {});
               supervisor->drill(notice, then);
             });
}

void Injector::strike(const Incarnation& key, HostId where) {
  Host& host = world_.host(where);
  if (host.off || host.frozen() || host.worker() == nullptr || world_.healed()) return;
  if (host.worker()->ranks().strike(key, SIGSEGV)) world_.checker->drills().struck(key);
}

void Injector::strike(HostId where) {
  Host& host = world_.host(where);
  const Worker* worker = host.worker();
  if (host.off || host.frozen() || worker == nullptr || !worker->keeper_alive() || world_.healed()) return;
  world_.checker->drills().struck(where);
  host.worker()->kill();
}

}  // namespace monarch::sim
