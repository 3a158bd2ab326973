#include "tests/sim/injector.h"

#include <algorithm>
#include <csignal>

#include "tests/sim/checker.h"
#include "tests/sim/guard.h"
#include "tests/sim/hang_account.h"
#include "tests/sim/journal.h"
#include "tests/sim/posts.h"
#include "tests/sim/supervisor.h"
#include "tests/sim/world.h"

namespace monarch::sim {

void Injector::begin() {
  const Faults& faults = world_.scenario.faults;
  repeat(faults.cut, [this] { cut(); });
  repeat(faults.mass_cut, [this] { mass_cut(); });
  repeat(faults.reconnect, [this] { world_.network->reconnect(any_host(), world_.random.one_in(2)); });
  repeat(faults.freeze, [this] { freeze(); });
  repeat(faults.power_loss, [this] { power_loss(); });
  repeat(faults.keeper_kill, [this] { keeper_kill(); });
  repeat(faults.keeper_term, [this] { keeper_term(); });
  repeat(faults.disk_error, [this] { world_.disk->fail_next_sync(); });
  repeat(faults.daemon_crash, [this] { daemon_crash(); });
  repeat(faults.daemon_hang, [this] { daemon_hang(); });
  repeat(faults.supervisor_crash, [this] { supervisor_crash(); });
  repeat(faults.supervisor_stall, [this] { supervisor_stall(); });
  repeat(faults.supervisor_freeze, [this] { supervisor_freeze(); });
  repeat(faults.operates, [this] { ask(); });
  repeat(faults.standstill, [this] { stand(); });
  repeat(faults.pause, [this] { pause(); });
  repeat(faults.holds, [this] { hold(); });
  repeat(faults.drills, [this] { drill(); });
  if (world_.posts != nullptr) {
    world_.posts->begin();
    repeat(faults.post_crash, [this] { world_.posts->crash(); });
  }
  repeat(faults.disk_full, [this] { disk_full(); });
  operate();
}

// Gaps between nothing and twice the mean.
void Injector::repeat(Duration gap, std::function<void()> fault) {
  if (gap == Duration::forever()) return;
  const Duration wait = world_.random.between(Duration::milliseconds(1), gap * 2);
  world_.scheduler.after(wait, [this, gap, fault = std::move(fault)] {
    if (world_.healed() || world_.exit_code()) return;
    fault();
    repeat(gap, fault);
  });
}

HostId Injector::any_host() { return HostId(static_cast<std::uint32_t>(world_.random.below(world_.hosts.size()))); }

void Injector::cut() {
  const HostId host = any_host();
  const std::uint64_t which = world_.random.below(3);
  world_.note("cut", host.value(), which);
  cut_off(host, which, world_.random.skewed(Duration::milliseconds(300), Duration::seconds(30)));
}

void Injector::cut_off(HostId host, std::uint64_t which, Duration length) {
  world_.network->cut(host, which != 1, which != 2);
  world_.scheduler.after(length, [this, host] { world_.network->mend(host); });
}

// Neighbours, in one moment or one after the other, and back together or not.
void Injector::mass_cut() {
  Random& random = world_.random;
  const std::uint64_t count = 2 + random.below(world_.hosts.size());
  const std::uint64_t first = random.below(world_.hosts.size());
  const std::uint64_t which = random.below(3);
  const Duration length = random.skewed(Duration::milliseconds(500), Duration::seconds(40));
  const Duration apart = random.one_in(2) ? Duration::zero() : random.between(Duration::zero(), Duration::seconds(1));
  world_.note("mass cut", first, count, which);
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, world_.hosts.size()); ++i) {
    const HostId host(static_cast<std::uint32_t>((first + i) % world_.hosts.size()));
    world_.scheduler.after(random.between(Duration::zero(), apart), [this, host, which, length] {
      if (!world_.healed()) cut_off(host, which, length);
    });
  }
}

