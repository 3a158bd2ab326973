#include "tests/sim/world.h"

#include <algorithm>
#include <utility>

#include "tests/sim/checker.h"
#include "tests/sim/guard.h"
#include "tests/sim/injector.h"
#include "tests/sim/journal.h"
#include "tests/sim/posts.h"
#include "tests/sim/supervisor.h"
#include "tests/supervisor/core/state_parts.h"
#include "transport/base/text.h"

namespace monarch::sim {

namespace {

constexpr std::int64_t kMostDrift = 200;  // parts per million
constexpr Duration kStopWindow = Duration::seconds(20);
// After all is well: the rest of the start, of the run, the stop with its deadlines, a guard's last back-off.
constexpr Duration kEndMargin = Duration::seconds(150);
// From the verdict, or from the calm if that comes later, to the end: the longest grace, what is wedged, each deadline
// once.
constexpr Duration kStopBound = Duration::seconds(90);
// A machine that lost its power for good is tried again, later each time, until its job has spent what it may on
// replacements.
constexpr Duration kTriedInVain = Duration::seconds(1'800);
constexpr Duration kStopLook = Duration::seconds(1);

Clock make_clock(Random& random) {
  return Clock(random.between(Duration::seconds(1), Duration::seconds(1'000'000)),
               random.between(-kMostDrift, kMostDrift));
}

}  // namespace

Host::Host(World& the_world, HostId the_id, Clock the_clock)
    : world(the_world), id(the_id), clock(the_clock), kernel(std::make_shared<Life>()) {}

Host::~Host() { kernel->end(); }

Instant Host::now() const { return clock.local(world.scheduler.now()); }

void Host::freeze() {
  if (!frozen()) froze_at = world.scheduler.now();
  kernel->freeze();
  for (const auto& worker : workers) worker->freeze();
}

// What runs first after a thaw is the kernel's choice; here the ranks do, which is the worse for us.
void Host::thaw() {
  thawed_at = world.scheduler.now();
  stood_still = stood_still + (thawed_at - froze_at);
  froze_at = thawed_at;
  kernel->thaw();
  for (std::size_t i = 0; i < workers.size(); ++i) {
    // A few instructions are run before anybody looks at a clock.
    for (const auto& [key, process] : workers[i]->ranks().processes()) {
      if (process.executes()) world.checker->writes(process);
    }
    workers[i]->thaw();
  }
}

World::World(const Scenario& the_scenario, bool print, Recorder* the_recorder)
    : scenario(the_scenario),
      recorder(the_recorder),
      random(the_scenario.seed ^ 0x51'0000U),
      trace(print),
      supervisor_clock(make_clock(random)) {
  for (std::uint32_t i = 0; i < scenario.spec.pool_size(); ++i) {
    hosts.push_back(std::make_unique<Host>(*this, HostId(i), make_clock(random)));
    hosts.back()->blocked = random.permille(scenario.faults.call_back_blocked);
    hosts.back()->sick = random.permille(scenario.faults.sick_hosts);
  }
  network = std::make_unique<Network>(*this);
  disk = std::make_unique<Disk>(*this);
  checker = std::make_unique<Checker>(*this);
  guard = std::make_unique<Guard>(*this);
  injector = std::make_unique<Injector>(*this);
  const auto& meshes = scenario.spec.meshes;
  const bool any_idle = std::any_of(meshes.begin(), meshes.end(), [](const MeshSpec& mesh) { return mesh.idle; });
  if (any_idle) posts = std::make_unique<Posts>(*this);
}

World::~World() = default;

bool World::may_connect(HostId id) {
  if (host(id).blocked && !healed_) return false;
  const Supervisor* supervisor = guard->supervisor();
  if (supervisor == nullptr || !supervisor->open()) return false;
  const HostState& state = state_parts::host(supervisor->core().state(), id);
  return !state.public_key.empty() && state.phase != HostPhase::kEnded;
}

void World::deliver_up(const Up& message) {
  Supervisor* supervisor = guard->supervisor();
  // A connection dies with the process that accepted it.
  if (supervisor == nullptr || !supervisor->open() || !network->accepted_by_current(message.link)) return;
  checker->arrives(message);
  if (supervisor->life()->listens()) return supervisor->on_message(message);
  supervisor->life()->message([supervisor, message] { supervisor->on_message(message); });
}

void World::freeze_supervisor() {
  supervisor_frozen_ = true;
  guard->freeze();
}

void World::thaw_supervisor() {
  if (std::exchange(supervisor_frozen_, false)) guard->thaw();
}

void World::guard_exited(int code) {
  note("guard exits", static_cast<std::uint64_t>(code));
  exit_code_ = code;
}

void World::run_until(Instant end) {
  while (!scheduler.idle() && scheduler.next() <= end) {
    scheduler.run_next();
    if (exit_code_ && !ending_) return;
  }
}

void World::simulate() {
  guard->begin();
  injector->begin();
  checker->watch_detection();
  if (posts != nullptr) checker->watch_claims();
  run_until(Instant() + scenario.faults_until);
  healed_ = true;
  note("healed");
  injector->heal();
  checker->healed();
  watch_stop(std::nullopt);
  Duration bound = scenario.spec.start_timeout + scenario.calm + kEndMargin;
  if (scenario.longest_run == Duration::forever()) {
    const Duration when = scenario.calm + random.between(Duration::zero(), kStopWindow);
    bound = bound + kStopWindow;
    scheduler.after(when, [this] { stop_again(); });
  } else {
    bound = bound + scenario.longest_run * 3;  // what was planned to fail does so once more
  }
  if (scenario.faults.power_loss != Duration::forever()) bound = bound + kTriedInVain;
  if (!exit_code_) run_until(scheduler.now() + bound);
  if (!exit_code_ && waits_without_end()) {
    note("given up");
    stop_again();
    run_until(scheduler.now() + kStopBound + kEndMargin);
  }
  if (!exit_code_) checker->not_ended(text("the job has not ended ", to_text(bound), " after all was well"));
  // What is cut off or was spared ends by itself.
  ending_ = true;
  const Supervision& policy = scenario.spec.supervision;
  run_until(scheduler.now() + std::max(policy.lease, policy.orphan_ttl) + policy.orphan_ttl * 2 +
            Duration::seconds(60));
  checker->ended(*exit_code_);
}

// I15: once all is well and the verdict is known, the end comes soon.
void World::watch_stop(std::optional<Instant> since) {
  if (exit_code_) return;
  const Supervisor* supervisor = guard->supervisor();
  const bool stopping =
      supervisor != nullptr && supervisor->open() && supervisor->core().state().phase >= JobPhase::kStopping;
  if (stopping && !since) since = scheduler.now();
  if (since && scheduler.now() - *since > kStopBound) {
    checker->not_ended(text("the job has been stopping for ", to_text(kStopBound), " and all is well"));
  }
  scheduler.after(kStopLook, [this, since] { watch_stop(since); });
}

// For what has not ended: with a budget without an end such a job tries its hosts for ever, until somebody stops it.
bool World::waits_without_end() const {
  const auto& meshes = scenario.spec.meshes;
  const bool endless =
      std::any_of(meshes.begin(), meshes.end(), [](const MeshSpec& mesh) { return !mesh.supervision.reallocate.max; });
  const Supervisor* supervisor = guard->supervisor();
  const auto is_wedged = [&](HostId id) {
    return supervisor != nullptr && supervisor->open() && state_parts::host(supervisor->core().state(), id).wedged;
  };
  const auto left = std::count_if(hosts.begin(), hosts.end(), [&](const auto& host) {
    return !host->off && !is_wedged(host->id);  // a wedged one is never launched again
  });
  return endless && left < static_cast<std::ptrdiff_t>(scenario.spec.hosts_needed());
}

void World::stop_again() {
  if (exit_code_) return;
  Supervisor* supervisor = guard->supervisor();
  if (supervisor != nullptr && supervisor->open()) return supervisor->stop(StopHow::kOrderly);
  scheduler.after(Duration::seconds(5), [this] { stop_again(); });
}

RunResult World::run() {
  RunResult result;
  try {
    simulate();
  } catch (const Violation& violation) {
    result.passed = false;
    result.label = violation.label;
    result.message = violation.message;
  }
  result.hash = trace.hash();
  result.simulated = scheduler.now().since_boot();
  result.steps = scheduler.steps();
  result.seen = coverage.seen();
  if (!result.passed) result.last_lines = trace.last_lines();
  return result;
}

}  // namespace monarch::sim
