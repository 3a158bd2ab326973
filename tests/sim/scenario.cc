#include "tests/sim/scenario.h"

#include <algorithm>

#include "supervisor/launch/local/local_spec.h"
#include "supervisor/launch/ssh/ssh_spec.h"
#include "tests/sim/random.h"
#include "transport/base/text.h"

namespace monarch::sim {

namespace {

constexpr std::uint32_t kMostHosts = 16;
constexpr std::uint32_t kMostAskedFor = 1'000;  // 4 GiB of memory

// Half of the meshes are ready when they are executed; the others by their own word, or once a port accepts.
void draw_readiness(Random& random, MeshSpec& mesh) {
  const std::uint64_t form = random.below(4);
  if (form == 0) mesh.ready.kind = ReadyKind::kNotify;
  if (form != 1) return;
  if (mesh.ports.empty()) mesh.ports.push_back({.name = "door", .fixed = std::nullopt});
  mesh.ready = {.kind = ReadyKind::kTcp, .port = static_cast<std::size_t>(random.below(mesh.ports.size()))};
}

// A third of the jobs fail fast. Windows that end while the job runs are rare, as in life.
void draw_restarts(Random& random, RestartPolicy& restart) {
  restart.max = random.one_in(3) ? 0 : static_cast<std::uint32_t>(random.between(1, 5));
  if (random.one_in(12)) restart.max = std::nullopt;
  restart.window = Duration::seconds(random.one_in(4) ? random.between(30, 120) : 600);
  restart.backoff = random.skewed(Duration::milliseconds(10), Duration::seconds(2));
  restart.backoff_max = restart.backoff * random.between(1, 8);
}

MeshSpec make_mesh(Random& random, std::size_t index, std::uint32_t hosts, const Supervision& supervision) {
  MeshSpec mesh;
  mesh.name = text("m", index);
  const auto per_host = static_cast<std::uint32_t>(random.between(1, hosts > 8 ? 2 : 4));
  mesh.dims = {{"host", hosts}, {"gpu", per_host}};
  mesh.per_host_dims = 1;
  mesh.gang.scope = static_cast<GangScope>(random.below(3));
  mesh.program = {"train"};
  mesh.stop.grace = random.skewed(Duration::milliseconds(200), Duration::seconds(10));
  mesh.stop.after_failure =
      random.one_in(2) ? Duration::zero() : random.between(Duration::zero(), Duration::seconds(3));
  mesh.stop.to = static_cast<SignalTo>(random.below(3));
  mesh.supervision = supervision;
  if (random.one_in(4)) draw_restarts(random, mesh.supervision.restart);
  mesh.sidecar = index > 0 && random.one_in(4);
  for (std::uint64_t n = random.below(3); n > 0; --n)
    mesh.ports.push_back({.name = text("p", n), .fixed = std::nullopt});
  draw_readiness(random, mesh);
  return mesh;
}

// Each waits for some of those before it, or all of them for some after; a sidecar for sidecars alone.
void link_meshes(Random& random, JobSpec& spec) {
  const auto count = static_cast<std::uint32_t>(spec.meshes.size());
  const bool backwards = random.one_in(2);
  for (std::uint32_t i = 1; i < count; ++i) {
    const auto other = static_cast<std::uint32_t>(random.below(i));
    if (random.one_in(4) && !spec.meshes[other].like && spec.meshes[i].hosts() <= spec.meshes[other].hosts()) {
      spec.meshes[i].like = MeshId(other);
    }
    for (std::uint32_t j = 0; j < i; ++j) {
      if (!random.one_in(3)) continue;
      MeshSpec& later = spec.meshes[backwards ? j : i];
      const std::uint32_t earlier = backwards ? i : j;
      if (!later.sidecar || spec.meshes[earlier].sidecar) later.depends_on.emplace_back(earlier);
    }
  }
}

JobSpec make_spec(Random& random, const ScenarioOptions& options) {
  JobSpec spec;
  spec.name = "sim";
  spec.directory = "/";
  Supervision& policy = spec.supervision;
  policy.orphan_ttl = Duration::seconds(random.between(2, random.one_in(2) ? 10 : 60));
  policy.orphan = random.one_in(4) ? OrphanPolicy::kStop : OrphanPolicy::kHold;
  if (random.one_in(12)) policy.orphan = OrphanPolicy::kRun;
  draw_restarts(random, policy.restart);
  policy.reallocate.max = random.one_in(3) ? 0 : static_cast<std::uint32_t>(random.between(1, 6));
  if (policy.orphan == OrphanPolicy::kRun) policy.reallocate.max = 0;
  auto hosts = static_cast<std::uint32_t>(random.one_in(3) ? random.between(1, kMostHosts) : random.between(1, 5));
  if (options.hosts) hosts = std::clamp(*options.hosts, 1U, kMostAskedFor);
  std::uint32_t meshes = std::min<std::uint32_t>(hosts, static_cast<std::uint32_t>(random.between(1, 3)));
  if (options.ranks) {
    hosts = std::max(*options.ranks, 1U);
    meshes = 1;
  }
  for (std::uint32_t i = 0; i < meshes; ++i) {
    const std::uint32_t share = i + 1 == meshes ? hosts - i * (hosts / meshes) : hosts / meshes;
    spec.meshes.push_back(make_mesh(random, i, share, policy));
    spec.meshes.back().resources.cpus = 1;
  }
  if (options.ranks) spec.meshes.front().dims.back().size = 1;
  link_meshes(random, spec);
  LaunchLocal launch{.spares = options.ranks ? 3U : static_cast<std::uint32_t>(random.below(3))};
  if (random.one_in(2)) {
    const auto cold = static_cast<std::uint32_t>(random.below(5));
    launch.hosts = spec.hosts_needed() + launch.spares + cold;
  }
  spec.launch = launch;
  spec.start_timeout = Duration::seconds(random.between(20, 60));
  if (random.one_in(10)) spec.time_limit = Duration::seconds(random.between(5, 90));
  if (random.one_in(12)) spec.lifetime.max = Duration::seconds(random.between(5, 90));
  return spec;
}

class FaultMix {
 public:
  explicit FaultMix(Random& random) : random_(random), eighths_(static_cast<std::uint64_t>(random.between(1, 5))) {}
  Duration gap(int low_s, int high_s) {
    if (!on()) return Duration::forever();
    return random_.between(Duration::seconds(low_s), Duration::seconds(high_s));
  }
  std::uint64_t chance(std::uint64_t most) { return on() ? 1 + random_.below(most) : 0; }

