#include "tests/sim/theme.h"

#include <algorithm>

#include "supervisor/core/spec/placement.h"
#include "supervisor/launch/local/local_spec.h"
#include "tests/sim/random.h"
#include "tests/sim/scenario.h"
#include "transport/base/text.h"

namespace monarch::sim {

namespace {

constexpr std::uint64_t kSalt = 0x7E3E'0000U;
constexpr std::uint64_t kPauseEvery = 20;
constexpr std::size_t kDrawn = kThemes.size() - 3;  // what comes last are these, drills and claims

// For all of the job and each of its meshes.
template <class Change>
void each_policy(JobSpec& spec, Change change) {
  change(spec.supervision);
  for (MeshSpec& mesh : spec.meshes) change(mesh.supervision);
}

// Whatever fails, as often as it does.
void goes_on(Random& random, JobSpec& spec) {
  each_policy(spec, [&](Supervision& policy) {
    policy.orphan = OrphanPolicy::kHold;
    policy.restart.max = std::nullopt;
    policy.restart.backoff = Duration::milliseconds(random.between(1, 500));
    policy.restart.backoff_max = policy.restart.backoff * 4;
    policy.reallocate = {.max = std::nullopt};
  });
}

void lasts(Random& random, Scenario& scenario) {
  scenario.spec.time_limit = Duration::forever();
  scenario.spec.lifetime.max = Duration::forever();
  scenario.faults_until = Duration::seconds(random.between(120, 600));
}

void has_pool(Random& random, JobSpec& spec, std::uint32_t spares, std::uint32_t cold) {
  LaunchLocal launch{.spares = spares};
  launch.hosts = spec.hosts_needed() + spares + static_cast<std::uint32_t>(random.between(0, cold));
  spec.launch = launch;
}

void one_gang_a_host(JobSpec& spec) {
  for (MeshSpec& mesh : spec.meshes) mesh.gang = {.scope = GangScope::kDimension, .along = 0};
}

void thaws(Random& random, Scenario& scenario) {
  lasts(random, scenario);
  has_pool(random, scenario.spec, 2, 6);
  one_gang_a_host(scenario.spec);
  each_policy(scenario.spec, [](Supervision& policy) {
    policy.orphan = OrphanPolicy::kHold;
    policy.reallocate = {.max = std::nullopt};
  });
  scenario.remote = true;
  scenario.longest_run = Duration::forever();
  Faults& faults = scenario.faults;
  faults = Faults{.any = true};
  faults.freeze = Duration::seconds(random.between(4, 20));
  faults.long_freezes = true;
  faults.slow = random.below(200);
  faults.slow_by = Duration::milliseconds(random.between(10, 800));
}

void late_answers(Random& random, Scenario& scenario) {
  lasts(random, scenario);
  scenario.faults_until = Duration::seconds(random.between(20, 90));
  each_policy(scenario.spec, [&](Supervision& policy) {
    policy.restart.max = std::nullopt;
    policy.restart.backoff = Duration::milliseconds(random.between(1, 50));
    policy.restart.backoff_max = policy.restart.backoff * 2;
  });
  scenario.longest_run = Duration::seconds(random.between(1, 8));
  Faults& faults = scenario.faults;
  faults = Faults{.any = true};
  faults.fails = static_cast<std::uint64_t>(random.between(400, 900));
  faults.slow = static_cast<std::uint64_t>(random.between(50, 400));
  faults.slow_by = Duration::milliseconds(random.between(300, 3'000));
  faults.duplicate = static_cast<std::uint64_t>(random.between(100, 500));
  faults.reconnect = Duration::seconds(random.between(5, 60));
}

void shrink(Random& random, Scenario& scenario) {
  lasts(random, scenario);
  one_gang_a_host(scenario.spec);
  const auto most = static_cast<std::uint32_t>(random.below(4));
  const bool regrow = !random.one_in(4);
  each_policy(scenario.spec, [&](Supervision& policy) {
    policy.orphan = OrphanPolicy::kHold;
    policy.reallocate.max = most;
  });
  for (MeshSpec& mesh : scenario.spec.meshes) {
    const auto least = static_cast<std::uint32_t>(random.between(1, mesh.gangs()));
    mesh.supervision.shrink = ShrinkPolicy{.along = "host", .min = least, .regrow = regrow};
  }
  Faults& faults = scenario.faults;
  faults.any = true;
  faults.keeper_kill = Duration::seconds(random.between(10, 60));
  faults.freeze = Duration::seconds(random.between(10, 90));
  if (scenario.remote) faults.power_loss = Duration::seconds(random.between(60, 200));
}

void sick_hosts(Random& random, Scenario& scenario) {
  lasts(random, scenario);
  has_pool(random, scenario.spec, static_cast<std::uint32_t>(random.below(3)), 4);
  if (random.one_in(2)) one_gang_a_host(scenario.spec);
  each_policy(scenario.spec, [](Supervision& policy) {
    if (policy.orphan == OrphanPolicy::kRun) policy.orphan = OrphanPolicy::kHold;
    policy.restart.max = 8;
    policy.reallocate.max = 6;
  });
  scenario.faults.any = true;
  scenario.faults.sick_hosts = static_cast<std::uint64_t>(random.between(100, 500));
}

void operates(Random& random, Scenario& scenario) {
  lasts(random, scenario);
  has_pool(random, scenario.spec, static_cast<std::uint32_t>(random.below(3)), 4);
  scenario.faults.any = true;
  scenario.faults.operates = Duration::seconds(random.between(2, 20));
  // Whoever stops a job operates on it no longer.
  if (!random.one_in(4)) scenario.faults.stops = scenario.faults.kills = 0;
}

void lie(Random& random, Scenario& scenario) {
  scenario.faults.any = true;
  scenario.faults.lies = static_cast<std::uint64_t>(random.between(20, 500));
  if (random.one_in(2)) scenario.faults.floods = static_cast<std::uint64_t>(random.between(50, 600));
  scenario.insider = HostId(static_cast<std::uint32_t>(random.below(pool_of(scenario.spec).size())));
  scenario.faults.claims = static_cast<std::uint64_t>(random.between(5, 500));
}

void switches(Random& random, Scenario& scenario) {
  lasts(random, scenario);
  has_pool(random, scenario.spec, 2, 6);
  if (random.one_in(2)) one_gang_a_host(scenario.spec);
  each_policy(scenario.spec, [](Supervision& policy) {
    policy.orphan = OrphanPolicy::kHold;
    policy.reallocate = {.max = std::nullopt};
  });
  scenario.remote = random.one_in(2);
  scenario.longest_run = Duration::forever();
  Faults& faults = scenario.faults;
  faults = Faults{.any = true};
  faults.mass_cut = Duration::seconds(random.between(4, 30));
  faults.drop = random.below(100);
  if (random.one_in(3)) faults.cut = Duration::seconds(random.between(10, 60));
  if (random.one_in(4)) faults.supervisor_stall = Duration::seconds(random.between(10, 60));
}

// As many spares as the standby gangs need, and some more.
void standby_gangs(Random& random, JobSpec& spec) {
  std::uint32_t needed = 0;
  for (MeshSpec& mesh : spec.meshes) mesh.like.reset();
  for (MeshSpec& mesh : spec.meshes) {
    if (mesh.gang_size() % mesh.per_host() != 0) mesh.gang = {.scope = GangScope::kDimension, .along = 0};
    mesh.standby_gangs = static_cast<std::uint32_t>(random.below(mesh.gang_hosts() > 2 ? 2 : 3));
    needed += mesh.standby_gangs * mesh.gang_hosts();
  }
  if (needed == 0) {
    spec.meshes.front().standby_gangs = 1;
    needed = spec.meshes.front().gang_hosts();
  }
  LaunchLocal launch{.spares = needed + static_cast<std::uint32_t>(random.below(3))};
  launch.hosts = spec.hosts_needed() + launch.spares + static_cast<std::uint32_t>(random.below(4));
  if (random.one_in(2)) launch.prepare = {.program = {"warm"}, .timeout = Duration::seconds(random.between(3, 20))};
  spec.launch = launch;
}

void standby(Random& random, Scenario& scenario) {
  lasts(random, scenario);
  scenario.faults_until = Duration::seconds(random.between(60, 300));
  standby_gangs(random, scenario.spec);
  each_policy(scenario.spec, [&](Supervision& policy) {
    policy.orphan = OrphanPolicy::kHold;
    policy.restart.max = std::nullopt;
    policy.restart.backoff = Duration::milliseconds(random.between(1, 1'000));
    policy.restart.backoff_max = policy.restart.backoff * 4;
    policy.reallocate = {.max = std::nullopt};
  });
  scenario.remote = random.one_in(2);
  if (random.one_in(3)) scenario.commits = Duration::seconds(1);
  scenario.longest_run = Duration::seconds(random.between(30, 400));
  Faults& faults = scenario.faults;
  faults = Faults{.any = true};
  // Some lives of a gang until none of its ranks fails.
  std::uint64_t largest = 1;
  for (const MeshSpec& mesh : scenario.spec.meshes) largest = std::max<std::uint64_t>(largest, mesh.gang_size());
  faults.fails = std::min<std::uint64_t>(900, (1 + random.below(5)) * 1'000 / (largest + 1));
  faults.standby_dies = random.below(200);
  faults.never_at_gate = random.one_in(3) ? random.below(200) : 0;
  faults.keeper_kill = Duration::seconds(random.between(15, 90));
  if (random.one_in(2)) faults.freeze = Duration::seconds(random.between(15, 90));
  if (random.one_in(3)) faults.power_loss = Duration::seconds(random.between(60, 200));
  if (random.one_in(2)) faults.daemon_crash = Duration::seconds(random.between(5, 60));
  if (random.one_in(2)) faults.supervisor_crash = Duration::seconds(random.between(5, 60));
  if (random.one_in(3)) faults.standstill = Duration::seconds(random.between(3, 30));
  if (random.one_in(3)) faults.wedged = random.below(200);
  faults.drop = random.below(200);
  faults.slow = random.below(300);
  faults.slow_by = Duration::milliseconds(random.between(10, 2'000));
  faults.duplicate = random.below(300);
  faults.slow_sync = random.below(300);
  if (random.one_in(3)) faults.cut = Duration::seconds(random.between(10, 60));
  if (random.one_in(3)) faults.operates = Duration::seconds(random.between(2, 20));
  if (random.one_in(4)) faults.lies = static_cast<std::uint64_t>(random.between(20, 500));
}

void hangs(Random& random, Scenario& scenario) {
  lasts(random, scenario);
  scenario.words = Duration::milliseconds(random.between(300, 2'000));
  scenario.hang_limit = Duration::seconds(random.between(10, 40));
  each_policy(scenario.spec, [&](Supervision& policy) {
    policy.restart.max = std::nullopt;
    policy.restart.backoff = Duration::milliseconds(random.between(1, 500));
    policy.restart.backoff_max = policy.restart.backoff * 4;
    policy.hang.action = random.one_in(5) ? HangAction::kReport : HangAction::kRestart;
    for (auto& [phase, limit] : policy.hang.phases) limit = {.longest = scenario.hang_limit, .written = true};
  });
  if (random.one_in(2)) scenario.longest_run = Duration::forever();
  Faults& faults = scenario.faults;
  faults = Faults{.any = true};
  faults.stuck = random.below(400);
  if (!random.one_in(8)) faults.standstill = Duration::seconds(random.between(1, 10));
  if (!random.one_in(4)) faults.holds = Duration::seconds(random.between(2, 20));
  if (random.one_in(2)) faults.supervisor_crash = Duration::seconds(random.between(15, 120));
  if (random.one_in(3)) faults.daemon_crash = Duration::seconds(random.between(10, 60));
  if (random.one_in(3)) faults.freeze = Duration::seconds(random.between(10, 60));
  if (random.one_in(3)) faults.cut = Duration::seconds(random.between(10, 60));
  faults.drop = random.below(200);
  faults.slow_sync = random.below(300);
}

void commits(Random& random, Scenario& scenario) {
  lasts(random, scenario);
  scenario.faults_until = Duration::seconds(random.between(30, 240));
  has_pool(random, scenario.spec, 2, 4);
  if (random.one_in(2)) one_gang_a_host(scenario.spec);
  each_policy(scenario.spec, [&](Supervision& policy) {
    // Who wakes up lives for long enough to be heard.
    policy.orphan = OrphanPolicy::kHold;
    policy.orphan_ttl = Duration::seconds(60);
    policy.restart.max = std::nullopt;
    policy.restart.backoff = Duration::milliseconds(random.between(1, 200));
    policy.restart.backoff_max = policy.restart.backoff * 4;
    policy.reallocate = {.max = std::nullopt};
  });
  scenario.remote = random.one_in(2);
  scenario.commits = random.skewed(Duration::milliseconds(20), Duration::seconds(4));
  if (random.one_in(3)) scenario.whole_commits = random.one_in(2) ? 1000 : 300;
  scenario.longest_run = random.one_in(2) ? Duration::forever() : Duration::seconds(random.between(10, 60));
  Faults& faults = scenario.faults;
  faults = Faults{.any = true};
  faults.freeze = Duration::seconds(random.between(6, 30));
  faults.long_freezes = true;
  faults.fails = static_cast<std::uint64_t>(random.between(0, 700));
  faults.supervisor_crash = Duration::seconds(random.between(4, 40));
  faults.daemon_crash = Duration::seconds(random.between(10, 60));
  faults.keeper_kill = Duration::seconds(random.between(15, 90));
  faults.slow = random.below(300);
  faults.slow_by = Duration::milliseconds(random.between(10, 3'000));
  faults.duplicate = random.below(300);
  faults.drop = random.below(200);
  faults.slow_sync = random.below(300);
}

void pauses(Random& random, Scenario& scenario) {
  lasts(random, scenario);
  each_policy(scenario.spec, [&](Supervision& policy) {
    policy.orphan = random.one_in(3) ? OrphanPolicy::kStop : OrphanPolicy::kHold;
  });
  scenario.longest_run = Duration::forever();
  scenario.faults = Faults{.any = true};
  scenario.faults.pause = Duration::seconds(random.between(10, 90));
}

void drills(Random& random, Scenario& scenario) {
  lasts(random, scenario);
  has_pool(random, scenario.spec, 2, 4);
  scenario.spec.drills = true;
  one_gang_a_host(scenario.spec);
  goes_on(random, scenario.spec);
  scenario.longest_run = Duration::seconds(random.between(20, 200));
  Faults& faults = scenario.faults;
  faults = Faults{.any = true};
  faults.drills = Duration::seconds(random.between(1, 10));
  if (random.one_in(2)) faults.sick_hosts = static_cast<std::uint64_t>(random.between(100, 500));
  if (random.one_in(2)) faults.supervisor_crash = Duration::seconds(random.between(5, 40));
  if (random.one_in(3)) faults.daemon_crash = Duration::seconds(random.between(5, 40));
  faults.drop = random.below(200);
  faults.slow_sync = random.below(300);
}

// On hosts of their own, or on those of what decides about the job.
void add_slots(Random& random, JobSpec& spec) {
  MeshSpec mesh = spec.meshes.front();
  mesh.name = text("slots", spec.meshes.size());
  mesh.sidecar = mesh.idle = mesh.serves = true;
  mesh.depends_on.clear();
  mesh.gang = {.scope = GangScope::kEach};
  auto hosts = static_cast<std::uint32_t>(random.between(1, 4));
  mesh.like = random.one_in(2) ? std::optional(MeshId(0)) : std::nullopt;
  if (mesh.like) hosts = std::min(hosts, spec.meshes.front().hosts());
  mesh.dims = {{"host", hosts}, {"gpu", static_cast<std::uint32_t>(random.between(1, 4))}};
  mesh.claims.trusts_job = random.one_in(2);
  mesh.claims.env = {"CLAIM", "OF_*"};
  mesh.supervision.restart.max = static_cast<std::uint32_t>(random.below(4));
  mesh.supervision.restart.backoff = Duration::milliseconds(random.between(1, 2'000));
  mesh.supervision.restart.backoff_max = mesh.supervision.restart.backoff * 4;
  if (random.one_in(4)) mesh.supervision.reallocate.max = static_cast<std::uint32_t>(random.below(3));
  spec.meshes.push_back(std::move(mesh));
}

void claims(Random& random, Scenario& scenario) {
  lasts(random, scenario);
  scenario.faults_until = Duration::seconds(random.between(60, 240));
  scenario.spec.calls = true;
  goes_on(random, scenario.spec);
  for (MeshSpec& mesh : scenario.spec.meshes) mesh.stop.grace = std::min(mesh.stop.grace, Duration::seconds(5));
  add_slots(random, scenario.spec);
  if (random.one_in(4)) add_slots(random, scenario.spec);
  has_pool(random, scenario.spec, static_cast<std::uint32_t>(random.below(3)), 4);
  scenario.remote = random.one_in(2);
  scenario.longest_run = random.one_in(4) ? Duration::seconds(random.between(60, 300)) : Duration::forever();
  scenario.slots_run = Duration::seconds(random.between(5, 200));
  scenario.calm = Duration::seconds(150);
  Faults& faults = scenario.faults;
  faults = Faults{.any = true};
  faults.fails = random.below(300);
  faults.exec_fails = random.one_in(3) ? random.below(100) : 0;
  faults.never_ready = random.one_in(3) ? random.below(100) : 0;
  faults.deaf = random.below(300);
  faults.post_crash = Duration::seconds(random.between(5, 60));
  if (!random.one_in(4)) faults.supervisor_crash = Duration::seconds(random.between(4, 40));
  if (random.one_in(2)) faults.daemon_crash = Duration::seconds(random.between(5, 60));
  if (random.one_in(2)) faults.keeper_kill = Duration::seconds(random.between(20, 120));
  if (random.one_in(2)) faults.freeze = Duration::seconds(random.between(15, 90));
  if (random.one_in(3)) faults.cut = Duration::seconds(random.between(10, 60));
  if (random.one_in(3)) faults.reconnect = Duration::seconds(random.between(5, 60));
  if (random.one_in(4)) faults.power_loss = Duration::seconds(random.between(60, 200));
  if (random.one_in(4)) faults.supervisor_stall = Duration::seconds(random.between(5, 60));
  if (random.one_in(4)) faults.supervisor_freeze = Duration::seconds(random.between(20, 120));
  if (random.one_in(4)) faults.operates = Duration::seconds(random.between(2, 20));
  faults.stops = faults.foresees = 80;
  faults.drop = random.below(200);
  faults.duplicate = random.below(300);
  faults.slow = random.below(300);
  faults.slow_by = Duration::milliseconds(random.between(10, 2'000));
  faults.slow_sync = random.below(300);
}

}  // namespace

std::optional<Theme> theme_named(std::string_view name) {
  const auto found =
      std::find_if(kThemes.begin(), kThemes.end(), [name](const ThemeName& known) { return name == known.name; });
  return found == kThemes.end() ? std::nullopt : std::optional(found->theme);
}

Theme theme_of(std::uint64_t seed) {
  Random random(seed ^ kSalt);
  if (random.one_in(2)) return Theme::kMix;
  // Little happens in it: a few are enough.
  if (seed % kPauseEvery == kPauseEvery / 2) return Theme::kPauses;
  if (seed % kPauseEvery == kPauseEvery * 3 / 4) return Theme::kDrills;
  if (seed % kPauseEvery == kPauseEvery / 4) return Theme::kClaims;
  return kThemes[static_cast<std::size_t>(random.below(kDrawn))].theme;
}

void apply_theme(Theme theme, Scenario& scenario) {
  Random random(scenario.seed ^ (kSalt << 1U));
  scenario.theme = theme;
  switch (theme) {
    case Theme::kMix: return;
    case Theme::kThaws: return thaws(random, scenario);
    case Theme::kLateAnswers: return late_answers(random, scenario);
    case Theme::kShrink: return shrink(random, scenario);
    case Theme::kSickHosts: return sick_hosts(random, scenario);
    case Theme::kOperator: return operates(random, scenario);
    case Theme::kHostile: return lie(random, scenario);
    case Theme::kSwitches: return switches(random, scenario);
    case Theme::kStandby: return standby(random, scenario);
    case Theme::kHangs: return hangs(random, scenario);
    case Theme::kCommits: return commits(random, scenario);
    case Theme::kPauses: return pauses(random, scenario);
    case Theme::kDrills: return drills(random, scenario);
    case Theme::kClaims: return claims(random, scenario);
  }
}

}  // namespace monarch::sim
