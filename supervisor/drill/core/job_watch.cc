#include "supervisor/drill/core/job_watch.h"

#include <algorithm>
#include <utility>

#include "supervisor/drill/core/measure_run.h"

namespace monarch::drill {

JobWatch::JobWatch(std::vector<DrillMesh> meshes) : meshes_(std::move(meshes)) {
  for (std::uint32_t mesh = 0; mesh < meshes_.size(); ++mesh) {
    const std::uint32_t size = std::max(meshes_[mesh].ranks_per_gang, 1U);
    for (std::uint32_t gang = 0; gang * size < meshes_[mesh].ranks; ++gang) {
      gangs_.push_back({.mesh = mesh, .gang = gang, .ranks = std::vector<WatchedRank>(size)});
    }
  }
}

void JobWatch::on_status(const JobStatus& status) {
  seen_ = true;
  for (WatchedGang& watched : gangs_) {
    if (watched.mesh >= status.meshes.size()) continue;
    const MeshStatus& mesh = status.meshes[watched.mesh];
    if (watched.gang < mesh.gangs.size()) watched.phase = mesh.gangs[watched.gang].phase;
    watched.ready = true;
    bool new_ones = watched.started > 0;
    for (std::size_t i = 0; i < watched.ranks.size(); ++i) {
      const std::size_t number = watched.gang * watched.ranks.size() + i;
      if (number >= mesh.ranks.size()) continue;
      const RankStatus& rank = mesh.ranks[number];
      watched.ranks[i] = {
          .host = rank.host, .well = rank.phase == "running" && rank.standstill.empty(), .ready = rank.ready};
      watched.ready = watched.ready && rank.ready;
      new_ones = new_ones && rank.generation == watched.started;
      if (rank.progress.step) watched.furthest = std::max(watched.furthest.value_or(0), *rank.progress.step);
    }
    // No event tells of readiness where a program does not say it.
    if (new_ones && watched.runs() && watched.ready && !watched.behind) watched.failed = false;
  }
  hosts_.clear();
  for (const HostStatus& host : status.hosts) {
    hosts_.push_back({.name = host.name,
                      .ready = host.phase == "ready",
                      .spare = host.role == "spare" && host.phase == "ready" && host.standing.empty()});
  }
}

void JobWatch::on_event(const JobEvent& event) {
  WatchedGang* const gang = gang_of(event);
  if (gang == nullptr) return;
  if (event.kind == EventKind::kGangFailed || event.kind == EventKind::kGangStopping) {
    gang->failed = true;
    gang->started = 0;
  }
  if (event.kind == EventKind::kGangStarting) {
    gang->started = event.generation;
    const auto furthest = number_of(event, "furthest");
    gang->behind = furthest && number_of(event, "from_step").value_or(0) < *furthest;
  }
  // Where no step is done again, to be ready is all there is.
  const bool ready = event.kind == EventKind::kGangReady && !gang->behind;
  if (event.kind == EventKind::kGangCaughtUp || ready) gang->failed = false;
}

void JobWatch::on_new_job() {
  seen_ = false;
  hosts_.clear();
  for (WatchedGang& gang : gangs_) {
    gang.phase.clear();
    gang.ready = gang.failed = false;
    gang.ranks.assign(gang.ranks.size(), {});
  }
}

const WatchedGang* JobWatch::find(std::uint32_t mesh, std::uint32_t gang) const {
  const auto found = std::find_if(gangs_.begin(), gangs_.end(),
                                  [&](const WatchedGang& g) { return g.mesh == mesh && g.gang == gang; });
  return found == gangs_.end() ? nullptr : &*found;
}

std::optional<std::uint32_t> JobWatch::mesh_of(const std::string& name) const {
  for (std::uint32_t mesh = 0; mesh < meshes_.size(); ++mesh) {
    if (meshes_[mesh].name == name) return mesh;
  }
  return std::nullopt;
}

WatchedGang* JobWatch::gang_of(const JobEvent& event) {
  return const_cast<WatchedGang*>(std::as_const(*this).gang_of(event));
}

const WatchedGang* JobWatch::gang_of(const JobEvent& event) const {
  if (event.mesh.empty() || name_of(event.kind).substr(0, 5) != "gang.") return nullptr;
  const auto mesh = mesh_of(event.mesh);
  // A mesh of one gang need not name it.
  return mesh ? find(*mesh, static_cast<std::uint32_t>(number_of(event, "gang").value_or(0))) : nullptr;
}

bool JobWatch::all_up() const {
  return seen_ && std::all_of(gangs_.begin(), gangs_.end(), [](const WatchedGang& g) { return g.up() || g.over(); });
}

std::uint32_t JobWatch::down() const {
  return static_cast<std::uint32_t>(
      std::count_if(gangs_.begin(), gangs_.end(), [](const WatchedGang& g) { return !g.up() && !g.over(); }));
}

std::uint32_t JobWatch::spares() const {
  return static_cast<std::uint32_t>(
      std::count_if(hosts_.begin(), hosts_.end(), [](const WatchedHost& h) { return h.spare; }));
}

std::uint64_t JobWatch::steps() const {
  std::uint64_t all = 0;
  for (const WatchedGang& gang : gangs_) all += gang.furthest.value_or(0);
  return all;
}

std::uint64_t JobWatch::furthest() const {
  std::uint64_t furthest = 0;
  for (const WatchedGang& gang : gangs_) furthest = std::max(furthest, gang.furthest.value_or(0));
  return furthest;
}

DrillSample sample_of(const JobStatus& status, const JobWatch& watch, std::size_t meshes, WallTime at) {
  DrillSample sample{.at = at, .meshes = std::vector<DrillSample::Mesh>(meshes), .spares = watch.spares()};
  for (const WatchedGang& gang : watch.gangs()) {
    sample.meshes[gang.mesh].steps.push_back(gang.furthest);
    sample.meshes[gang.mesh].phases.push_back(gang.phase);
  }
  for (std::size_t mesh = 0; mesh < meshes && mesh < status.meshes.size(); ++mesh) {
    sample.meshes[mesh].rank_milliseconds = status.meshes[mesh].rank_milliseconds;
  }
  for (const HostStatus& host : status.hosts) sample.hosts.emplace_back(host.name, host.phase);
  return sample;
}

void thin(std::vector<DrillSample>& samples, std::size_t most) {
  if (samples.size() < 4) return;
  std::size_t bytes = samples.back().hosts.size() * sizeof samples.back().hosts.front();
  for (const DrillSample::Mesh& mesh : samples.back().meshes) {
    bytes += mesh.steps.size() * sizeof mesh.steps.front() + mesh.phases.size() * sizeof mesh.phases.front();
  }
  if ((sizeof(DrillSample) + bytes) * samples.size() <= most) return;
  std::vector<DrillSample> kept;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const bool last = i + 1 == samples.size() || samples[i + 1].job != samples[i].job;
    if (i % 2 == 0 || last) kept.push_back(std::move(samples[i]));
  }
  samples = std::move(kept);
}

}  // namespace monarch::drill
