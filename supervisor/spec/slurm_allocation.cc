#include "supervisor/spec/slurm_allocation.h"

#include <charconv>
#include <string_view>
#include <utility>

#include "supervisor/core/spec/hostlist.h"
#include "supervisor/launch/slurm/slurm_spec.h"
#include "supervisor/spec/yaml/values.h"
#include "supervisor/spec/yaml/yaml_tree.h"
#include "transport/base/text.h"

namespace monarch {

Result<std::optional<Allocation>> allocation_from(const std::function<const char*(const char* name)>& variable) {
  const char* job = variable("SLURM_JOB_ID");
  const char* nodes = variable("SLURM_JOB_NODELIST");
  if (job == nullptr && nodes == nullptr) return std::optional<Allocation>();
  const char* components = variable("SLURM_HET_SIZE");
  if (job != nullptr && nodes == nullptr && components != nullptr) {
    const char* first = variable("SLURM_JOB_NODELIST_HET_GROUP_0");
    return Error{ErrorCode::kInvalid,
                 text("it is a heterogeneous job of ", printable(components),
                      " components (SLURM_HET_SIZE), each with its own number ",
                      "and nodes: those of the first are SLURM_JOB_ID_HET_GROUP_0 and SLURM_JOB_NODELIST_HET_GROUP_0",
                      first == nullptr ? "" : text(" (", printable(first), ")"))};
  }
  if (job == nullptr || nodes == nullptr) {
    return Error{ErrorCode::kInvalid, text(job != nullptr ? "SLURM_JOB_ID" : "SLURM_JOB_NODELIST", " is set, and ",
                                           job != nullptr ? "SLURM_JOB_NODELIST" : "SLURM_JOB_ID", " is not")};
  }
  Allocation found;
  const std::string_view digits = job;
  const auto [stopped, error] = std::from_chars(digits.data(), digits.data() + digits.size(), found.job);
  if (error != std::errc() || stopped != digits.data() + digits.size() || found.job == 0) {
    return Error{ErrorCode::kInvalid, text("SLURM_JOB_ID is `", printable(digits), "`, which is no job's number")};
  }
  auto names = expand_hostlist(nodes);
  if (!names.ok()) return Error{ErrorCode::kInvalid, text("SLURM_JOB_NODELIST: ", names.error().message)};
  found.nodes = std::move(*names);
  return std::optional(std::move(found));
}

std::optional<YamlNode> with_allocation(const YamlNode& root, const SpecSurroundings& around, Report& report) {
  const YamlNode* launch = value_of(&root, "launch");
  const YamlNode* slurm = value_of(launch, "slurm");
  if (slurm == nullptr || !slurm->is(YamlNode::Kind::kMap) || value_of(slurm, "allocation") != nullptr) {
    return std::nullopt;
  }
  if (!around.find_allocation) return std::nullopt;
  const auto found = around.find_allocation();
  const Place place = launch->find_key("slurm")->place;
  if (!found.ok()) {
    report.error(
        "E0208", place,
        {.message = text("the allocation that this shell is in cannot be read: ", found.error().message),
         .label = "",
         .help =
             "`unset SLURM_JOB_ID SLURM_JOB_NODELIST` in a shell that is in no job of Slurm's (Slurm sets both in what "
             "sbatch and salloc start); launch.slurm.allocation: {job: 4711, nodes: \"h[1-4]\"} names one, or a "
             "component"});
    return std::nullopt;
  }
  if (!*found) return std::nullopt;
  YamlNode allocation{.kind = YamlNode::Kind::kMap, .place = place};
  append_key(allocation, "job", scalar_node(text((*found)->job), place));
  append_key(allocation, "nodes", scalar_node(fold_hostlist((*found)->nodes), place));
  YamlNode whole = root;
  append_key(*whole.find("launch")->find("slurm"), "allocation", std::move(allocation));
  return whole;
}

JobSpec without_allocation(JobSpec job) {
  if (const auto* slurm = job.launch.as<LaunchSlurm>()) {
    LaunchSlurm outside = *slurm;
    outside.allocation.reset();
    job.launch = outside;
  }
  return job;
}

}  // namespace monarch
