#include "supervisor/launch/slurm/slurm_commands.h"

#include <algorithm>
#include <array>
#include <utility>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::array kPassed = {"HOME",   "USER",   "LOGNAME",    "SHELL",          "PATH",          "LANG",
                                "LC_ALL", "TMPDIR", "SLURM_CONF", "XDG_CACHE_HOME", "XDG_STATE_HOME"};

// WARNING: without it an empty environment has no PATH, and srun is looked for nowhere; execvp(3).
constexpr std::string_view kUsualPath = "PATH=/usr/local/bin:/usr/bin:/bin";

struct StateWord {
  std::string_view word;
  SlurmJobState state;
};

// All of squeue(1), JOB STATE CODES.
constexpr std::array<StateWord, 24> kStates = {{
    {"BOOT_FAIL", SlurmJobState::kEnded},       {"CANCELLED", SlurmJobState::kEnded},
    {"COMPLETED", SlurmJobState::kEnded},       {"CONFIGURING", SlurmJobState::kRunning},
    {"COMPLETING", SlurmJobState::kEnding},     {"DEADLINE", SlurmJobState::kEnded},
    {"FAILED", SlurmJobState::kEnded},          {"NODE_FAIL", SlurmJobState::kEnded},
    {"OUT_OF_MEMORY", SlurmJobState::kEnded},   {"PENDING", SlurmJobState::kWaiting},
    {"PREEMPTED", SlurmJobState::kEnded},       {"RUNNING", SlurmJobState::kRunning},
    {"RESV_DEL_HOLD", SlurmJobState::kWaiting}, {"REQUEUE_FED", SlurmJobState::kWaiting},
    {"REQUEUE_HOLD", SlurmJobState::kWaiting},  {"REQUEUED", SlurmJobState::kWaiting},
    {"RESIZING", SlurmJobState::kRunning},      {"REVOKED", SlurmJobState::kEnded},
    {"SIGNALING", SlurmJobState::kRunning},     {"SPECIAL_EXIT", SlurmJobState::kWaiting},
    {"STAGE_OUT", SlurmJobState::kEnding},      {"STOPPED", SlurmJobState::kRunning},
    {"SUSPENDED", SlurmJobState::kRunning},     {"TIMEOUT", SlurmJobState::kEnded},
}};

std::string_view trimmed(std::string_view word) {
  while (!word.empty() && (word.back() == '\n' || word.back() == ' ')) word.remove_suffix(1);
  while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
  return word;
}

}  // namespace

std::string_view take_column(std::string_view& line) {
  const std::size_t bar = std::min(line.find('|'), line.size());
  const std::string_view column = line.substr(0, bar);
  line.remove_prefix(std::min(bar + 1, line.size()));
  return column;
}

Words in_environment(const Words& environment, Words command) {
  Words words = {"/usr/bin/env", "-i"};
  words.insert(words.end(), environment.begin(), environment.end());
  words.insert(words.end(), std::make_move_iterator(command.begin()), std::make_move_iterator(command.end()));
  return words;
}

Words slurm_environment(const std::function<const char*(const char*)>& lookup) {
  Words lines;
  bool path = false;
  for (const char* name : kPassed) {
    const char* value = lookup(name);
    if (value == nullptr) continue;
    path = path || std::string_view(name) == "PATH";
    lines.push_back(text(name, "=", value));
  }
  if (!path) lines.emplace_back(kUsualPath);
  return lines;
}

// --overlap: beside the batch script's own step and each other; --mem=0: all that the job has on the node; --no-kill,
// --kill-on-bad-exit=0, --wait=0: nothing ends it because of another. Core dumps, bindings and MPI are for who starts
// ranks. WARNING: of several processes srun mixes parts of lines where it is unbuffered, and whole ones where it is not
// (Slurm 22.05).
Words step_command(const SlurmStepOrder& order) {
  std::string list;
  for (const std::string& node : order.nodes) list += text(list.empty() ? "" : ",", node);
  Words command = {"srun",
                   text("--jobid=", order.job),
                   "--overlap",
                   text("--nodes=", order.nodes.size()),
                   text("--ntasks=", order.nodes.size()),
                   text("--nodelist=", list),
                   text("--job-name=", order.name),
                   "--mem=0",
                   "--no-kill",
                   "--kill-on-bad-exit=0",
                   "--wait=0",
                   "--mpi=none",
                   "--cpu-bind=none",
                   order.nodes.size() == 1 ? "--unbuffered" : "--ntasks-per-node=1",
                   "--chdir=/"};
  command.insert(command.end(), order.gres.begin(), order.gres.end());
  command.insert(command.end(), order.program.begin(), order.program.end());
  return in_environment(order.environment, std::move(command));
}

