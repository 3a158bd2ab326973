#include "cli/args/synonyms.h"

#include <algorithm>

namespace monarch {

namespace {

struct Synonym {
  std::string_view theirs;
  std::string_view ours;
};

constexpr Synonym kCommands[] = {
    {"launch", "run"},     {"exec", "run"},       {"apply", "run"},       {"submit", "up"},     {"sbatch", "up"},
    {"start", "up"},       {"deploy", "up"},      {"kill", "stop"},       {"cancel", "stop"},   {"scancel", "stop"},
    {"down", "stop"},      {"delete", "stop"},    {"terminate", "stop"},  {"list", "ps"},       {"ls", "ps"},
    {"jobs", "ps"},        {"squeue", "ps"},      {"describe", "status"}, {"show", "status"},   {"inspect", "status"},
    {"info", "status"},    {"top", "status"},     {"check", "validate"},  {"lint", "validate"}, {"verify", "validate"},
    {"dry-run", "plan"},   {"preview", "plan"},   {"map", "plan"},        {"tail", "logs"},     {"output", "logs"},
    {"history", "events"}, {"connect", "attach"}, {"sattach", "attach"},  {"follow", "attach"},
};

constexpr std::string_view kDims =
    "hosts and ranks are the dimensions of a mesh, `dims` in the spec; without a spec: `-n 8 -- PROGRAM`";
constexpr std::string_view kSsh = "hosts are named in the spec, under `launch`; without a spec: `-H a,b -- PROGRAM`";
constexpr std::string_view kPlan = "`monarch plan` shows what would run, and starts nothing";
constexpr std::string_view kEnv = "variables are set in the spec: `env` and `env_pass` of a mesh";
constexpr std::string_view kUp = "`monarch up` starts a job and leaves it running";
constexpr std::string_view kChosen = "addresses and ports of the first rank are chosen by monarch: leave it out";
constexpr std::string_view kRestart = "restarts are set in the spec: `supervision.restart.max`";

constexpr Synonym kFlags[] = {
    {"--nnodes", kDims},
    {"--nproc-per-node", kDims},
    {"--nodes", kDims},
    {"--ntasks", kDims},
    {"--ntasks-per-node", kDims},
    {"--map-by", kDims},
    {"--np", kDims},
    {"-np", kDims},
    {"-N", kDims},
    {"--hostfile", kSsh},
    {"--host", kSsh},
    {"--nodelist", kSsh},
    {"--partition", kSsh},
    {"-w", kSsh},
    {"-p", kSsh},
    {"--dry-run", kPlan},
    {"--dryrun", kPlan},
    {"--test-only", kPlan},
    {"--env", kEnv},
    {"--export", kEnv},
    {"-e", kEnv},
    {"-x", kEnv},
    {"--detach", kUp},
    {"--background", kUp},
    {"-d", kUp},
    {"--rdzv-endpoint", kChosen},
    {"--rdzv-backend", kChosen},
    {"--master-addr", kChosen},
    {"--master-port", kChosen},
    {"--node-rank", kChosen},
    {"--standalone", kChosen},
    {"--max-restarts", kRestart},
    {"--retries", kRestart},
    {"--chdir", "the working directory is set in the spec: `workdir` of a mesh"},
    {"--wdir", "the working directory is set in the spec: `workdir` of a mesh"},
    {"--gpus-per-task", "GPUs are asked for in the spec: `resources.gpus` of a mesh"},
    {"--gres", "GPUs are asked for in the spec: `resources.gpus` of a mesh"},
    {"--cpus-per-task", "cores are asked for in the spec: `resources.cpus` of a mesh"},
    {"-c", "cores are asked for in the spec: `resources.cpus` of a mesh"},
    {"--label", "every line has [mesh/rank@host] in front; --no-prefix takes it away"},
    {"-l", "every line has [mesh/rank@host] in front; --no-prefix takes it away"},
};

std::optional<std::string> look_up(const Synonym* begin, const Synonym* end, std::string_view theirs) {
  const Synonym* found = std::find_if(begin, end, [&](const Synonym& s) { return s.theirs == theirs; });
  return found == end ? std::nullopt : std::optional(std::string(found->ours));
}

}  // namespace

std::optional<std::string> command_meant(std::string_view written) {
  return look_up(std::begin(kCommands), std::end(kCommands), written);
}

bool is_other_launcher(std::string_view written) {
  return written == "torchrun" || written == "srun" || written == "mpirun" || written == "mpiexec";
}

std::optional<std::string> instead_of_flag(std::string_view command, std::string_view flag) {
  if (command == "stop" && (flag == "--force" || flag == "-9")) return "`monarch stop --kill` leaves no grace";
  // Of other commands the same letters mean other things.
  if (command != "run" && command != "up" && command != "plan") return std::nullopt;
  std::string hyphens(flag);
  std::replace(hyphens.begin(), hyphens.end(), '_', '-');
  return look_up(std::begin(kFlags), std::end(kFlags), hyphens);
}

}  // namespace monarch
