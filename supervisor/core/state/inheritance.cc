#include "supervisor/core/state/inheritance.h"

#include <algorithm>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/core/state/job_state.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// As a vault says where it keeps one (monarch-rank(7)).
constexpr std::string_view kInMemory = "vault:";

bool was_in_memory(const GangCheckpoint& checkpoint) {
  return std::any_of(checkpoint.what.begin(), checkpoint.what.end(),
                     [](const std::string& what) { return what.starts_with(kInMemory); });
}

std::optional<MeshId> mesh_called(const JobSpec& spec, const std::string& name) {
  for (std::uint32_t m = 0; m < spec.meshes.size(); ++m) {
    if (spec.meshes[m].name == name) return MeshId(m);
  }
  return std::nullopt;
}

// "4 ranks (host 2, gpu 2) in 1 gang"
std::string shape_of(const MeshSpec& mesh) {
  std::vector<std::string> dims;
  for (const Dimension& dim : mesh.dims) dims.push_back(text(dim.name, ' ', dim.size));
  return text(mesh.size(), " ranks (", join(dims, ", "), ") in ", mesh.gangs(), mesh.gangs() == 1 ? " gang" : " gangs");
}

bool have_begun(const std::vector<Crew>& gangs) {
  return std::any_of(gangs.begin(), gangs.end(), [](const Crew& crew) { return crew.generation.counter > 0; });
}

// For people: the first few.
constexpr std::size_t kMostLost = 8;

void shorten(std::vector<std::string>& lost) {
  if (lost.size() <= kMostLost) return;
  const std::size_t more = lost.size() - kMostLost;
  lost.resize(kMostLost);
  lost.push_back(text("and ", more, " more"));
}

// A record of the journal has room for twice as much (limits.h): what is written beside these is less.
constexpr std::size_t kPartBytes = 24U << 10U;
constexpr std::size_t kGangBytes = 128;  // without what its ranks said
constexpr std::size_t kNameBytes = 8;    // beside its characters

}  // namespace

Inheritance inherit(const JobSpec& spec, const JobSpec& before, const JobState& state) {
  Inheritance all;
  for (std::uint32_t b = 0; b < before.meshes.size() && b < state.meshes.size(); ++b) {
    const MeshSpec& had = before.meshes[b];
    const MeshState& known = state.meshes[b];
    const std::vector<Crew>& crews = state.crews[b];
    const auto mesh = mesh_called(spec, had.name);
    if (!have_begun(crews)) continue;
    if (!mesh) {
      all.lost.push_back(text("mesh ", had.name, " is none of this job's"));
      continue;
    }
    const MeshSpec& has = spec.meshes[mesh->value()];
    if (has.dims != had.dims || has.gangs() != had.gangs()) {
      all.lost.push_back(text("mesh ", had.name, " begins anew: it had ", shape_of(had), ", and has ", shape_of(has)));
      std::uint64_t highest = 0;
      for (const Crew& crew : crews) highest = std::max(highest, crew.generation.counter);
      for (std::uint32_t g = 0; g < has.gangs(); ++g) {
        all.gangs.push_back({.mesh = *mesh, .gang = GangId(g), .generation = highest});
      }
      continue;
    }
    for (std::uint32_t g = 0; g < known.gangs.size(); ++g) {
      const GangState& gang = known.gangs[g];
      if (crews[g].generation.counter == 0) continue;
      InheritedGang one{.mesh = *mesh,
                        .gang = GangId(g),
                        .generation = crews[g].generation.counter,
                        .furthest = std::max(gang.furthest, gang.reached),
                        .checkpoint = gang.commits.newest};
      if (one.checkpoint && was_in_memory(*one.checkpoint)) {
        all.lost.push_back(text(had.name, ": gang ", g, " does not go on from step ", one.checkpoint->step,
                                ", which only hosts of that job had in their memory"));
        one.checkpoint.reset();
      }
      all.gangs.push_back(std::move(one));
    }
  }
  shorten(all.lost);
  return all;
}

std::vector<std::vector<InheritedGang>> in_parts(const std::vector<InheritedGang>& gangs) {
  std::vector<std::vector<InheritedGang>> parts;
  std::size_t bytes = kPartBytes;
  const auto part = [&](std::size_t more) -> std::vector<InheritedGang>& {
    if (bytes + more > kPartBytes) {
      parts.emplace_back();
      bytes = 0;
    }
    bytes += more;
    return parts.back();
  };
  for (const InheritedGang& gang : gangs) {
    InheritedGang empty = gang;
    if (empty.checkpoint) empty.checkpoint->what.clear();
    part(kGangBytes).push_back(empty);
    if (!gang.checkpoint) continue;
    const std::vector<std::string>& what = gang.checkpoint->what;
    for (std::uint32_t rank = 0; rank < what.size(); ++rank) {
      std::vector<InheritedGang>& to = part(what[rank].size() + kNameBytes);
      if (to.empty()) {
        to.push_back(empty);
        to.back().first = rank;
        bytes += kGangBytes;
      }
      to.back().checkpoint->what.push_back(what[rank]);
    }
  }
  return parts;
}

}  // namespace monarch