 private:
  bool on() { return random_.below(8) < eighths_; }
  Random& random_;
  std::uint64_t eighths_;  // of the kinds that are on
};

Faults make_faults(Random& random) {
  Faults faults;
  faults.any = !random.one_in(10);
  if (!faults.any) return faults;
  FaultMix mix(random);
  faults.drop = mix.chance(300);
  faults.duplicate = mix.chance(500);
  faults.slow = mix.chance(300);
  faults.slow_by = random.skewed(Duration::milliseconds(100), Duration::seconds(10));
  faults.cut = mix.gap(5, 60);
  faults.reconnect = mix.gap(1, 90);
  faults.freeze = mix.gap(5, 60);
  faults.power_loss = mix.gap(20, 120);
  faults.keeper_kill = mix.gap(20, 120);
  faults.keeper_term = mix.gap(30, 200);
  faults.daemon_crash = mix.gap(3, 60);
  faults.daemon_hang = mix.gap(5, 60);
  faults.launch_refused = mix.chance(random.one_in(5) ? 400 : 20);
  faults.launch_fails = mix.chance(random.one_in(5) ? 300 : 20);
  faults.call_back_blocked = mix.chance(random.one_in(5) ? 300 : 20);
  faults.few_cpus = mix.chance(random.one_in(5) ? 400 : 20);
  faults.promise_fails = mix.chance(500);
  faults.slow_disk = mix.chance(500);
  faults.supervisor_crash = mix.gap(2, 60);
  faults.supervisor_stall = mix.gap(2, 30);
  faults.supervisor_freeze = mix.gap(5, 60);
  faults.disk_full = mix.gap(5, 60);
  faults.disk_error = mix.gap(2, 30);
  faults.slow_sync = mix.chance(500);
  faults.no_port = mix.chance(30);
  faults.fork_fails = mix.chance(50);
  faults.exec_fails = mix.chance(50);
  faults.slow_exec = mix.chance(300);
  faults.deaf = mix.chance(1000);
  faults.children = mix.chance(500);
  faults.wedged = mix.chance(200);
  faults.fails = mix.chance(300);
  faults.never_ready = mix.chance(60);
  faults.late_ready = mix.chance(200);
  faults.stops = mix.chance(1000);
  faults.kills = mix.chance(1000);
  faults.foresees = mix.chance(1000);
  faults.mass_cut = mix.gap(20, 120);
  return faults;
}

// A machine behind a network, of which a launcher may never learn whether its worker ended; others are virtual hosts of
// this one.
void put_on_machines(JobSpec& spec) {
  LaunchSsh launch;
  launch.spares = spec.spares();
  launch.prepare = spec.prepare();
  for (std::uint32_t i = 0; i < spec.pool_size(); ++i) launch.hosts.push_back({.name = text("h", i)});
  spec.launch = std::move(launch);
}

}  // namespace

JobSpec core_spec(JobSpec spec, Mutant mutant) {
  const std::vector<MeshSpec> meant = spec.meshes;
  for (std::uint32_t i = 0; i < spec.meshes.size(); ++i) {
    if (mutant == Mutant::kIgnoreDependencies) spec.meshes[i].depends_on.clear();
    if (mutant == Mutant::kRestartForEver) spec.meshes[i].supervision.restart.max = std::nullopt;
    if (mutant == Mutant::kReadyAtOnce) spec.meshes[i].ready.kind = ReadyKind::kExec;
    if (mutant == Mutant::kClaimDecides && meant[i].idle) spec.meshes[i].sidecar = false;
    if (mutant != Mutant::kSidecarDecides || !meant[i].sidecar) continue;
    spec.meshes[i].sidecar = false;
    // In the same order as before: what is planted is that its end counts.
    for (std::uint32_t j = 0; j < spec.meshes.size(); ++j) {
      if (!meant[j].sidecar) spec.meshes[j].depends_on.emplace_back(i);
    }
  }
  return spec;
}

namespace {

// Each seventh job goes on from another one, whose gangs had come that far. Nothing is drawn: other seeds stay as they
// are.
Inheritance continued_by(const Scenario& scenario) {
  Inheritance all;
  if (scenario.seed % 7 != 3) return all;
  all.job = "before-0000";
  for (std::uint32_t m = 0; m < scenario.spec.meshes.size(); ++m) {
    const MeshSpec& mesh = scenario.spec.meshes[m];
    for (std::uint32_t g = 0; g < mesh.gangs(); ++g) {
      InheritedGang gang{.mesh = MeshId(m), .gang = GangId(g), .generation = 1 + (scenario.seed + g) % 5};
      if (scenario.commits != Duration::forever() && (scenario.seed + g) % 3 != 0) {
        gang.checkpoint =
            GangCheckpoint{.step = 4 + g,
                           .generation = {Term(1), gang.generation},
                           .what = std::vector<std::string>(mesh.gang_size(), text("step-", 4 + g, "-before"))};
        gang.furthest = 6 + g;
      }
      all.gangs.push_back(std::move(gang));
    }
  }
  return all;
}

// Of each eleventh job whose ranks may fail they name steps, and one crashes at the same step again. Nothing is drawn,
// as above.
void name_steps(Scenario& scenario) {
  const bool apart = scenario.theme == Theme::kPauses || scenario.theme == Theme::kClaims;
  if (scenario.seed % 11 != 4 || !scenario.faults.any || apart) return;
  if (scenario.words == Duration::forever())
    scenario.words = Duration::milliseconds(200) * static_cast<std::int64_t>(1 + scenario.seed % 4);
  const auto mesh = static_cast<std::uint32_t>(scenario.seed / 11 % scenario.spec.meshes.size());
  if (scenario.spec.meshes[mesh].sidecar) return;
  scenario.spec.meshes[mesh].supervision.restart.max = std::nullopt;
  scenario.poison = Poison{.rank = {MeshId(mesh), Rank(0)}, .step = 2 + scenario.seed / 11 % 7};
}

}  // namespace

Scenario make_scenario(std::uint64_t seed, const ScenarioOptions& options) {
  Random random(seed);
  Scenario scenario;
  scenario.seed = seed;
  scenario.mutant = options.mutant;
  scenario.spec = make_spec(random, options);
  scenario.faults = make_faults(random);
  scenario.faults_until = random.skewed(Duration::seconds(10), Duration::seconds(600));
  scenario.longest_run = random.skewed(Duration::milliseconds(100), Duration::seconds(300));
  if (random.one_in(5)) scenario.longest_run = Duration::forever();
  scenario.remote = random.one_in(2);
  apply_theme(options.theme.value_or(options.ranks ? Theme::kMix : theme_of(seed)), scenario);
  if (scenario.remote) put_on_machines(scenario.spec);
  if (!scenario.remote) scenario.faults.power_loss = Duration::forever();
  scenario.snapshot_every = static_cast<std::uint64_t>(random.one_in(2) ? random.between(4, 60) : 1000);
  scenario.continues = continued_by(scenario);
  name_steps(scenario);
  return scenario;
}

}  // namespace monarch::sim
