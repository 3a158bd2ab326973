#include "supervisor/core/crew/rank_env.h"

#include <algorithm>
#include <cctype>

#include "supervisor/core/spec/expansion.h"
#include "transport/base/assert.h"
#include "transport/base/launcher_variables.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// As programs that read a number there can take it.
constexpr std::uint32_t kUnlimitedRestarts = 1'000'000;

class Environment {
 public:
  void set(EnvOrigin origin, const std::string& name, std::string value) {
    set({.name = name, .value = std::move(value), .origin = origin});
  }
  void set(EnvOrigin origin, const std::string& name, std::uint64_t value) { set(origin, name, text(value)); }
  void set(EnvVariable variable) { variables_[variable.name] = std::move(variable); }
  void set_default(EnvVariable variable) { variables_.try_emplace(variable.name, std::move(variable)); }
  std::vector<EnvVariable> take() {
    std::vector<EnvVariable> all;
    all.reserve(variables_.size());
    for (auto& [name, variable] : variables_) all.push_back(std::move(variable));
    return all;
  }

 private:
  std::map<std::string, EnvVariable> variables_;
};

// Where a rank stands in its gang, in torchrun's terms.
struct GangPosition {
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  std::uint32_t local_rank = 0;
  std::uint32_t local_size = 0;
  std::uint32_t group_rank = 0;  // index of the host within the gang
  std::uint32_t group_size = 0;  // hosts of the gang
  HostId first_host;
};

GangPosition position_of(const Placement& placement, const MeshSpec& mesh, RankId rank) {
  const GangId gang = mesh.gang_of(rank.rank);
  const RankRange all = placement.range_of(rank.mesh, gang);
  const RankRange here = placement.range_of(rank.mesh, gang, placement.host_of(rank));
  const RankId first{rank.mesh, Rank(all.first)};
  const RankId last{rank.mesh, Rank(all.first + all.count - 1)};
  return {.rank = rank.rank.value() - all.first,
          .size = all.count,
          .local_rank = rank.rank.value() - here.first,
          .local_size = here.count,
          .group_rank = placement.host_index(rank) - placement.host_index(first),
          .group_size = placement.host_index(last) - placement.host_index(first) + 1,
          .first_host = placement.host_of(first)};
}

std::string upper(const std::string& name) {
  std::string out = name;
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::toupper(c); });
  return out;
}

void set_gang_variables(Environment& env, const RankEnvInput& input, const MeshSpec& mesh, const GangPosition& at) {
  const auto origin = EnvOrigin::kGang;
  env.set(origin, "RANK", at.rank);
  env.set(origin, "LOCAL_RANK", at.local_rank);
  env.set(origin, "WORLD_SIZE", at.size);
  env.set(origin, "LOCAL_WORLD_SIZE", at.local_size);
  env.set(origin, "GROUP_RANK", at.group_rank);
  env.set(origin, "GROUP_WORLD_SIZE", at.group_size);
  env.set(origin, "NODE_RANK", at.group_rank);
  env.set(origin, "ROLE_RANK", at.rank);
  env.set(origin, "ROLE_WORLD_SIZE", at.size);
  env.set(origin, "ROLE_NAME", mesh.name);
  const std::string& address = input.hosts[at.first_host.value()].address;
  env.set({.name = "MASTER_ADDR", .value = address, .origin = origin, .at_start = address.empty()});
  env.set(
      {.name = "MASTER_PORT", .value = text(input.master_port), .origin = origin, .at_start = input.master_port == 0});
  env.set(origin, "TORCHELASTIC_RESTART_COUNT", input.restarts);
  env.set(origin, "TORCHELASTIC_MAX_RESTARTS", mesh.supervision.restart.max.value_or(kUnlimitedRestarts));
  env.set(origin, "TORCHELASTIC_RUN_ID", input.job_id);
  env.set(origin, "TORCHELASTIC_ERROR_FILE", input.error_file);
  env.set(origin, "TORCHELASTIC_USE_AGENT_STORE", std::string("False"));
  if (!input.restart_cause.empty()) env.set(origin, std::string(kRestartCauseVariable), input.restart_cause);
}

