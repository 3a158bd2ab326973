// From a gang that waits to its START: whose turn it is, what its hosts hold for it, what its ranks are told.

#include <algorithm>

#include "supervisor/core/crew/rank_env.h"
#include "supervisor/core/job/held_ports.h"
#include "supervisor/core/job/job_core.h"
#include "supervisor/core/spec/hostlist.h"
#include "supervisor/core/state/gang_life.h"
#include "transport/base/assert.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// What all ranks here agree on is written once.
void share_environment(Start& message) {
  if (message.ranks.empty()) return;
  for (const auto& variable : message.ranks.front().env) {
    const bool common = std::all_of(message.ranks.begin(), message.ranks.end(), [&](const RankStart& start) {
      const auto found = start.env.find(variable.first);
      return found != start.env.end() && found->second == variable.second;
    });
    if (common) message.env.insert(variable);
  }
  for (RankStart& start : message.ranks) {
    std::erase_if(start.env, [&](const auto& variable) { return message.env.contains(variable.first); });
  }
}

void share_program(Start& message) {
  if (message.ranks.empty()) return;
  message.program = message.ranks.front().program;
  message.workdir = message.ranks.front().workdir;
  for (RankStart& start : message.ranks) {
    if (start.program == message.program) start.program.clear();
    if (start.workdir == message.workdir) start.workdir.clear();
  }
}

// ", from step 190: 4 steps are done again"
std::string from_checkpoint(const GangState& state) {
  if (!state.commits.resumed) return "";
  const std::uint64_t step = state.commits.resumed->step;
  const std::uint64_t again = std::max(state.furthest.value_or(0), step) - step;
  return text(", from step ", step,
              again == 0 ? "" : text(": ", again, again == 1 ? " step is" : " steps are", " done again"));
}

}  // namespace

bool JobCore::is_ready(MeshId mesh) const {
  const MeshState& state = state_.meshes[mesh.value()];
  return std::all_of(state.gangs.begin(), state.gangs.end(), [&](const GangState& gang) {
    const bool over = gang.phase == GangPhase::kFailed || gang.phase == GangPhase::kDone;
    if (gang.was_ready || (over && gang.ever_ready) || gang.phase == GangPhase::kParked) return true;
    if (!mesh_spec(mesh).sidecar) return gang.phase == GangPhase::kDone;
    return gang.ever_ready && ended_unready(gang).has_value();
  });
}

JobCore::Gangs::Gangs(const JobCore& the_core, Crews& crews) : core(the_core) {
  for (std::uint32_t m = 0; m < core.spec_.meshes.size(); ++m) crews.serve(MeshId(m), *this);
}

std::optional<Reserve> JobCore::Gangs::reserve_of(const CrewKey& key, std::size_t host) const {
  Reserve message = core.reserve_message(key.mesh, key.gang, core.crew(key.mesh, key.gang).hosts[host]);
  if (!asks_for_something(message)) return std::nullopt;
  return message;
}

Start JobCore::Gangs::start_of(const CrewKey& key, std::size_t host) const {
  return core.start_message(key.mesh, key.gang, core.crew(key.mesh, key.gang).hosts[host]);
}

void JobCore::start_waiting_gangs() {
  if (starts_nothing()) return;
  // What cannot come up whole is about to fail: nothing more is begun.
  if (state_.phase == JobPhase::kStarting && !empty_slots().empty()) return;
  for (std::uint32_t m = 0; m < state_.meshes.size(); ++m) {
    const std::vector<MeshId>& first = stages_.waits_for(MeshId(m));
    if (!std::all_of(first.begin(), first.end(), [this](MeshId other) { return is_ready(other); })) continue;
    for (std::uint32_t g = 0; g < state_.meshes[m].gangs.size(); ++g) {
      if (state_.phase != JobPhase::kStarting && state_.phase != JobPhase::kRunning) return;
      const GangState& state = gang(MeshId(m), GangId(g));
      if (state.phase == GangPhase::kWaiting) {
        reserve_for(MeshId(m), GangId(g));
      } else if (crews_.all_held({MeshId(m), GangId(g)})) {
        start_gang(MeshId(m), GangId(g));  // its last answer came while another slot had no host
      }
    }
  }
}

