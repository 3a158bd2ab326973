#include "supervisor/spec/job/build.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "supervisor/spec/job/build_actors.h"
#include "supervisor/spec/job/build_checkpoints.h"
#include "supervisor/spec/job/build_input.h"
#include "supervisor/spec/job/build_launch.h"
#include "supervisor/spec/job/build_links.h"
#include "supervisor/spec/job/build_mesh.h"
#include "supervisor/spec/job/build_needs.h"
#include "supervisor/spec/job/build_network.h"
#include "supervisor/spec/job/build_shrink.h"
#include "supervisor/spec/job/build_standby.h"
#include "supervisor/spec/job/build_storage.h"
#include "supervisor/spec/job/build_supervision.h"
#include "supervisor/spec/job/build_workspace.h"
#include "supervisor/spec/schema/launcher_spec.h"
#include "supervisor/spec/yaml/values.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

void check_version(const YamlNode& root, Report& report) {
  const YamlNode* version = value_of(&root, "version");
  const auto number = integer_of(&root, "version");
  if (!number || number == 1U) return;
  report.error("E0212", version->place,
               {.message = text("version ", *number, " of the spec is not known"),
                .label = "this build reads version 1",
                .help = "`version: 1` would work, if the spec uses nothing newer"});
}

void check_ranks(const JobSpec& job, const YamlNode& root, Report& report) {
  std::uint64_t ranks = 0;
  for (const MeshSpec& mesh : job.meshes) {
    ranks += mesh.size();
    if (ranks <= limits::kRanksPerJob) continue;
    const YamlKey* key = root.find("meshes")->find_key(mesh.name);
    report.error("E0306", key->place,
                 {.message = text("the meshes up to `", mesh.name, "` have ", ranks, " ranks; a job has at most ",
                                  limits::kRanksPerJob),
                  .label = text("has ", counted(mesh.size(), "rank")),
                  .help = text(counted(mesh.size() - (ranks - limits::kRanksPerJob), "rank"), " here would fit")});
    return;
  }
}

// `tensors: {}` takes all ways.
std::optional<TensorSpec> build_tensors(const YamlNode& root) {
  const YamlNode* const written = value_of(&root, "tensors");
  if (written == nullptr || !written->is(YamlNode::Kind::kMap)) return std::nullopt;
  const YamlNode* const ways = value_of(written, "transports");
  const bool pin = bool_or(written, "pin", true);
  if (ways == nullptr || !ways->is(YamlNode::Kind::kList)) return TensorSpec{.pin = pin};
  const auto has = [ways](std::string_view way) {
    return std::any_of(ways->items.begin(), ways->items.end(), [way](const YamlNode& one) { return one.text == way; });
  };
  return TensorSpec{.shm = has("shm"), .verbs = has("verbs"), .tcp = has("tcp"), .pin = pin};
}

}  // namespace

JobSpec build_job(const YamlNode& written, const PathBases& bases, Report& report) {
  JobSpec job;
  check_version(written, report);
  job.directory = bases.directory;
  job.name = text_of(&written, "job").value_or("");
  job.launch = build_launch(written, bases, report);
  job.workspace = build_workspace(written, bases, report);
  const std::optional<YamlNode> programs = with_actor_programs(written, job, report);
  const YamlNode& root = programs ? *programs : written;
  job.tensors = build_tensors(root);
  job.calls = programs.has_value() || job.tensors.has_value();
  job.control = build_control(root, report);
  job.network = build_network(root, report);
  job.supervisor_on = build_supervisor_on(root);
  const YamlNode* supervision = value_of(&root, "supervision");
  job.supervision = build_supervision(supervision, job.supervision);
  check_supervision(job.supervision, supervision, "supervision", report);
  job.start_timeout = duration_or(&root, "start_timeout", job.start_timeout);
  job.time_limit = duration_or(&root, "time_limit", job.time_limit);
  const YamlNode* lifetime = value_of(&root, "lifetime");
  job.lifetime.idle = duration_or(lifetime, "idle", job.lifetime.idle);
  job.lifetime.max = duration_or(lifetime, "max", job.lifetime.max);
  const YamlNode* input = value_of(&root, "stdin");
  job.logs.max_bytes = size_or(value_of(&root, "logs"), "max_size", job.logs.max_bytes);
  job.storage = build_storage(root, report);
  job.checkpoints = build_checkpoints(root, report);
  job.drills = bool_or(value_of(&root, "drills"), "allow", false);
  const YamlNode* meshes = value_of(&root, "meshes");
  if (meshes == nullptr || !meshes->is(YamlNode::Kind::kMap)) return job;
  bool complete = true;
  for (std::size_t i = 0; i < meshes->keys.size(); ++i) {
    if (!meshes->items[i].is(YamlNode::Kind::kMap)) continue;
    std::optional<MeshSpec> mesh = build_mesh(meshes->keys[i], meshes->items[i], job, report);
    complete = complete && mesh.has_value();
    if (mesh) job.meshes.push_back(std::move(*mesh));
  }
  job.calls =
      job.calls || std::any_of(job.meshes.begin(), job.meshes.end(), [](const auto& mesh) { return mesh.serves; });
  check_ranks(job, root, report);
  complete = complete && job.meshes.size() == meshes->items.size();
  if (complete && input != nullptr) build_input(*input, job, report);
  build_shrink(job, root, report);
  find_launcher_spec(job.launch.facts().name)->check(job, root, report);
  if (complete && build_links(job, *meshes, report)) {
    check_hosts_suffice(job, root, report);
    check_standby(job, *meshes, report);
    check_checkpoints(job, root, report);
    check_network(job, root, report);
  }
  check_fixed_ports(job, *meshes, report);
  return job;
}

std::vector<std::string> notes_about(const JobSpec& job) {
  std::vector<std::string> notes = find_launcher_spec(job.launch.facts().name)->notes(job);
  if (job.supervised_away() && job.pool_size() > job.hosts_needed() + job.spares()) {
    notes.push_back(text("supervisor.on: first: of the ", job.pool_size(),
                         " hosts of the pool those beyond what is needed and spares take another's place while the job "
                         "starts, and not after it: nobody is there to launch them"));
  }
  return notes;
}

}  // namespace monarch
