#include "worker/core/environment.h"

#include <algorithm>
#include <array>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::array<std::string_view, 2> kMeshNames = {"MONARCH_JOB_ID", "MONARCH_MESH"};

constexpr std::array<std::string_view, 7> kLoginNames = {"HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TMPDIR"};

// Which GPUs Slurm gave to a step, and what says that it is one; gres.conf(5), srun(1).
constexpr std::string_view kStepName = "SLURM_STEP_ID";
constexpr std::array<std::string_view, 4> kStepGpuNames = {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                                           "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK"};

constexpr std::string_view kLoaderPrefix = "LD_";
constexpr std::string_view kHeldPrefix = "MONARCH_HELD_LD_";

void overlay(Environment& below, const Environment& above) {
  for (const auto& [name, value] : above) below[name] = value;
}

template <std::size_t Count>
void take(const std::array<std::string_view, Count>& names, const Environment& from, Environment& into) {
  for (const std::string_view name : names) {
    if (const auto found = from.find(std::string(name)); found != from.end()) into.insert(*found);
  }
}

void add_line(Environment& environment, std::string_view line) {
  const std::size_t equals = line.find('=', line.empty() ? 0 : 1);
  if (equals == std::string_view::npos) return;
  environment.emplace(std::string(line.substr(0, equals)), std::string(line.substr(equals + 1)));
}

}  // namespace

std::string rank_key(const Incarnation& process) {
  const auto& [rank, generation] = process;
  return text(rank.mesh.value(), '.', rank.rank.value(), '.', generation.term.value(), '.', generation.counter);
}

Environment environment_from(const char* const* lines) {
  Environment environment;
  for (; lines != nullptr && *lines != nullptr; ++lines) add_line(environment, *lines);
  return environment;
}

Environment environment_from(const std::vector<std::string>& lines) {
  Environment environment;
  for (const std::string& line : lines) add_line(environment, line);
  return environment;
}

std::vector<std::string> environment_lines(const Environment& environment) {
  std::vector<std::string> lines;
  lines.reserve(environment.size());
  for (const auto& [name, value] : environment) lines.push_back(text(name, '=', value));
  return lines;
}

Environment login_environment(const Environment& whole) {
  Environment login;
  take(kLoginNames, whole, login);
  if (whole.contains(std::string(kStepName))) take(kStepGpuNames, whole, login);
  return login;
}

bool is_loader_variable(std::string_view name) { return name.starts_with(kLoaderPrefix); }

Environment hold_loader_variables(const Environment& environment) {
  Environment held;
  for (const auto& [name, value] : environment) {
    held[is_loader_variable(name) ? text(kHeldPrefix, name.substr(kLoaderPrefix.size())) : name] = value;
  }
  return held;
}

Environment release_loader_variables(const Environment& environment) {
  Environment released = environment;
  for (const auto& [name, value] : environment) {
    if (!name.starts_with(kHeldPrefix)) continue;
    released.erase(name);
    released[text(kLoaderPrefix, name.substr(kHeldPrefix.size()))] = value;
  }
  return released;
}

Environment without_loader_variables(const Environment& environment) {
  Environment without = environment;
  std::erase_if(without,
                [](const auto& line) { return is_loader_variable(line.first) || line.first.starts_with(kHeldPrefix); });
  return without;
}

Environment rank_base(const Environment& keepers, const Environment& defaults) {
  Environment environment;
  for (const auto& [name, value] : keepers) {
    if (is_foreign_launcher_variable(name) || is_talking_variable(name) || is_committed_variable(name) ||
        name == kKeeperFdVariable || name == kKeptFdsVariable)
      continue;
    environment.emplace(name, value);
  }
  environment.insert(defaults.begin(), defaults.end());
  return environment;
}

Environment rank_environment(const Environment& base, const Environment& gang, const Environment& own,
                             const RankEnvironment& keys) {
  Environment environment = base;
  overlay(environment, gang);
  overlay(environment, own);
  environment[std::string(kJobUuidVariable)] = keys.job_uuid;
  environment[std::string(kHostVariable)] = keys.host_name;
  environment[std::string(kRankKeyVariable)] = rank_key(keys.process);
  if (!keys.doors.notify.empty()) environment[std::string(kNotifyVariable)] = keys.doors.notify;
  if (!keys.doors.questions.empty()) environment[std::string(kQuestionsVariable)] = keys.doors.questions;
  if (!keys.doors.events.empty()) environment[std::string(kEventsVariable)] = keys.doors.events;
  if (!keys.doors.vault.empty()) environment[std::string(kVaultVariable)] = keys.doors.vault;
  if (!keys.doors.post.empty()) environment[std::string(kPostVariable)] = keys.doors.post;
  if (!keys.doors.library.empty()) environment[std::string(kRankLibraryVariable)] = keys.doors.library;
  if (!keys.doors.modules.empty()) {
    std::string& path = environment["PYTHONPATH"];  // what a user has of the same name comes first
    path += path.empty() ? keys.doors.modules : ":" + keys.doors.modules;
  }
  return environment;
}

Environment setup_environment(const Environment& base, const Environment& gang, const RankEnvironment& keys) {
  Environment of_mesh;
  for (const std::string_view name : kMeshNames) {
    if (const auto found = gang.find(std::string(name)); found != gang.end()) of_mesh.insert(*found);
  }
  return rank_environment(base, of_mesh, {}, keys);
}

Environment spawned_environment(const Environment& base, const Environment& added) {
  Environment environment = base;
  for (const std::string_view name : {kKeeperFdVariable, kKeptFdsVariable}) environment.erase(std::string(name));
  std::erase_if(environment, [](const auto& line) { return is_talking_variable(line.first); });
  overlay(environment, added);
  return environment;
}

}  // namespace monarch
