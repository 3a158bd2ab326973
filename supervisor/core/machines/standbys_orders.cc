// Standbys, what their hosts are told: what is to be held there, and their START.

#include "supervisor/core/crew/rank_env.h"
#include "supervisor/core/machines/standbys.h"
#include "transport/base/text.h"

namespace monarch {

std::string Standbys::name_of(const CrewKey& key) const {
  return text("standby ", key.gang.value(), " of ", basis_.mesh(*mesh_of_standby(basis_.spec, key.mesh)).name);
}

// Its ranks' GPUs, as its gang's would be reserved there: another job must not get them meanwhile.
std::optional<Reserve> Standbys::reserve_of(const CrewKey& key, std::size_t host) const {
  const MeshId m = *mesh_of_standby(basis_.spec, key.mesh);
  const Crew& crew = crews_.at(key);
  const std::uint32_t per_host = basis_.mesh(m).per_host();
  Reserve message{.mesh = key.mesh, .gang = key.gang, .generation = crew.generation, .count = 0};
  const RankRange here{.first = static_cast<std::uint32_t>(host) * per_host, .count = per_host};
  const std::vector<Gpu>& has = basis_.host(crew.hosts[host]).inventory.gpus;
  const Share share = basis_.resources.gpus_of(m, here);
  for (std::uint32_t i = share.first; i < share.first + share.count && i < has.size(); ++i) {
    message.gpus.push_back(has[i].uuid);
  }
  if (message.gpus.empty()) return std::nullopt;
  return message;
}

Start Standbys::start_of(const CrewKey& key, std::size_t host) const {
  const MeshId m = *mesh_of_standby(basis_.spec, key.mesh);
  const MeshSpec& spec = basis_.mesh(m);
  const Crew& crew = crews_.at(key);
  const MeshTexts& texts = basis_.texts[m.value()];
  Start message{.mesh = key.mesh,
                .mesh_name = log_mesh_names(basis_.spec)[key.mesh.value()],
                .gang = key.gang,
                .generation = crew.generation};
  const ReferenceSources sources = basis_.sources();
  const RankId any{m, Rank(0)};  // validated: no word of these depends on the rank
  for (const CompiledText& word : texts.argv) message.program.push_back(expand_for(word, sources, any).value);
  message.workdir = workdir_of(texts, sources, any);
  message.orphan = spec.supervision.orphan;
  message.orphan_ttl = spec.supervision.orphan_ttl;
  message.stop_signal = spec.stop.signal;
  message.stop_grace = kCrewGrace;
  message.signal_to = spec.stop.to;
  message.log_max_bytes = basis_.spec.logs.max_bytes;
  message.setup = spec.setup;
  message.defaults = defaults_of(spec);
  message.env = {{"MONARCH_JOB_ID", basis_.options.job_id}, {"MONARCH_MESH", spec.name}};  // all that a setup is told
  message.standby = true;
  message.traced_by = basis_.spec.drills ? TracedBy::kAnybody : TracedBy::kKeeper;
  const HostInventory& inventory = basis_.host(crew.hosts[host]).inventory;
  const RankEnvInput input{.spec = basis_.spec,
                           .placement = basis_.placement,
                           .hosts = basis_.hosts,
                           .job_id = basis_.options.job_id,
                           .generation = crew.generation,
                           .error_file = {},
                           .shell = basis_.options.shell,
                           .texts = &texts,
                           .resources = &basis_.resources,
                           .inventory = &inventory};
  for (std::uint32_t i = 0; i < crew.members.size(); ++i) {
    if (i / spec.per_host() != host || !lives(crew.members[i].stage)) continue;
    const RankId like{m, Rank(i)};
    RankStart start{.rank = crew_rank(basis_.spec, {key, i})};
    for (EnvVariable& variable : standby_environment(input, like, crew.hosts[host], key.gang.value())) {
      start.env.emplace(std::move(variable.name), std::move(variable.value));
    }
    start.binding = basis_.resources.binding_of(like, inventory);
    message.ranks.push_back(std::move(start));
  }
  return message;
}

}  // namespace monarch