void JobCore::reserve_for(MeshId mesh, GangId g) {
  if (!fence_done(mesh, g)) return;
  const std::vector<HostId> hosts = placement_.hosts_of(mesh, g);
  const bool free = std::all_of(hosts.begin(), hosts.end(), [&](HostId id) {
    return host(id).phase == HostPhase::kJoined && may_serve(id) && runs_beside(id, std::pair(mesh, g)).empty();
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
  const bool free = slot && (state_.phase == JobPhase::kStarting ? !has_started(*slot) : may_leave(*slot, mesh));
  if (free) return host_lacks(where, what);
  const auto failed = [](const HostState& state) { return state.failure.has_value(); };
  if (std::any_of(state_.hosts.begin(), state_.hosts.end(), failed)) host(where).failure = lack_of(where, what);
  fail_start(mesh, where, what);
}

void JobCore::fail_start(MeshId mesh, HostId where, const std::string& what) {
  bool given_up = false;
  for (std::uint32_t g = 0; mesh_spec(mesh).sidecar && g < state_.meshes[mesh.value()].gangs.size(); ++g) {
    GangState& state = gang(mesh, GangId(g));
    // Others have begun once it was ready: it is not started again, and decides nothing.
    const bool waits_here =
        state.phase == GangPhase::kReserving && placement_.range_of(mesh, GangId(g), where).count > 0;
    if (!waits_here || !state.ever_ready) continue;
    to(state, GangPhase::kFailed);
    crews_.forget({mesh, GangId(g)});
    state.failure.reset();
    say_of_gang(mesh, GangId(g), EventKind::kGangFailed, Severity::kWarning,
                text("is given up: ", hosts_[where.value()].name, ": ", what,
                     " [a sidecar does not decide: the job goes on without it]"));
    waits_due_ = given_up = true;
  }
  if (given_up) return;
  Verdict verdict;
  verdict.exit_code = kExitUnreachable;
  verdict.cause.kind = CauseKind::kStart;
  verdict.cause.host = hosts_[where.value()].name;
  verdict.cause.mesh = mesh_spec(mesh).name;
  verdict.cause.summary = text(verdict.cause.host, ": ", what);
  verdict.cause.rule = "what a mesh needs is not there: fail";
  verdict.reason = verdict.cause.summary;
  fail_job(std::move(verdict));
}

// What a mesh fixes is not chosen for another.
void JobCore::choose_from(const PortSpan& ports, Reserve& message) const {
  message.first_port = ports.first;
  message.last_port = ports.last;
  for (const MeshSpec& mesh : spec_.meshes) {
    for (const PortSpec& port : mesh.ports) {
      if (port.fixed && *port.fixed >= ports.first && *port.fixed <= ports.last) message.spared.push_back(*port.fixed);
    }
  }
}

Reserve JobCore::reserve_message(MeshId mesh, GangId g, HostId where) const {
  Reserve message = ports_to_hold({mesh_spec(mesh), placement_, crew(mesh, g)}, mesh, g, where);
  const HostInventory& has = state_.hosts[where.value()].inventory;
  const Share share = resources_.gpus_of(mesh, placement_.range_of(mesh, g, where));
  for (std::uint32_t i = share.first; i < share.first + share.count && i < has.gpus.size(); ++i) {
    message.gpus.push_back(has.gpus[i].uuid);
  }
  if (spec_.network.ports) choose_from(*spec_.network.ports, message);
  return message;
}

void JobCore::on(const PortsReserved& event) {
  const Reserved& reserved = event.reserved;
  // Else it was said again for a command that was sent twice, or is of an earlier generation.
  if (!awaits(event.host, reserved) || starts_nothing()) return;
  if (reserved.mesh.value() >= state_.meshes.size()) {
    standbys_.reserved(event.host, reserved);
    return settle_crews();
  }
  const CrewKey key{reserved.mesh, reserved.gang};
  const Reserve asked = reserve_message(reserved.mesh, reserved.gang, event.host);
  if (!reserved.error.empty() || reserved.ports.size() != asked.count + asked.fixed.size()) {
    const std::string what = reserved.error.empty() ? "it answered with another number of ports" : reserved.error;
    return lacks(
        reserved.mesh, event.host,
        text("could not reserve what mesh ", mesh_spec(reserved.mesh).name, " needs there: ", printable(what)));
  }
  crews_.holds(event.host, reserved);
  if (!empty_slots().empty()) {
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
    forget_owed(id);
    rank(id) = RankState{};
  }
  crews_.start({mesh, g});
  std::vector<std::string> names;
  for (const HostId id : placement_.hosts_of(mesh, g)) {
    names.push_back(hosts_[id.value()].name);
  }
  state.started_at = now_;
  EventDetails details = {{"hosts", fold_hostlist(names)}};
  if (state.commits.resumed) details.emplace_back("from_step", text(state.commits.resumed->step));
  if (state.furthest) details.emplace_back("furthest", text(*state.furthest));
  say_of_gang(mesh, g, EventKind::kGangStarting, Severity::kInfo,
              text("is starting, generation ", crew(mesh, g).generation.counter, from_checkpoint(state)), details);
}

std::uint16_t JobCore::port_of_rank(RankId id, std::size_t index) const {
  const MeshSpec& spec = mesh_spec(id.mesh);
  return port_of({spec, placement_, crew_with(id)}, id, index);
}

RankStart JobCore::rank_start(RankId id) const {
  const MeshSpec& spec = mesh_spec(id.mesh);
  const GangState& state = gang(id.mesh, spec.gang_of(id.rank));
  const Crew& crew = crew_with(id);
  const MeshTexts& texts = texts_[id.mesh.value()];
  const HostState& where = state_.hosts[placement_.host_of(id).value()];
  const HostInventory& inventory = where.inventory;
  const std::string& logs = where.log_directory.empty() ? options_.log_directory : where.log_directory;
  const auto port = [this](RankId whose, std::size_t index) { return port_of_rank(whose, index); };
  const RankEnvInput input{
      .spec = spec_,
      .placement = placement_,
      .hosts = hosts_,
      .job_id = options_.job_id,
      .generation = crew.generation,
      .restarts = state.restarts,
      .master_port = master_port(crew),
      .error_file = text(logs, "/", spec.name, "/", id.rank.value(), ".", crew.generation.counter, ".error.json"),
      .shell = options_.shell,
      .port = port,
      .texts = &texts,
      .resources = &resources_,
      .inventory = &inventory,
      .checkpoint = state.commits.resumed ? &*state.commits.resumed : nullptr,
      .restart_cause = state.failure ? state.failure->reason : ""};
  const ReferenceSources sources{
      .spec = spec_, .placement = placement_, .hosts = hosts_, .port = port, .shell = options_.shell};
  RankStart start{.rank = id};
  for (EnvVariable& variable : rank_environment(input, id)) {
    if (variable.origin == EnvOrigin::kDefault) continue;  // START's, for all of the mesh
    start.env.emplace(std::move(variable.name), std::move(variable.value));
  }
  for (const CompiledText& word : texts.argv) start.program.push_back(expand_for(word, sources, id).value);
  start.workdir = workdir_of(texts, sources, id);
  start.ports = ports_of({spec, placement_, crew}, id);
  if (spec.ready.kind == ReadyKind::kTcp) start.ready_port = start.ports[spec.ready.port];
  start.binding = resources_.binding_of(id, inventory);
  start.standby = standbys_.become(id);
  start.input = spec_.input && spec_.input->mesh == id.mesh && spec_.input->rank.value_or(id.rank) == id.rank;
  return start;
}

Start JobCore::start_message(MeshId mesh, GangId g, HostId where) const {
  const MeshSpec& spec = mesh_spec(mesh);
  Start message{.mesh = mesh, .mesh_name = spec.name, .gang = g, .generation = crew(mesh, g).generation};
  message.furthest = gang(mesh, g).furthest;
  message.traced_by = spec_.drills ? TracedBy::kAnybody : TracedBy::kKeeper;
  message.orphan = spec.supervision.orphan;
  message.orphan_ttl = spec.supervision.orphan_ttl;
  message.stop_signal = spec.stop.signal;
  message.stop_grace = spec.stop.grace;
  message.signal_to = spec.stop.to;
  message.log_max_bytes = spec_.logs.max_bytes;
  message.ready = spec.ready.kind;
  message.setup = spec.setup;
  message.defaults = defaults_of(spec);
  for (const RankId& id : placement_.ranks_of(mesh, g, where)) message.ranks.push_back(rank_start(id));
  share_environment(message);
  share_program(message);
  return message;
}

}  // namespace monarch
