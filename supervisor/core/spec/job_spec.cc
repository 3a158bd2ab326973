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

RankId prepare_rank(const JobSpec& spec, HostId host) {
  return {MeshId(static_cast<std::uint32_t>(spec.meshes.size())), Rank(host.value())};
}

std::optional<HostId> prepared_host(const JobSpec& spec, RankId rank) {
  if (spec.prepare().program.empty()) return std::nullopt;
  if (rank.mesh.value() != spec.meshes.size() || rank.rank.value() >= spec.pool_size()) return std::nullopt;
  return HostId(rank.rank.value());
}

RankId standby_rank(const JobSpec& spec, const StandbyPlace& place) {
  const std::uint32_t size = spec.meshes[place.mesh.value()].gang_size();
  return {MeshId(static_cast<std::uint32_t>(spec.meshes.size()) + 1 + place.mesh.value()),
          Rank(place.standby * size + place.index)};
}

std::vector<std::string> log_mesh_names(const JobSpec& spec) {
  std::vector<std::string> names;
  for (const MeshSpec& mesh : spec.meshes) names.push_back(mesh.name);
  names.emplace_back(kPrepareMesh);
  for (const MeshSpec& mesh : spec.meshes) names.push_back(text("standby-", mesh.name));
  return names;
}

std::optional<StandbyPlace> standby_place(const JobSpec& spec, RankId rank) {
  const std::size_t first = spec.meshes.size() + 1;
  if (rank.mesh.value() < first || rank.mesh.value() - first >= spec.meshes.size()) return std::nullopt;
  const MeshId mesh(rank.mesh.value() - static_cast<std::uint32_t>(first));
  const MeshSpec& of = spec.meshes[mesh.value()];
  if (rank.rank.value() >= of.standby_gangs * of.gang_size()) return std::nullopt;
  return StandbyPlace{mesh, rank.rank.value() / of.gang_size(), rank.rank.value() % of.gang_size()};
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