void Injector::freeze() {
  Host& host = world_.host(any_host());
  if (host.off || host.frozen()) return;
  world_.note("freeze", host.id.value());
  host.freeze();
  Duration longest = world_.random.skewed(Duration::milliseconds(100), Duration::seconds(90));
  if (world_.faults().long_freezes) longest = world_.random.between(Duration::seconds(8), Duration::seconds(60));
  world_.scheduler.after(longest, [&host] {
    if (host.frozen()) host.thaw();
  });
}

void Injector::power_loss() {
  Host& host = world_.host(any_host());
  if (host.off) return;
  world_.note("power loss", host.id.value());
  host.off = true;
  for (const auto& worker : host.workers) worker->power_off();
  host.kernel->end();
}

void Injector::keeper_kill() {
  Host& host = world_.host(any_host());
  if (host.off || host.frozen() || host.worker() == nullptr) return;
  host.worker()->kill();
}

void Injector::keeper_term() {
  Host& host = world_.host(any_host());
  if (host.off || host.frozen() || host.worker() == nullptr) return;
  world_.note("keeper told to end", host.id.value());
  host.worker()->terminate(SIGTERM);
}

void Injector::daemon_crash() {
  Host& host = world_.host(any_host());
  if (host.off || host.frozen() || host.daemon() == nullptr) return;
  host.daemon()->die(SIGSEGV);
}

void Injector::daemon_hang() {
  Host& host = world_.host(any_host());
  Daemon* daemon = host.daemon();
  if (daemon == nullptr || daemon->hangs() || host.frozen()) return;
  world_.note("daemon hangs", host.id.value());
  daemon->hang();
  world_.scheduler.after(world_.random.skewed(Duration::milliseconds(100), Duration::seconds(5)),
                         [daemon] { daemon->unhang(); });
}

void Injector::supervisor_crash() {
  if (Supervisor* supervisor = world_.guard->supervisor()) supervisor->die(SIGSEGV);
}

void Injector::supervisor_stall() {
  Supervisor* supervisor = world_.guard->supervisor();
  if (supervisor == nullptr || !supervisor->open()) return;
  world_.note("supervisor stalls");
  supervisor->stall();
  world_.scheduler.after(world_.random.skewed(Duration::milliseconds(50), Duration::seconds(3)),
                         [supervisor] { supervisor->unstall(); });
}

void Injector::supervisor_freeze() {
  if (world_.frozen_supervisor()) return;
  world_.note("supervisor freezes");
  world_.freeze_supervisor();
  world_.scheduler.after(world_.random.skewed(Duration::milliseconds(100), Duration::seconds(60)),
                         [this] { world_.thaw_supervisor(); });
}

// As the lid of a laptop does it, or a container that is paused: each wakes in its own moment, the supervisor last,
// since a host that stands still is not there for who launches it.
void Injector::pause() {
  const auto stands = [](const auto& host) { return host->frozen(); };
  if (world_.frozen_supervisor() || std::any_of(world_.hosts.begin(), world_.hosts.end(), stands)) return;
  world_.note("everything is paused");
  constexpr Duration kApart = Duration::milliseconds(300);
  const Duration length = world_.random.skewed(Duration::seconds(1), Duration::seconds(400));
  world_.freeze_supervisor();
  world_.scheduler.after(length + kApart, [this] { world_.thaw_supervisor(); });
  for (const auto& each : world_.hosts) {
    Host& host = *each;
    host.freeze();
    world_.scheduler.after(length + world_.random.between(Duration::zero(), kApart), [&host] {
      if (host.frozen()) host.thaw();
    });
  }
}

void Injector::disk_full() {
  world_.note("disk full");
  world_.disk->set_full(true);
  world_.scheduler.after(world_.random.skewed(Duration::milliseconds(100), Duration::seconds(20)),
                         [this] { world_.disk->set_full(false); });
}

void Injector::operate() {
  const Faults& faults = world_.scenario.faults;
  const auto order = [this](StopHow how) {
    const Duration when = world_.random.skewed(Duration::milliseconds(10), world_.scenario.faults_until);
    world_.scheduler.after(when, [this, how] {
      if (world_.random.one_in(3)) return world_.guard->terminate(SIGTERM);
      Supervisor* supervisor = world_.guard->supervisor();
      if (supervisor == nullptr || !supervisor->open()) return;
      send_after(world_.scheduler, Duration::microseconds(50), supervisor->life(),
                 [supervisor, how] { supervisor->stop(how); });
    });
  };
  if (world_.random.permille(faults.stops)) order(StopHow::kOrderly);
  if (world_.random.permille(faults.kills)) order(StopHow::kKill);
  if (world_.random.permille(faults.foresees)) foresee();
}