void set_calls(Environment& env, const JobSpec& spec, const MeshSpec& mesh) {
  if (spec.calls) {
    const bool trusts = mesh.claims.trusts_job;
    env.set(EnvOrigin::kMesh, std::string(kTrustVariable), std::string(trusts ? "job" : "host"));
  }
  if (!spec.tensors) return;
  std::vector<std::string> ways;
  if (spec.tensors->shm) ways.emplace_back("shm");
  if (spec.tensors->verbs) ways.emplace_back("verbs");
  if (spec.tensors->tcp) ways.emplace_back("tcp");
  if (!spec.tensors->pin) ways.emplace_back(kUnpinnedWord);
  env.set(EnvOrigin::kMesh, std::string(kTensorsVariable), join(ways, ","));
}

void set_mesh_variables(Environment& env, const RankEnvInput& input, const MeshSpec& mesh, RankId rank) {
  const auto origin = EnvOrigin::kMesh;
  env.set(origin, "REPLICA_GROUP_ID", mesh.gang_of(rank.rank).value());
  env.set(origin, "NUM_REPLICA_GROUPS", mesh.gangs());
  env.set(origin, "MONARCH_JOB_ID", input.job_id);
  env.set(origin, "MONARCH_MESH", mesh.name);
  env.set(origin, "MONARCH_RANK", rank.rank.value());
  env.set(origin, "MONARCH_WORLD_SIZE", mesh.size());
  env.set(origin, "MONARCH_GENERATION", input.generation.counter);
  env.set(origin, "MONARCH_HOST", input.hosts[input.placement.host_of(rank).value()].name);
  set_calls(env, input.spec, mesh);
  const std::vector<std::uint32_t> coordinates = mesh.coordinates_of(rank.rank);
  for (std::size_t i = 0; i < mesh.dims.size(); ++i) {
    env.set(origin, text("MONARCH_RANK_", upper(mesh.dims[i].name)), coordinates[i]);
    env.set(origin, text("MONARCH_SIZE_", upper(mesh.dims[i].name)), mesh.dims[i].size);
  }
}

// What its gang goes on from; fixed here, so that all ranks of a generation agree on it.
void set_committed(Environment& env, const RankEnvInput& input, const GangPosition& at) {
  if (input.checkpoint == nullptr) return;
  const auto origin = EnvOrigin::kGang;
  env.set(origin, "MONARCH_COMMITTED_STEP", input.checkpoint->step);
  env.set(origin, "MONARCH_COMMITTED_GENERATION", input.checkpoint->generation.counter);
  env.set(origin, "MONARCH_COMMITTED_WHAT", input.checkpoint->what[at.rank]);
}

void set_ports(Environment& env, const RankEnvInput& input, const MeshSpec& mesh, RankId rank) {
  for (std::size_t i = 0; i < mesh.ports.size(); ++i) {
    const std::uint16_t port = mesh.ports[i].fixed ? *mesh.ports[i].fixed : input.port ? input.port(rank, i) : 0;
    env.set({.name = text("MONARCH_PORT_", upper(mesh.ports[i].name)),
             .value = text(port),
             .origin = EnvOrigin::kPorts,
             .at_start = port == 0});
  }
}

// A rank with several GPUs sees its own alone: `cuda:$LOCAL_RANK` would name a neighbour's.
void set_gpus(Environment& env, const RankEnvInput& input, const MeshSpec& mesh, RankId rank) {
  if (!mesh.resources.gpus) return;
  EnvVariable visible{.name = "CUDA_VISIBLE_DEVICES", .value = {}, .origin = EnvOrigin::kGpus};
  if (*mesh.resources.gpus > 0 && (input.resources == nullptr || input.inventory == nullptr)) {
    visible.at_start = true;
  } else if (*mesh.resources.gpus > 0) {
    const bool of_gang = mesh.resources.visible == GpuVisibility::kGang && *mesh.resources.gpus == 1;
    const Share share =
        of_gang ? input.resources->gpus_of(rank.mesh, input.placement.range_of(rank.mesh, mesh.gang_of(rank.rank),
                                                                               input.placement.host_of(rank)))
                : input.resources->gpus_of(rank);
    std::vector<std::string> seen;
    for (std::uint32_t i = share.first; i < share.first + share.count && i < input.inventory->gpus.size(); ++i) {
      seen.push_back(text(input.inventory->gpus[i].index));
    }
    visible.value = join(seen, ",");
  }
  env.set(std::move(visible));
  // They are numbered by their places on the bus; CUDA by itself puts the fastest first.
  if (*mesh.resources.gpus > 0) {
    env.set({.name = "CUDA_DEVICE_ORDER", .value = "PCI_BUS_ID", .origin = EnvOrigin::kGpus});
  }
}

