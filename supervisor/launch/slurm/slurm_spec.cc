// What a spec says of nodes of Slurm: its keys, and what is built of them.

#include "supervisor/launch/slurm/slurm_spec.h"

#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/spec/hostlist.h"
#include "supervisor/launch/launchers.h"
#include "supervisor/spec/schema/launcher_spec.h"
#include "supervisor/spec/yaml/values.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::int64_t kMostSlurmHosts = limits::kHostsPerJob;

constexpr KeyRow kSlurmRows[] = {
    {.path = "launch.slurm", .type = ValueType::kMap, .doc = "nodes of a Slurm cluster"},
    {.path = "launch.slurm.nodes",
     .type = ValueType::kInteger,
     .default_value = "auto",
     .words = "auto",
     .least = 1,
     .most = kMostSlurmHosts,
     .doc = "auto: what the meshes need, and the spares"},
    MONARCH_SPARES_ROWS("launch.slurm", "nodes"),
    {.path = "launch.slurm.allocation",
     .type = ValueType::kMap,
     .doc = "the Slurm job that has the nodes; inside of one it is found by itself"},
    {.path = "launch.slurm.allocation.job",
     .type = ValueType::kInteger,
     .least = 1,
     .most = 4'294'967'295,
     .required = true,
     .doc = "its id"},
    {.path = "launch.slurm.allocation.nodes",
     .type = ValueType::kText,
     .least = 1,
     .required = true,
     .doc = "as Slurm writes them: node[01-20]"},
    {.path = "launch.slurm.partition", .type = ValueType::kText, .least = 1, .doc = "sbatch --partition"},
    {.path = "launch.slurm.account", .type = ValueType::kText, .least = 1, .doc = "sbatch --account"},
    {.path = "launch.slurm.qos", .type = ValueType::kText, .least = 1, .doc = "sbatch --qos"},
    {.path = "launch.slurm.time", .type = ValueType::kDuration, .least = 60'000, .doc = "sbatch --time"},
    {.path = "launch.slurm.constraint", .type = ValueType::kText, .least = 1, .doc = "sbatch --constraint"},
    {.path = "launch.slurm.exclude", .type = ValueType::kList, .default_value = "[]", .doc = "nodes never to take"},
    {.path = "launch.slurm.exclude.[]", .type = ValueType::kText, .least = 1},
    {.path = "launch.slurm.options",
     .type = ValueType::kList,
     .default_value = "[]",
     .doc = "further options of sbatch"},
    {.path = "launch.slurm.options.[]", .type = ValueType::kText, .least = 1},
    {.path = "launch.slurm.replacements",
     .type = ValueType::kInteger,
     .default_value = "4",
     .most = kMostSlurmHosts,
     .doc = "nodes asked for in the place of lost ones, at a time; 0: none"},
    {.path = "launch.slurm.queue_limit",
     .type = ValueType::kDuration,
     .default_value = "15m",
     .least = 1'000,
     .doc = "for such a node, in Slurm's queue"},
    {.path = "launch.slurm.own_steps",
     .type = ValueType::kInteger,
     .default_value = "100",
     .least = 1,
     .most = kMostSlurmHosts,
     .doc = "so many hosts that are launched at once get a step of their own each; more share one"},
    {.path = "launch.slurm.on_preempt",
     .type = ValueType::kWord,
     .default_value = "stop",
     .words = "stop|requeue|successor",
     .doc = "what to do when Slurm wants the nodes back"},
    {.path = "launch.slurm.warn",
     .type = ValueType::kDuration,
     .default_value = "120s",
     .doc = "how long before the end of its time ranks are told"},
};

constexpr KeyHelp kSlurmHelp[] = {
    {"launch.slurm", "{nodes: 18, spares: 2}"},
    {"launch.slurm.nodes", "18"},
    MONARCH_SPARES_HELP("launch.slurm", "2", "20m"),
    {"launch.slurm.allocation", "{job: 4711, nodes: \"node[01-20]\"}",
     "Inside of an allocation it is what SLURM_JOB_ID and SLURM_JOB_NODELIST say, and the job's own copy of its spec "
     "has it. All its nodes are the pool: the meshes take the first of them, the next are spares, the rest is cold."},
    {"launch.slurm.allocation.job", "4711"},
    {"launch.slurm.allocation.nodes", "\"node[01-20]\""},
    {"launch.slurm.partition", "gpu",
     "This, and account, qos, time, constraint, exclude and options, are for nodes that monarch asks Slurm for. What "
     "is "
     "left out is as in the job whose nodes it has: also how many cores, how much memory and which GPUs."},
    {"launch.slurm.account", "physics"},
    {"launch.slurm.qos", "high"},
    {"launch.slurm.time", "4h",
     "Slurm's 4:00:00 is written `4h`, and 1-12 is written `36h`. Left out: what is left of the job's own."},
    {"launch.slurm.constraint", "ib"},
    {"launch.slurm.exclude", "[bad07]"},
    {"launch.slurm.options", "[\"--mail-type=FAIL\"]"},
    {"launch.slurm.replacements", "0",
     "Where a host is lost, and no node of the job is left for its place or for that of the spare that took it, Slurm "
     "is "
     "asked for one more node like the others, "
     "by "
     "a job of its own, which only holds it: its name is the job's id, its comment says whose it is. It is given back "
     "when "
     "its host is not needed any longer. supervision.reallocate says how often that may be."},
    {"launch.slurm.queue_limit", "1h",
     "Then the request is cancelled, and the next stage of recovery follows: the job shrinks if it may, or fails. One "
     "that has shrunk asks again, at longer and longer intervals."},
    {"launch.slurm.own_steps", "16",
     "A step of its own, with an srun beside the supervisor, can be ended alone. One that serves many is created by "
     "Slurm once, not for each; it ends with the first process of its one srun, and all its workers with it. A host "
     "that has no part in it, or whose place is taken later, gets one of its own."},
    {"launch.slurm.on_preempt", "requeue"},
    {"launch.slurm.warn", "5m"},
};

std::optional<Allocation> allocation_of(const YamlNode* slurm, Report& report) {
  const YamlNode* allocation = value_of(slurm, "allocation");
  const auto job = integer_of(allocation, "job");
  const YamlNode* nodes = nonempty_scalar_of(allocation, "nodes");
  if (!job || *job == 0 || nodes == nullptr) return std::nullopt;  // refused by the schema, or not there
  auto names = expand_hostlist(nodes->text);
  if (names.ok()) return Allocation{.job = *job, .nodes = std::move(*names)};
  report.error("E0208", nodes->place,
               {.message = text("`launch.slurm.allocation.nodes`: ", names.error().message),
                .label = "",
                .help = "write it as $SLURM_JOB_NODELIST has it, or leave `allocation` out"});
  return std::nullopt;
}

// WARNING: sbatch takes "node0[1-3]" in --exclude, and what is no such list it takes for a name (sbatch(1)).
SlurmRequest request_of(const YamlNode* slurm, Report& report) {
  SlurmRequest out{.partition = text_of(slurm, "partition").value_or(""),
                   .account = text_of(slurm, "account").value_or(""),
                   .qos = text_of(slurm, "qos").value_or(""),
                   .constraint = text_of(slurm, "constraint").value_or("")};
  const Duration time = duration_or(slurm, "time", Duration::zero());
  if (time > Duration::zero()) out.time = time;
  out.exclude = texts_of(slurm, "exclude");
  out.options = texts_of(slurm, "options");
  const YamlNode* options = value_of(slurm, "options");
  for (std::size_t i = 0; i < out.options.size(); ++i) {
    if (out.options[i].starts_with('-')) continue;
    report.error("E0208", options->items[i].place,
                 {.message = text("`launch.slurm.options` takes options of sbatch, not `", out.options[i], "`"),
                  .label = "starts with no `-`",
                  .help = "write an option and its value as one word: `--mail-type=FAIL`"});
  }
  return out;
}

Launch build_slurm(const YamlNode* slurm, Place, const PathBases&, Report& report) {
  LaunchSlurm out;
  out.nodes = integer_of(slurm, "nodes");
  if (out.nodes == 0U) out.nodes.reset();  // refused by the schema
  out.spares = spares_of(slurm);
  out.prepare = prepare_of(slurm, report);
  out.allocation = allocation_of(slurm, report);
  out.request = request_of(slurm, report);
  if (const auto count = integer_of(slurm, "replacements")) out.replacements = *count;
  out.queue_limit = duration_or(slurm, "queue_limit", out.queue_limit);
  if (const auto count = integer_of(slurm, "own_steps")) out.own_steps = *count;
  out.warn = duration_or(slurm, "warn", out.warn);
  for (const OnPreempt action : {OnPreempt::kRequeue, OnPreempt::kSuccessor}) {
    if (text_of(slurm, "on_preempt") == to_text(action)) out.on_preempt = action;
  }
  return out;
}

PoolKey slurm_pool_key(const JobSpec& job, const YamlNode* node) {
  PoolKey pool{.path = "launch.slurm.nodes",
               .called = "`launch.slurm.nodes`",
               .node = value_of(node, "nodes"),
               .verb = "is",
               .counts = true,
               .one_host = "node"};
  const auto& allocation = job.launch.facts().allocation;
  if (!allocation) return pool;
  // Nobody writes that key by hand.
  return {.path = "launch.slurm.allocation",
          .called = text("job ", allocation->job, " of Slurm"),
          .node = value_of(value_of(node, "allocation"), "nodes"),
          .verb = "has",
          .one_host = "node",
          .more_by = "sbatch or salloc -N "};
}

// What it does not do yet.
void check_slurm(const JobSpec& job, const YamlNode& root, Report& report) {
  if (!job.workspace) return;
  const YamlKey* key = root.find_key("workspace");
  report.error(
      "E0401", key == nullptr ? root.place : key->place,
      {.message = "this build cannot do that yet: `workspace` with `launch: slurm`",
       .label = "is not copied to nodes of Slurm",
       .help = "leave `workspace` out: ranks begin in the spec's folder, on a file system that the nodes share"});
}

std::vector<std::string> slurm_notes(const JobSpec& job) {
  if (job.control.via != ControlVia::kSsh) return {};
  return {"control.via: ssh is not used: nodes of Slurm are reached without SSH"};
}

}  // namespace

const LauncherSpec& slurm_spec() {
  static const LauncherSpec kSpec{.name = "slurm",
                                  .flag_words = "slurm or slurm:N",
                                  .flag_key = "nodes",
                                  .flag_counts = true,
                                  .rows = kSlurmRows,
                                  .help = kSlurmHelp,
                                  .build = build_slurm,
                                  .pool_key = slurm_pool_key,
                                  .check = check_slurm,
                                  .notes = slurm_notes};
  return kSpec;
}

}  // namespace monarch
