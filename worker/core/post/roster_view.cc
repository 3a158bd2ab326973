#include "worker/core/post/roster_view.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::uint32_t kGuestNumbers = 0x8000'0000;

}  // namespace

bool RosterView::take(Roster roster) {
  if (std::tie(roster.term, roster.number) <= std::tie(roster_.term, roster_.number)) return false;
  roster_ = std::move(roster);
  meshes_.clear();
  ranks_.clear();
  hosts_.clear();
  for (const RosterMesh& mesh : roster_.meshes) {
    meshes_[mesh.name] = MeshId(static_cast<std::uint32_t>(ranks_.size()));
    std::uint32_t ranks = 1;
    for (const RosterDim& dim : mesh.dims) ranks *= dim.size;
    ranks_.push_back(ranks);
  }
  runs_.assign(ranks_.size(), {});
  for (const RosterRun& run : roster_.runs) {
    if (run.mesh.value() < runs_.size()) runs_[run.mesh.value()].push_back(run);
  }
  for (const RosterHost& host : roster_.hosts) hosts_[host.peer.host] = host;
  return true;
}

std::optional<MeshId> RosterView::mesh_named(const std::string& name) const {
  const auto found = meshes_.find(name);
  return found == meshes_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<MeshId> RosterView::called_mesh(const std::string& name) const {
  return name == kGuestsMesh ? std::optional(kGuestsMeshId) : mesh_named(name);
}

std::uint32_t RosterView::ranks_of(MeshId mesh) const {
  if (mesh == kGuestsMeshId) return kGuestNumbers;
  return mesh.value() < ranks_.size() ? ranks_[mesh.value()] : 0;
}

const RosterRun* RosterView::find(const RankId& rank) const {
  if (rank.mesh.value() >= runs_.size()) return nullptr;
  const std::vector<RosterRun>& runs = runs_[rank.mesh.value()];
  const auto above = std::upper_bound(runs.begin(), runs.end(), rank.rank,
                                      [](Rank one, const RosterRun& run) { return one < run.first; });
  if (above == runs.begin()) return nullptr;
  const RosterRun& run = *std::prev(above);
  return rank.rank.value() - run.first.value() < run.count ? &run : nullptr;
}

const RosterHost* RosterView::host(HostId host) const {
  const auto found = hosts_.find(host);
  return found == hosts_.end() ? nullptr : &found->second;
}

std::optional<HostId> RosterView::host_named(const std::string& name) const {
  const auto found = std::find_if(roster_.hosts.begin(), roster_.hosts.end(),
                                  [&](const RosterHost& host) { return host.peer.name == name; });
  return found == roster_.hosts.end() ? std::nullopt : std::optional(found->peer.host);
}

std::string RosterView::host_name(HostId host) const {
  const RosterHost* const found = this->host(host);
  return found != nullptr ? found->peer.name : text("host ", host.value());
}

std::string RosterView::rank_name(const RankId& rank) const {
  const std::size_t mesh = rank.mesh.value();
  if (rank.mesh == kGuestsMeshId) return text(kGuestsMesh, '/', rank.rank.value());
  return text(mesh < roster_.meshes.size() ? roster_.meshes[mesh].name : text("mesh ", mesh), '/', rank.rank.value());
}

const RosterFailure* RosterView::newest_failure(const RankId& rank) const {
  const auto found =
      std::find_if(roster_.failures.rbegin(), roster_.failures.rend(), [&](const RosterFailure& failure) {
        return failure.mesh == rank.mesh && rank.rank >= failure.first &&
               rank.rank.value() - failure.first.value() < failure.count;
      });
  return found == roster_.failures.rend() ? nullptr : &*found;
}

std::string RosterView::why_lost(const RankId& rank) const {
  if (rank.mesh == kGuestsMeshId) return "its host is none of the job";
  const RosterRun* const run = find(rank);
  const RosterFailure* const failure = newest_failure(rank);
  const std::string cause = failure != nullptr ? failure->cause : std::string();
  const auto with_cause = [&](const char* what) { return cause.empty() ? std::string(what) : text(what, ": ", cause); };
  if (run == nullptr) return with_cause("it is on no host");
  switch (run->state) {
    case RosterState::kStarting: return with_cause("it is being started");
    case RosterState::kDown: return with_cause("it is being started again");
    case RosterState::kGivenUp: return with_cause("it is given up");
    case RosterState::kEnded: return "it has ended";
    case RosterState::kIdle: return "it is an idle slot, and nobody has claimed it";
    case RosterState::kUp: return with_cause("it has ended");
  }
  return {};
}

RosterView::Place RosterView::place_of(const CallerName& caller, HostId host) const {
  const RosterRun* const run = find(caller.rank);
  if (run == nullptr || run->generation.counter < caller.generation) return Place::kUnknown;
  return run->host == host ? Place::kThere : Place::kElsewhere;
}

std::string RosterView::no_such_rank(const CallerName& caller) const {
  const auto mesh = mesh_named(caller.mesh);
  if (mesh == caller.rank.mesh && caller.rank.rank.value() < ranks_of(*mesh)) return {};
  return text("its caller says that it is ", caller.mesh, '/', caller.rank.rank.value(), ", and there is none");
}

std::string RosterView::passed(const CallerName& caller) const {
  if (caller.mesh.empty()) return {};
  const RosterRun* const run = find(caller.rank);
  if (run == nullptr || run->generation.counter <= caller.generation) return {};
  return text("a later start of ", rank_name(caller.rank), " has its place");
}

}  // namespace monarch
