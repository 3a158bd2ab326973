// Standby gangs, what their hosts are told: what is to be held there, their START and STOP, and what of it was lost.

#include <algorithm>
#include <utility>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/job/rank_env.h"
#include "transport/base/text.h"

namespace monarch {

// Its ranks' GPUs, as its gang's would be reserved there: another job must not get them meanwhile.
Reserve JobCore::standby_reserve_message(MeshId m, std::uint32_t s, std::size_t host_index) const {
  const StandbyState& standby = state_.meshes[m.value()].standby[s];
  const std::uint32_t per_host = mesh_spec(m).per_host();
  Reserve message{
      .mesh = standby_rank(spec_, {m, s, 0}).mesh, .gang = GangId(s), .generation = standby.generation, .count = 0};
  const RankRange here{.first = static_cast<std::uint32_t>(host_index) * per_host, .count = per_host};
  const std::vector<Gpu>& has = state_.hosts[standby.hosts[host_index].value()].inventory.gpus;
  const Share share = resources_.gpus_of(m, here);
  for (std::uint32_t i = share.first; i < share.first + share.count && i < has.size(); ++i) {
    message.gpus.push_back(has[i].uuid);
  }
  return message;
}

// Nothing of it was started: a later generation, which needs nothing, takes the place of what is held for it.
void JobCore::let_go_of_reservation(MeshId m, std::uint32_t s) {
  StandbyState& standby = state_.meshes[m.value()].standby[s];
  ++standby.generation.counter;
  for (const HostId id : standby.hosts) {
    actions_.emplace_back(SendReserve{id, Reserve{.mesh = standby_rank(spec_, {m, s, 0}).mesh,
                                                  .gang = GangId(s),
                                                  .generation = standby.generation,
                                                  .count = 0}});
  }
}

Start JobCore::standby_start_message(MeshId m, std::uint32_t s, std::size_t host_index) const {
  const MeshSpec& spec = mesh_spec(m);
  const StandbyState& standby = state_.meshes[m.value()].standby[s];
  const HostId where = standby.hosts[host_index];
  const RankId first = standby_rank(spec_, {m, s, 0});
  const MeshTexts& texts = texts_[m.value()];
  Start message{.mesh = first.mesh,
                .mesh_name = log_mesh_names(spec_)[first.mesh.value()],
                .gang = GangId(s),
                .generation = standby.generation};
  const ReferenceSources sources{
      .spec = spec_, .placement = placement_, .hosts = hosts_, .port = nullptr, .shell = options_.shell};
  const RankId any{m, Rank(0)};  // validated: no word of these depends on the rank
  for (const CompiledText& word : texts.argv) message.program.push_back(expand_for(word, sources, any).value);
  message.workdir = workdir_of(texts, sources, any);
  message.orphan = spec.supervision.orphan;
  message.orphan_ttl = spec.supervision.orphan_ttl;
  message.stop_signal = spec.stop.signal;
  message.stop_grace = kStandbyGrace;
  message.signal_to = spec.stop.to;
  message.log_max_bytes = spec_.logs.max_bytes;
  message.setup = spec.setup;
  message.defaults = defaults_of(spec);
  message.env = {{"MONARCH_JOB_ID", options_.job_id}, {"MONARCH_MESH", spec.name}};  // all that a setup is told
  message.standby = true;
  message.traced_by = spec_.drills ? TracedBy::kAnybody : TracedBy::kKeeper;
  const HostInventory& inventory = state_.hosts[where.value()].inventory;
  const RankEnvInput input{.spec = spec_,
                           .placement = placement_,
                           .hosts = hosts_,
                           .job_id = options_.job_id,
                           .generation = standby.generation,
                           .error_file = {},
                           .shell = options_.shell,
                           .texts = &texts,
                           .resources = &resources_,
                           .inventory = &inventory};
  for (std::uint32_t i = 0; i < standby.ranks.size(); ++i) {
    if (i / spec.per_host() != host_index || !lives(standby.ranks[i].stage)) continue;
    const RankId like{m, Rank(i)};
    RankStart start{.rank = standby_rank(spec_, {m, s, i})};
    for (EnvVariable& variable : standby_environment(input, like, where, s)) {
      start.env.emplace(std::move(variable.name), std::move(variable.value));
    }
    start.binding = resources_.binding_of(like, inventory);
    message.ranks.push_back(std::move(start));
  }
  return message;
}

Stop JobCore::standby_stop_message(MeshId m, std::uint32_t s, std::size_t host_index) const {
  const StandbyState& standby = state_.meshes[m.value()].standby[s];
  Stop message{.ranks = {}, .generation = standby.generation, .signal = mesh_spec(m).stop.signal};
  message.grace = state_.kill_ordered ? Duration::zero() : kStandbyGrace;
  for (std::uint32_t i = 0; i < standby.ranks.size(); ++i) {
    if (i / mesh_spec(m).per_host() == host_index && lives(standby.ranks[i].stage)) {
      message.ranks.push_back(standby_rank(spec_, {m, s, i}));
    }
  }
  return message;
}

void JobCore::add_outstanding_of_standby(HostId id, const std::vector<RankReport>& reported,
                                         std::vector<Action>& missing) const {
  each_standby([&](MeshId m, std::uint32_t s) {
    const StandbyState& standby = state_.meshes[m.value()].standby[s];
    const auto here = std::find(standby.hosts.begin(), standby.hosts.end(), id);
    if (here == standby.hosts.end()) return;
    const auto h = static_cast<std::size_t>(here - standby.hosts.begin());
    const bool reserves = standby.phase == StandbyPhase::kReserving && !holds_for_standby(standby, id);
    if (reserves) missing.emplace_back(SendReserve{id, standby_reserve_message(m, s, h)});
    bool start = false;
    bool stop = false;
    for (std::uint32_t i = 0; i < standby.ranks.size(); ++i) {
      if (i / mesh_spec(m).per_host() != h) continue;
      const RankId rank = standby_rank(spec_, {m, s, i});
      const auto found = std::find_if(reported.begin(), reported.end(), [&](const RankReport& report) {
        return report.process.rank == rank && report.process.generation == standby.generation;
      });
      const bool unheard_of = found == reported.end();
      start = start || (standby.phase == StandbyPhase::kStarting && unheard_of &&
                        standby.ranks[i].stage == RankStage::kStarting);
      stop = stop || (standby.phase == StandbyPhase::kStopping && lives(standby.ranks[i].stage) &&
                      (unheard_of || found->phase <= RankPhase::kRunning));
    }
    if (start) missing.emplace_back(SendStart{id, standby_start_message(m, s, h)});
    if (stop) missing.emplace_back(SendStop{id, standby_stop_message(m, s, h)});
  });
}

}  // namespace monarch
