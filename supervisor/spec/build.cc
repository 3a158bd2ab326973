#include "supervisor/spec/build.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "supervisor/spec/build_links.h"
#include "supervisor/spec/build_mesh.h"
#include "supervisor/spec/build_needs.h"
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

void check_launch(const YamlNode& root, Report& report) {
  const YamlNode* launch = value_of(&root, "launch");
  if (launch == nullptr || !launch->is(YamlNode::Kind::kMap)) return;
  std::vector<std::string> written;
  for (const std::string_view name : {"local", "ssh", "slurm"}) {
    if (value_of(launch, name) != nullptr) written.emplace_back(name);
  }
  const YamlKey* key = root.find_key("launch");
  if (written.size() > 1 || launch->keys.empty()) {
    report.error(
        "E0105", key->place,
        {.message = text("`launch` names ", written.empty() ? "no launcher" : join(written, " and ")),
         .label = "exactly one of local, ssh and slurm is needed",
         .help = written.empty() ? "`launch: {local: {}}` runs on virtual hosts of this machine" : "keep one of them"});
  }
  const YamlNode* ssh = value_of(launch, "ssh");
  if (ssh == nullptr || !ssh->is(YamlNode::Kind::kMap)) return;
  if ((value_of(ssh, "hosts") == nullptr) == (value_of(ssh, "hosts_file") == nullptr)) {
    report.error("E0101", launch->find_key("ssh")->place,
                 {.message = "`launch.ssh` needs `hosts` or `hosts_file`, and not both",
                  .label = "",
                  .help = "add `hosts: node[01-04]`"});
  }
}

LaunchLocal build_local(const YamlNode* local) {
  LaunchLocal out;
  out.hosts = integer_of(local, "hosts");
  if (out.hosts == 0U) out.hosts.reset();  // refused by the schema
  const YamlNode* spares = value_of(local, "spares");
  const bool map = spares != nullptr && spares->is(YamlNode::Kind::kMap);
  out.spares = (map ? integer_of(spares, "count") : integer_of(local, "spares")).value_or(0);
  return out;
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

void check_hosts_suffice(const JobSpec& job, const YamlNode& root, Report& report) {
  std::uint64_t needed = 0;
  for (const MeshSpec& mesh : job.meshes) needed += mesh.like ? 0 : mesh.hosts();
  const std::uint64_t all = needed + job.spares();
  const YamlNode* local = value_of(value_of(&root, "launch"), "local");
  const YamlNode* hosts = value_of(local, "hosts");
  if (all > limits::kHostsPerJob) {
    const YamlKey* key = root.find_key("meshes");
    report.error(
        "E0307", key->place,
        {.message = text("the job needs ", counted(all, "host"), "; it can have at most ", limits::kHostsPerJob),
         .label = text(counted(needed, "host"), " for the meshes, ", counted(job.spares(), "spare")),
         .help = "`per_host` puts more ranks on one host"});
  } else if (hosts != nullptr && job.pool_size() < all) {
    report.error(
        "E0304", hosts->place,
        {.message = text("the job needs ", counted(all, "host"), ", and `launch.local.hosts` is ", job.pool_size()),
         .label = text(counted(needed, "host"), " for the meshes, ", counted(job.spares(), "spare")),
         .help = text("`hosts: ", all, "` would work")});
  }
}

}  // namespace

JobSpec build_job(const YamlNode& root, const std::string& directory, Report& report) {
  JobSpec job;
  check_version(root, report);
  check_launch(root, report);
  job.directory = directory;
  job.name = text_of(&root, "job").value_or("");
  job.launch = build_local(value_of(value_of(&root, "launch"), "local"));
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
  check_fixed_ports(job, *meshes, report);
  complete = complete && job.meshes.size() == meshes->items.size();
  if (complete && build_links(job, *meshes, report)) check_hosts_suffice(job, root, report);
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
  notes.emplace_back("supervision.hang.action: report is off: this build cannot detect hangs yet");
  return notes;
}

}  // namespace monarch
