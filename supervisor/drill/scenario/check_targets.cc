#include <algorithm>

#include "supervisor/drill/scenario/scenario_check.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

// Where the words say one thing, and its name in a message.
struct TargetFault {
  std::string_view key;
  std::string message;
  std::string help;
};

std::string mesh_names(const JobSpec& spec) {
  std::vector<std::string> names;
  for (const MeshSpec& mesh : spec.meshes) names.push_back(text("`", mesh.name, "`"));
  return join(names, ", ");
}

std::optional<TargetFault> mesh_problem(const FaultTarget& target, const JobSpec& spec) {
  std::vector<std::string> names;
  for (const MeshSpec& mesh : spec.meshes) names.push_back(mesh.name);
  if (target.mesh.empty() || std::find(names.begin(), names.end(), target.mesh) != names.end()) return std::nullopt;
  const auto meant = nearest(target.mesh, names);
  return TargetFault{.key = "mesh",
                     .message = text("the job has no mesh ", quoted_value(target.mesh)),
                     .help = meant ? text("did you mean `", *meant, "`?") : text("its meshes are ", mesh_names(spec))};
}

// `at`, `rank` and `gang` count within one mesh.
std::optional<TargetFault> gang_problem(const FaultTarget& target, const JobSpec& spec) {
  if (target.gang.empty()) return std::nullopt;
  const bool number = all_digits(target.gang) && target.gang.size() <= 6;
  if (!number) {
    return TargetFault{.key = "gang",
                       .message = text(quoted_value(target.gang), " is not the number of a gang"),
                       .help = "gangs of a mesh are counted from 0; `random` is any of them"};
  }
  if (target.mesh.empty() && spec.meshes.size() > 1) {
    return TargetFault{.key = "gang",
                       .message = "`gang` counts within one mesh, and the job has several",
                       .help = text("`mesh` says which: ", mesh_names(spec))};
  }
  const auto mesh = std::find_if(spec.meshes.begin(), spec.meshes.end(),
                                 [&](const MeshSpec& one) { return target.mesh.empty() || one.name == target.mesh; });
  if (mesh == spec.meshes.end() || std::stoul(target.gang) < mesh->gangs()) return std::nullopt;
  return TargetFault{
      .key = "gang",
      .message = text("`", mesh->name, "` has no gang ", target.gang),
      .help = mesh->gangs() == 1 ? "it has gang 0 alone" : text("it has gangs 0 to ", mesh->gangs() - 1)};
}

FaultTarget without_random(FaultTarget target) {
  for (std::string* const word : {&target.mesh, &target.at, &target.rank, &target.gang, &target.host}) {
    if (*word == kRandom) word->clear();
  }
  return target;
}

bool says_anything(const FaultTarget& target) {
  return !(target.mesh.empty() && target.at.empty() && target.rank.empty() && target.gang.empty() &&
           target.host.empty());
}

// The key that a selector's own words are most likely about.
std::string_view first_key(const FaultTarget& target) {
  if (!target.host.empty()) return "host";
  if (!target.at.empty()) return "at";
  return target.rank.empty() ? "mesh" : "rank";
}

}  // namespace

void check_targets(const ScenarioCheck& check) {
  for (std::size_t i = 0; i < check.scenario.faults.size(); ++i) {
    const FaultTarget target = without_random(check.scenario.faults[i].target);
    if (!says_anything(target)) continue;
    auto problem = mesh_problem(target, check.job.spec);
    if (!problem) problem = gang_problem(target, check.job.spec);
    if (!problem && check.job.target_problem) {
      const auto words = check.job.target_problem(target);
      if (words) problem = TargetFault{.key = first_key(target), .message = *words, .help = ""};
    }
    if (!problem) continue;
    check.report.error("E0504", check.in_fault(i, {"target", problem->key}),
                       {.message = text("`faults[", i, "].target`: ", problem->message),
                        .label = "names nothing of this job",
                        .help = problem->help.empty() ? "`monarch plan` shows what the job has" : problem->help});
  }
}

}  // namespace monarch::drill