std::string worker_step_name(const std::string& job_id, const std::string& node) { return text(job_id, ".", node); }

std::string shared_step_name(const std::string& job_id, Term term, std::uint32_t number) {
  return text(job_id, ".+", term.value(), ".", number);
}

std::string end_step_name(const std::string& job_id, const std::string& node) {
  return text(job_id, ".", node, ".end");
}

std::string check_step_name(const std::string& job_id, const std::string& node) {
  return text(job_id, ".", node, ".check");
}

Words steps_query(std::uint32_t job, const Words& environment) {
  return in_environment(environment, {"squeue", "--noheader", "--steps", text("--jobs=", job), "--format=%i|%j"});
}

Result<std::vector<SlurmStep>> read_steps(std::string_view answer) {
  std::vector<SlurmStep> steps;
  while (!answer.empty()) {
    const std::size_t end = std::min(answer.find('\n'), answer.size());
    const std::string_view line = trimmed(answer.substr(0, end));
    answer.remove_prefix(std::min(end + 1, answer.size()));
    if (line.empty()) continue;
    const std::size_t bar = line.find('|');
    if (bar == std::string_view::npos || bar == 0) {
      return Error{ErrorCode::kInvalid, text("not a line of squeue: `", printable(line), "`")};
    }
    steps.push_back({.id = std::string(line.substr(0, bar)), .name = std::string(line.substr(bar + 1))});
  }
  return steps;
}

Words cancel_step_command(const std::string& step_id, const Words& environment) {
  return in_environment(environment, {"scancel", "--signal=KILL", step_id});
}

Words job_state_query(std::uint32_t job, const Words& environment) {
  return in_environment(environment,
                        {"squeue", "--noheader", "--states=all", text("--jobs=", job), "--format=%A|%T|%r|%V|%N"});
}

Words node_state_query(const std::string& node, const Words& environment) {
  return in_environment(environment, {"sinfo", "--noheader", text("--nodes=", node), "--format=%T"});
}

// WARNING: squeue --jobs=7 shows the other tasks of an array of that number as well, each under an id of its own
// (squeue(1)).
SlurmJobWord read_job_state(std::string_view answer, std::uint32_t job) {
  const std::string prefix = text(job, "|");
  while (!answer.empty()) {
    const std::size_t end = std::min(answer.find('\n'), answer.size());
    std::string_view line = trimmed(answer.substr(0, end));
    answer.remove_prefix(std::min(end + 1, answer.size()));
    if (!line.starts_with(prefix)) continue;
    line.remove_prefix(prefix.size());
    const std::string_view word = take_column(line);
    const std::string_view reason = take_column(line);
    SlurmJobWord read{
        .word = std::string(word), .submitted = std::string(take_column(line)), .nodes = std::string(line)};
    for (const StateWord& known : kStates) {
      if (known.word != word) continue;
      read.state = known.state;
      if (known.state == SlurmJobState::kEnding && reason == "TimeLimit") read.word = "TIMEOUT";
    }
    return read;
  }
  return {};
}

bool was_taken(std::string_view word) {
  constexpr std::array kTaken = {"",         "BOOT_FAIL", "DEADLINE",     "NODE_FAIL",   "PENDING", "PREEMPTED",
                                 "REQUEUED", "REVOKED",   "REQUEUE_HOLD", "REQUEUE_FED", "TIMEOUT"};
  return std::find(kTaken.begin(), kTaken.end(), word) != kTaken.end();
}

bool says_no_such_job(std::string_view words) {
  return words.find("Invalid job id specified") != std::string_view::npos;
}

Words munge_query(const Words& environment) { return in_environment(environment, {"munge", "--no-input"}); }

bool says_not_authenticated(std::string_view words) {
  return words.find("unge.socket") != std::string_view::npos || words.find("unge encode") != std::string_view::npos ||
         words.find("uthentication") != std::string_view::npos;
}

bool node_answers(std::string_view state) {
  const std::string_view word = trimmed(state.substr(0, state.find('\n')));
  if (word.empty() || word.back() == '*') return false;  // `*`: it does not answer; sinfo(1), NODE STATE CODES
  // A node that is drained may be so because something of a job could not be killed there.
  constexpr std::array kDoubtful = {"down", "drain", "fail", "inval", "reboot", "unk"};
  return std::none_of(kDoubtful.begin(), kDoubtful.end(),
                      [word](const char* part) { return word.find(part) != std::string_view::npos; });
}

}  // namespace monarch
