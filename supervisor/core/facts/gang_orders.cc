#include "supervisor/core/facts/gang_orders.h"

#include <algorithm>
#include <utility>

#include "supervisor/core/crew/rank_env.h"
#include "supervisor/core/facts/claims.h"
#include "supervisor/core/facts/held_ports.h"
#include "supervisor/core/facts/hosts.h"
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

// What a mesh fixes is not chosen for another.
void choose_from(const CoreFacts& job, const PortSpan& ports, Reserve& message) {
  message.first_port = ports.first;
  message.last_port = ports.last;
  for (const MeshSpec& mesh : job.spec.meshes) {
    for (const PortSpec& port : mesh.ports) {
      if (port.fixed && *port.fixed >= ports.first && *port.fixed <= ports.last) message.spared.push_back(*port.fixed);
    }
  }
}

std::uint16_t port_of_rank(const CoreFacts& job, RankId id, std::size_t index) {
  const MeshSpec& spec = job.mesh(id.mesh);
  return port_of({spec, job.placement, job.crew_with(id)}, id, index);
}

// Of a standby gang that has its gang's place.
std::optional<Incarnation> who_becomes(const CoreFacts& job, RankId id) {
  const GangId g = job.mesh(id.mesh).gang_of(id.rank);
  const std::optional<std::uint32_t> s = standby_of(job, id.mesh, g);
  if (!s) return std::nullopt;
  const CrewKey key{standby_mesh(job.spec, id.mesh), GangId(*s)};
  const Crew& crew = job.crew(key.mesh, key.gang);
  const std::uint32_t index = id.rank.value() - job.placement.range_of(id.mesh, g).first;
  if (!lives(crew.members[index].stage)) return std::nullopt;
  return Incarnation{crew_rank(job.spec, {key, index}), crew.generation};
}

RankStart rank_start(const CoreFacts& job, RankId id) {
  const MeshSpec& spec = job.mesh(id.mesh);
  const GangState& state = job.gang(id.mesh, spec.gang_of(id.rank));
  const Crew& crew = job.crew_with(id);
  const MeshTexts& texts = job.texts[id.mesh.value()];
  const HostState& where = job.state.hosts[job.placement.host_of(id).value()];
  const HostInventory& inventory = where.inventory;
  const std::string& logs = where.log_directory.empty() ? job.options.log_directory : where.log_directory;
  const auto port = [&job](RankId whose, std::size_t index) { return port_of_rank(job, whose, index); };
  const RankEnvInput input{
      .spec = job.spec,
      .placement = job.placement,
      .hosts = job.hosts,
      .job_id = job.options.job_id,
      .generation = crew.generation,
      .restarts = state.restarts,
      .master_port = master_port(crew),
      .error_file = text(logs, "/", spec.name, "/", id.rank.value(), ".", crew.generation.counter, ".error.json"),
      .shell = job.options.shell,
      .port = port,
      .texts = &texts,
      .resources = &job.resources,
      .inventory = &inventory,
      .checkpoint = state.commits.resumed ? &*state.commits.resumed : nullptr,
      .restart_cause = state.failure ? state.failure->reason : ""};
  const ReferenceSources sources{
      .spec = job.spec, .placement = job.placement, .hosts = job.hosts, .port = port, .shell = job.options.shell};
  RankStart start{.rank = id};
  for (EnvVariable& variable : rank_environment(input, id)) {
    if (variable.origin == EnvOrigin::kDefault) continue;  // START's, for all of the mesh
    start.env.emplace(std::move(variable.name), std::move(variable.value));
  }
  for (const CompiledText& word : texts.argv) start.program.push_back(expand_for(word, sources, id).value);
  start.workdir = workdir_of(texts, sources, id);
  if (const SlotClaim* const claim = claim_of(job, id.mesh, spec.gang_of(id.rank)); claim != nullptr) {
    if (!claim->what.program.empty()) start.program = claim->what.program;
    if (!claim->what.workdir.empty()) start.workdir = claim->what.workdir;
    for (auto& [name, value] : env_of(*claim, id.rank)) start.env.insert_or_assign(name, std::move(value));
  }
  start.ports = ports_of({spec, job.placement, crew}, id);
  if (spec.ready.kind == ReadyKind::kTcp) start.ready_port = start.ports[spec.ready.port];
  start.binding = job.resources.binding_of(id, inventory);
  start.standby = who_becomes(job, id);
  start.input = job.spec.input && job.spec.input->mesh == id.mesh && job.spec.input->rank.value_or(id.rank) == id.rank;
  return start;
}

}  // namespace

GangOrders::GangOrders(const CoreFacts& job, Crews& crews) : job_(job) {
  for (std::uint32_t m = 0; m < job.spec.meshes.size(); ++m) crews.serve(MeshId(m), *this);
}

std::optional<Reserve> GangOrders::reserve_of(const CrewKey& key, std::size_t host) const {
  Reserve message = reserve_message(job_, key, job_.crew(key.mesh, key.gang).hosts[host]);
  if (!asks_for_something(message)) return std::nullopt;
  return message;
}

Reserve reserve_message(const CoreFacts& job, const CrewKey& key, HostId where) {
  const auto& [mesh, g] = key;
  Reserve message = ports_to_hold({job.mesh(mesh), job.placement, job.crew(mesh, g)}, mesh, g, where);
  const HostInventory& has = job.host(where).inventory;
  const Share share = job.resources.gpus_of(mesh, job.placement.range_of(mesh, g, where));
  for (std::uint32_t i = share.first; i < share.first + share.count && i < has.gpus.size(); ++i) {
    message.gpus.push_back(has.gpus[i].uuid);
  }
  if (job.spec.network.ports) choose_from(job, *job.spec.network.ports, message);
  return message;
}

Start GangOrders::start_of(const CrewKey& key, std::size_t host) const {
  const CoreFacts& job = job_;
  const auto& [mesh, g] = key;
  const HostId where = job.crew(mesh, g).hosts[host];
  const MeshSpec& spec = job.mesh(mesh);
  Start message{.mesh = mesh, .mesh_name = spec.name, .gang = g, .generation = job.crew(mesh, g).generation};
  message.furthest = job.gang(mesh, g).furthest;
  message.traced_by = job.spec.drills ? TracedBy::kAnybody : TracedBy::kKeeper;
  message.orphan = spec.supervision.orphan;
  message.orphan_ttl = spec.supervision.orphan_ttl;
  message.stop_signal = spec.stop.signal;
  message.stop_grace = spec.stop.grace;
  message.signal_to = spec.stop.to;
  message.log_max_bytes = job.spec.logs.max_bytes;
  message.ready = spec.ready.kind;
  message.setup = spec.setup;
  message.defaults = defaults_of(spec);
  for (const RankId& id : job.placement.ranks_of(mesh, g, where)) message.ranks.push_back(rank_start(job, id));
  share_environment(message);
  share_program(message);
  return message;
}

}  // namespace monarch