// First that, and when a little later; to whichever supervisor there is then.
void Injector::foresee() {
  const Duration when = world_.random.skewed(Duration::milliseconds(10), world_.scenario.faults_until);
  const Duration left = world_.random.skewed(Duration::seconds(1), Duration::seconds(600));
  const auto tell = [this](std::optional<Duration> known) {
    if (Supervisor* supervisor = world_.guard->supervisor(); supervisor != nullptr) supervisor->foresee(known);
  };
  if (world_.random.one_in(2)) world_.scheduler.after(when, [tell] { tell(std::nullopt); });
  world_.scheduler.after(when + world_.random.skewed(Duration::milliseconds(1), Duration::seconds(10)),
                         [tell, left] { tell(left); });
}

// As `monarch restart | drain | undrain | retry`, of whatever comes to mind.
void Injector::ask() {
  Supervisor* supervisor = world_.guard->supervisor();
  if (supervisor == nullptr || !supervisor->open()) return;
  const JobSpec& spec = world_.scenario.spec;
  OperatorRequest request;
  request.wish = static_cast<OperatorWish>(world_.random.below(4));
  request.now = world_.random.one_in(2);
  if (!world_.random.one_in(4)) request.who = "monarch, pid 4711";
  const MeshId mesh(static_cast<std::uint32_t>(world_.random.below(spec.meshes.size())));
  const Rank rank(static_cast<std::uint32_t>(world_.random.below(spec.meshes[mesh.value()].size())));
  const bool hosts = request.wish == OperatorWish::kDrain || request.wish == OperatorWish::kUndrain;
  if (hosts) {
    request.hosts.push_back(supervisor->core().hosts()[any_host().value()].name);
  } else {
    request.ranks.push_back({mesh, rank});
  }
  send_after(world_.scheduler, Duration::microseconds(50), supervisor->life(),
             [supervisor, request] { supervisor->ask(request); });
}

// Who has kept a job from its hosts gives them back, and what waits for a host's time is tried at once.
void Injector::set_right() {
  Supervisor* supervisor = world_.guard->supervisor();
  if (world_.exit_code()) return;
  if (supervisor == nullptr || !supervisor->open() || supervisor->core().state().phase == JobPhase::kNew) {
    return world_.scheduler.after(Duration::seconds(1), [this] { set_right(); });
  }
  OperatorRequest undrain{.wish = OperatorWish::kUndrain};
  for (const PoolHost& host : supervisor->core().hosts()) undrain.hosts.push_back(host.name);
  OperatorRequest retry{.wish = OperatorWish::kRetry};
  for (std::uint32_t m = 0; m < world_.scenario.spec.meshes.size(); ++m) retry.ranks.push_back({MeshId(m), Rank(0)});
  send_after(world_.scheduler, Duration::microseconds(50), supervisor->life(), [supervisor, undrain, retry] {
    supervisor->ask(undrain);
    supervisor->ask(retry);
    supervisor->hold(
        {.ranks = every_rank(supervisor->core().spec()), .release = true, .who = "monarch hold, pid 4712"});
    supervisor->signal(every_rank(supervisor->core().spec()), SIGCONT);
  });
}

void Injector::heal() {
  if (world_.scenario.theme != Theme::kMix) set_right();
  for (const auto& host : world_.hosts) {
    world_.network->mend(host->id);
    while (host->frozen()) host->thaw();
    if (Daemon* daemon = host->daemon()) daemon->unhang();
    for (const auto& worker : host->workers) worker->ranks().set_going();
  }
  world_.thaw_supervisor();
  if (Supervisor* supervisor = world_.guard->supervisor()) supervisor->unstall();
  world_.disk->set_full(false);
  if (world_.posts != nullptr) world_.posts->heal();
}

}  // namespace monarch::sim
