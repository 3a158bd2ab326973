#include "supervisor/core/spec/job_spec.h"

#include <algorithm>

#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

std::uint32_t product(const std::vector<Dimension>& dims, std::size_t begin, std::size_t end) {
  std::uint32_t size = 1;
  for (std::size_t i = begin; i < end; ++i) size *= dims[i].size;
  return size;
}

}  // namespace

std::string base_directory(const JobSpec& spec) {
  if (!spec.workspace) return spec.directory;
  return spec.launch.facts().one_machine ? spec.workspace->path : ".";
}

std::uint32_t MeshSpec::size() const { return product(dims, 0, dims.size()); }

std::uint32_t MeshSpec::per_host() const { return product(dims, dims.size() - per_host_dims, dims.size()); }

std::uint32_t MeshSpec::hosts() const { return size() / per_host(); }

std::uint32_t MeshSpec::gangs() const {
  switch (gang.scope) {
    case GangScope::kAll: return 1;
    case GangScope::kEach: return size();
    case GangScope::kDimension: return product(dims, 0, gang.along + 1);
  }
  return 1;
}

GangId MeshSpec::gang_of(Rank rank) const { return GangId(rank.value() / (size() / gangs())); }

std::vector<std::uint32_t> MeshSpec::coordinates_of(Rank rank) const {
  std::vector<std::uint32_t> coordinates(dims.size());
  std::uint32_t rest = rank.value();
  for (std::size_t i = dims.size(); i-- > 0;) {
    coordinates[i] = rest % dims[i].size;
    rest /= dims[i].size;
  }
  return coordinates;
}

std::uint32_t JobSpec::hosts_needed() const {
  std::uint32_t hosts = 0;
  for (const MeshSpec& mesh : meshes) hosts += mesh.like ? 0 : mesh.hosts();
  return hosts;
}

const LaunchFacts& Launch::facts() const {
  static const LaunchFacts kThisMachine;
  return held_ ? held_->facts : kThisMachine;
}

std::optional<SignalTo> signal_to(std::string_view word) {
  if (word == "auto") return SignalTo::kAuto;
  if (word == "rank") return SignalTo::kRank;
  if (word == "group") return SignalTo::kGroup;
  return std::nullopt;
}

std::string_view to_text(OnPreempt action) {
  switch (action) {
    case OnPreempt::kStop: return "stop";
    case OnPreempt::kRequeue: return "requeue";
    case OnPreempt::kSuccessor: return "successor";
  }
  return "stop";
}

std::uint32_t JobSpec::spares() const { return launch.facts().spares; }

const PrepareSpec& JobSpec::prepare() const { return launch.facts().prepare; }

namespace {

std::uint32_t mesh_count(const JobSpec& spec) { return static_cast<std::uint32_t>(spec.meshes.size()); }

std::uint32_t members_per_host(const JobSpec& spec, MeshId mesh) {
  const MeshId like = mesh_of_standby(spec, mesh).value_or(mesh);
  return like.value() < mesh_count(spec) ? spec.meshes[like.value()].per_host() : 1;
}

}  // namespace

MeshId prepare_mesh(const JobSpec& spec) { return MeshId(mesh_count(spec)); }

MeshId standby_mesh(const JobSpec& spec, MeshId of) { return MeshId(mesh_count(spec) + 1 + of.value()); }

std::optional<MeshId> mesh_of_standby(const JobSpec& spec, MeshId mesh) {
  const std::uint32_t first = mesh_count(spec) + 1;
  if (mesh.value() < first || mesh.value() - first >= mesh_count(spec)) return std::nullopt;
  return MeshId(mesh.value() - first);
}

std::uint32_t crew_size(const JobSpec& spec, MeshId mesh) {
  if (mesh.value() < mesh_count(spec)) return spec.meshes[mesh.value()].gang_size();
  const auto of = mesh_of_standby(spec, mesh);
  return of ? spec.meshes[of->value()].gang_size() : 1;
}

std::uint32_t crew_count(const JobSpec& spec, MeshId mesh) {
  if (mesh.value() < mesh_count(spec)) return spec.meshes[mesh.value()].gangs();
  if (const auto of = mesh_of_standby(spec, mesh)) return spec.meshes[of->value()].standby_gangs;
  return mesh == prepare_mesh(spec) && !spec.prepare().program.empty() ? spec.pool_size() : 0;
}

RankId crew_rank(const JobSpec& spec, const CrewPlace& place) {
  return {place.key.mesh, Rank(place.key.gang.value() * crew_size(spec, place.key.mesh) + place.index)};
}

std::size_t crew_host(const JobSpec& spec, const CrewPlace& place) {
  const std::uint32_t per_host = members_per_host(spec, place.key.mesh);
  const std::uint32_t first = place.key.gang.value() * crew_size(spec, place.key.mesh);
  return (first + place.index) / per_host - first / per_host;
}

std::pair<std::uint32_t, std::uint32_t> crew_members_on(const JobSpec& spec, const CrewKey& key, std::size_t host) {
  const std::uint32_t per_host = members_per_host(spec, key.mesh);
  const std::uint32_t size = crew_size(spec, key.mesh);
  const std::uint32_t first = key.gang.value() * size;
  const std::uint32_t here = (first / per_host + static_cast<std::uint32_t>(host)) * per_host;
  return {std::max(here, first) - first, std::min(here + per_host, first + size) - first};
}

std::optional<CrewPlace> crew_of(const JobSpec& spec, RankId rank) {
  const std::uint32_t size = crew_size(spec, rank.mesh);
  if (rank.rank.value() / size >= crew_count(spec, rank.mesh)) return std::nullopt;
  return CrewPlace{{rank.mesh, GangId(rank.rank.value() / size)}, rank.rank.value() % size};
}

std::vector<std::string> log_mesh_names(const JobSpec& spec) {
  std::vector<std::string> names;
  for (const MeshSpec& mesh : spec.meshes) names.push_back(mesh.name);
  names.emplace_back(kPrepareMesh);
  for (const MeshSpec& mesh : spec.meshes) names.push_back(text("standby-", mesh.name));
  return names;
}

bool JobSpec::supervised_away() const { return supervisor_on == SupervisorPlace::kFirst && launch.facts().outlasts; }

std::uint32_t JobSpec::hosts_on_request() const {
  const bool replaces = std::any_of(meshes.begin(), meshes.end(),
                                    [](const MeshSpec& mesh) { return mesh.supervision.reallocate.max != 0U; });
  if (!replaces || launch.facts().on_request == 0) return 0;
  const std::uint32_t hosts = launch.facts().pool.value_or(hosts_needed() + spares());
  return std::min(launch.facts().on_request, limits::kHostsPerJob - std::min(hosts, limits::kHostsPerJob));
}

std::uint32_t JobSpec::pool_size() const {
  return launch.facts().pool.value_or(hosts_needed() + spares()) + hosts_on_request();
}

std::vector<RankId> ranks_with_input(const JobSpec& spec) {
  std::vector<RankId> ranks;
  if (!spec.input) return ranks;
  const MeshId mesh = spec.input->mesh;
  if (spec.input->rank) return {{mesh, *spec.input->rank}};
  for (std::uint32_t rank = 0; rank < spec.meshes[mesh.value()].size(); ++rank) ranks.push_back({mesh, Rank(rank)});
  return ranks;
}

}  // namespace monarch
