#include "supervisor/spec/job/build_checkpoints.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "supervisor/spec/yaml/values.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Each host is told of all of them, in one message.
constexpr std::uint64_t kMostGangs = 10'000;
constexpr std::uint64_t kMostRanks = 16'384;  // of what each calls its checkpoint, a snapshot has room for 128 bytes

Place checkpoints_place(const YamlNode& root, std::string_view key) {
  const YamlNode* value = value_of(value_of(&root, "checkpoints"), key);
  return value != nullptr ? value->place : root.find_key("checkpoints")->place;
}

// Whose gangs leave the fewest other hosts; a sidecar's ranks have nothing that another host could go on from.
const MeshSpec* widest_mesh(const JobSpec& job) {
  const MeshSpec* widest = nullptr;
  for (const MeshSpec& mesh : job.meshes) {
    if (mesh.sidecar) continue;
    if (widest == nullptr || mesh.gang_hosts() > widest->gang_hosts()) widest = &mesh;
  }
  return widest;
}

void check_other_hosts(const JobSpec& job, const YamlNode& root, Report& report) {
  const MeshSpec* mesh = widest_mesh(job);
  const std::uint32_t peer = job.checkpoints.peer;
  if (mesh == nullptr) return;
  const std::uint32_t own = mesh->gang_hosts();
  const std::uint32_t others = job.hosts_needed() + job.spares() - own;
  if (peer <= others) return;
  const std::string spares = text("`spares: ", job.spares() + peer - others, "` of the launcher");
  report.error("E0331", checkpoints_place(root, "peer"),
               {.message = text("`checkpoints.peer` is ", peer, ", and beside the ", counted(own, "host"),
                                " of a gang of mesh `", mesh->name, "` the job has ", others == 0 ? "no other" : "",
                                others == 0 ? "" : counted(others, "other")),
                .label = "copies are kept by hosts that hold no rank of the gang",
                .help = others > 0 ? text("`peer: ", others, "` would work, and so would ", spares)
                                   : text(spares, " would work")});
}

void check_gangs(const JobSpec& job, const YamlNode& root, Report& report) {
  std::uint64_t gangs = 0;
  std::uint64_t ranks = 0;
  for (const MeshSpec& mesh : job.meshes) {
    gangs += mesh.sidecar ? 0 : mesh.gangs();
    ranks += mesh.size();
  }
  if (ranks > kMostRanks) {
    report.error(
        "E0333", root.find_key("checkpoints")->place,
        {.message =
             text("the meshes have ", ranks, " ranks; checkpoints are kept in memory in a job of at most ", kMostRanks),
         .label = "needs fewer ranks",
         .help = "ranks that write their checkpoints to storage commit them by shorter names: monarch-rank(7)"});
  }
  if (gangs <= kMostGangs) return;
  report.error(
      "E0333", root.find_key("checkpoints")->place,
      {.message = text("the meshes have ", gangs, " gangs; checkpoints of at most ", kMostGangs, " are kept in memory"),
       .label = "needs fewer gangs",
       .help = "gangs of more ranks would work: `monarch explain meshes.*.gang`"});
}

}  // namespace

CheckpointSpec build_checkpoints(const YamlNode& root, Report& report) {
  const YamlNode* written = value_of(&root, "checkpoints");
  CheckpointSpec spec;
  if (written == nullptr || !written->is(YamlNode::Kind::kMap)) return spec;
  spec.peer = integer_of(written, "peer").value_or(spec.peer);
  spec.memory = size_or(written, "memory", spec.memory);
  if (spec.peer > 0 && spec.memory == 0) {
    report.error("E0332", checkpoints_place(root, "peer"),
                 {.message = text("`checkpoints.peer` is ", spec.peer, ", and hosts have no memory for checkpoints"),
                  .label = "needs `memory`",
                  .help = "`memory: 8GiB` would work, where each host has that much to spare"});
  }
  if (spec.peer == 0 && spec.memory > 0) {
    report.error(
        "E0332", checkpoints_place(root, "memory"),
        {.message = text("`checkpoints.memory` is ", amount_text(spec.memory), ", and no copies are asked for"),
         .label = "needs `peer`",
         .help = "`peer: 1` would work; without copies on other hosts nothing is kept in memory"});
  }
  return spec;
}

void check_checkpoints(const JobSpec& job, const YamlNode& root, Report& report) {
  constexpr std::uint32_t kMostCopies = 8;  // more are refused by the schema
  if (job.checkpoints.peer == 0 || job.checkpoints.peer > kMostCopies) return;
  check_other_hosts(job, root, report);
  check_gangs(job, root, report);
}

}  // namespace monarch
