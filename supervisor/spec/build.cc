#include "supervisor/spec/build.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "supervisor/spec/build_launch.h"
#include "supervisor/spec/build_links.h"
#include "supervisor/spec/build_mesh.h"
#include "supervisor/spec/build_needs.h"
#include "supervisor/spec/build_network.h"
#include "supervisor/spec/build_supervision.h"
#include "supervisor/spec/values.h"
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

std::string counted(std::uint64_t count, std::string_view one) { return text(count, " ", one, count == 1 ? "" : "s"); }

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

}  // namespace

JobSpec build_job(const YamlNode& root, const PathBases& bases, Report& report) {
  JobSpec job;
  check_version(root, report);
  job.directory = bases.directory;
  job.name = text_of(&root, "job").value_or("");
  job.launch = build_launch(root, bases, report);
  job.control = build_control(root, report);
  job.network = build_network(root, report);
  const YamlNode* supervision = value_of(&root, "supervision");
  job.supervision = build_supervision(supervision, Supervision{});
  check_supervision(job.supervision, supervision, "supervision", report);
  job.start_timeout = duration_or(&root, "start_timeout", job.start_timeout);
  job.time_limit = duration_or(&root, "time_limit", job.time_limit);
  const YamlNode* lifetime = value_of(&root, "lifetime");
  job.lifetime.idle = duration_or(lifetime, "idle", job.lifetime.idle);
  job.lifetime.max = duration_or(lifetime, "max", job.lifetime.max);
  job.logs.max_bytes = size_or(value_of(&root, "logs"), "max_size", job.logs.max_bytes);
  const YamlNode* meshes = value_of(&root, "meshes");
  if (meshes == nullptr || !meshes->is(YamlNode::Kind::kMap)) return job;
  bool complete = true;
  for (std::size_t i = 0; i < meshes->keys.size(); ++i) {
    if (!meshes->items[i].is(YamlNode::Kind::kMap)) continue;
    std::optional<MeshSpec> mesh = build_mesh(meshes->keys[i], meshes->items[i], job, report);
    complete = complete && mesh.has_value();
    if (mesh) job.meshes.push_back(std::move(*mesh));
  }
  check_ranks(job, root, report);
  complete = complete && job.meshes.size() == meshes->items.size();
  if (complete && build_links(job, *meshes, report)) {
    check_hosts_suffice(job, root, report);
    check_network(job, root, report);
  }
  check_fixed_ports(job, *meshes, report);
  return job;
}

std::vector<std::string> notes_about(const JobSpec& job) {
  bool restart = false;
  bool reallocate = false;
  for (const MeshSpec& mesh : job.meshes) {
    restart = restart || mesh.supervision.restart.max != 0U;
    reallocate = reallocate || mesh.supervision.reallocate.max != 0U;
  }
  std::vector<std::string> notes;
  if (restart) {
    notes.emplace_back(
        "supervision.restart.max: 4 acts as 0: this build cannot restart a gang yet, a failure ends the job");
  }
  if (reallocate) {
    notes.emplace_back(
        "supervision.reallocate.max: 4 acts as 0: this build cannot replace a host yet, losing one ends the job");
  }
  if (!job.control.address.empty() && std::holds_alternative<LaunchLocal>(job.launch)) {
    notes.push_back(text("control.address: ", job.control.address,
                         " is not used: virtual hosts are on this machine, and reach the supervisor at 127.0.0.1"));
  }
  notes.emplace_back("supervision.hang.action: report is off: this build cannot detect hangs yet");
  return notes;
}

}  // namespace monarch