void set_spec_variables(Environment& env, const RankEnvInput& input, RankId rank) {
  const ReferenceSources sources{
      .spec = input.spec, .placement = input.placement, .hosts = input.hosts, .port = input.port, .shell = input.shell};
  const MeshTexts own = input.texts != nullptr ? MeshTexts{} : compile_texts(input.spec, rank.mesh);
  for (const auto& [name, value] : (input.texts != nullptr ? *input.texts : own).env) {
    ExpandedText expanded = expand_for(value, sources, rank);
    env.set({.name = name,
             .value = std::move(expanded.value),
             .origin = EnvOrigin::kSpec,
             .at_start = expanded.open,
             .secret = expanded.secret});
  }
}

// Virtual hosts share this machine: their addresses are loopback's, and so is the interface that reaches them. On
// others the libraries look for one themselves unless the spec names it.
void set_interface(Environment& env, const JobSpec& spec) {
  const std::string interface = spec.launch.facts().one_machine ? "lo" : spec.network.interface;
  if (interface.empty()) return;
  for (const char* name : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}) {
    env.set_default({.name = name, .value = interface, .origin = EnvOrigin::kNetwork});
  }
}

}  // namespace

std::vector<EnvVariable> default_variables(const MeshSpec& mesh) {
  std::vector<EnvVariable> defaults = {
      {.name = "PYTHONUNBUFFERED", .value = "1", .origin = EnvOrigin::kDefault, .why = "output is seen at once"}};
  if (mesh.per_host() > 1) {
    defaults.push_back(
        {.name = "OMP_NUM_THREADS", .value = "1", .origin = EnvOrigin::kDefault, .why = "several ranks on a host"});
  }
  return defaults;
}

std::map<std::string, std::string> defaults_of(const MeshSpec& mesh) {
  std::map<std::string, std::string> values;
  for (const EnvVariable& variable : default_variables(mesh)) values.emplace(variable.name, variable.value);
  return values;
}

std::vector<EnvVariable> rank_environment(const RankEnvInput& input, RankId rank) {
  MONARCH_ASSERT(rank.mesh.value() < input.spec.meshes.size());
  MONARCH_ASSERT_BECAUSE(input.generation.counter > 0, "I4: generations count from 1");
  const MeshSpec& mesh = input.spec.meshes[rank.mesh.value()];
  Environment env;
  const GangPosition at = position_of(input.placement, mesh, rank);
  set_gang_variables(env, input, mesh, at);
  set_committed(env, input, at);
  set_mesh_variables(env, input, mesh, rank);
  set_ports(env, input, mesh, rank);
  set_gpus(env, input, mesh, rank);
  for (const auto& [name, value] : input.shell) {
    if (is_passed(mesh, name)) env.set({.name = name, .value = value, .origin = EnvOrigin::kPassed, .secret = true});
  }
  set_spec_variables(env, input, rank);
  set_interface(env, input.spec);
  for (EnvVariable& variable : default_variables(mesh)) env.set_default(std::move(variable));
  return env.take();
}

std::vector<EnvVariable> standby_environment(const RankEnvInput& input, RankId like, HostId host,
                                             std::uint32_t standby) {
  const MeshSpec& mesh = input.spec.meshes[like.mesh.value()];
  Environment env;
  env.set(EnvOrigin::kMesh, "MONARCH_JOB_ID", input.job_id);
  env.set(EnvOrigin::kMesh, "MONARCH_MESH", mesh.name);
  env.set(EnvOrigin::kMesh, "MONARCH_HOST", input.hosts[host.value()].name);
  env.set(EnvOrigin::kMesh, std::string(kStandbyVariable), standby);
  set_calls(env, input.spec, mesh);
  set_gpus(env, input, mesh, like);
  for (const auto& [name, value] : input.shell) {
    if (is_passed(mesh, name)) env.set({.name = name, .value = value, .origin = EnvOrigin::kPassed, .secret = true});
  }
  MONARCH_ASSERT(input.texts != nullptr);
  const ReferenceSources sources{
      .spec = input.spec, .placement = input.placement, .hosts = input.hosts, .port = nullptr, .shell = input.shell};
  for (const auto& [name, value] : input.texts->env) {
    if (!depends_on_place(value)) env.set(EnvOrigin::kSpec, name, expand_for(value, sources, like).value);
  }
  set_interface(env, input.spec);
  return env.take();
}

}  // namespace monarch
