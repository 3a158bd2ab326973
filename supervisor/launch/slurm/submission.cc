#include "supervisor/launch/slurm/submission.h"

#include <algorithm>
#include <utility>

#include "supervisor/core/spec/resources.h"
#include "supervisor/launch/slurm/slurm_commands.h"
#include "supervisor/launch/slurm/slurm_requests.h"
#include "supervisor/launch/slurm/slurm_spec.h"
#include "transport/base/json.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kToken = "monarch job ";
constexpr std::string_view kQueueFormat = "--format=%A|%T|%r|%N|%V|%j|%k";

// A word as sbatch(1) reads it of a line of the script: in quotes where it has anything but what is plain there.
std::string script_word(const std::string& word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_=.,:/[]@%+*&|()").find(c) != std::string_view::npos;
  };
  if (std::all_of(word.begin(), word.end(), plain)) return word;
  std::string quoted = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

// Of a path that sbatch expands: %j and the like are the job's.
std::string as_it_is(const std::string& path) {
  std::string doubled;
  for (const char c : path) doubled += c == '%' ? "%%" : std::string(1, c);
  return doubled;
}

class Script {
 public:
  explicit Script(std::string_view line) : text_(line) { text_ += '\n'; }

  void option(const std::string& word) {
    const bool odd = std::any_of(word.begin(), word.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; });
    if (odd && !error_) {
      error_ = Error{ErrorCode::kInvalid,
                     text("launch.slurm: `", printable(word), "` cannot stand in a line of sbatch's script")};
    }
    text_ += text("#SBATCH ", script_word(word), '\n');
  }
  void option(std::string_view name, const std::string& value) {
    if (!value.empty()) option(text(name, value));
  }
  void line(std::string_view line) { text_ += text(line, '\n'); }

  Result<std::string> take() {
    if (error_) return std::move(*error_);
    return std::move(text_);
  }

 private:
  std::string text_;
  std::optional<Error> error_;
};

// None of the spec's lines.
std::string end_word(const std::string& spec) {
  std::string word = "END_OF_SPEC";
  while (text('\n', spec).find(text('\n', word)) != std::string::npos) word += '_';
  return word;
}

QueuedJob::State state_of(SlurmJobState state) {
  switch (state) {
    case SlurmJobState::kWaiting: return QueuedJob::State::kWaiting;
    case SlurmJobState::kRunning: return QueuedJob::State::kRunning;
    case SlurmJobState::kEnding: return QueuedJob::State::kEnding;
    case SlurmJobState::kEnded: return QueuedJob::State::kOver;
    case SlurmJobState::kUnknown: break;
  }
  return QueuedJob::State::kUnknown;
}

// One line of kQueueFormat.
QueuedJob read_line(std::string_view line) {
  QueuedJob found;
  const auto number = read_submission(take_column(line));
  if (number.ok()) found.job = *number;
  found.word = take_column(line);
  found.state = state_of(read_job_state(text(found.job, '|', found.word, '|'), found.job).state);
  found.reason = take_column(line);
  if (found.reason == "None") found.reason.clear();
  found.nodes = take_column(line);
  found.submitted = take_column(line);
  found.name = take_column(line);
  found.comment = line;
  found.taken = found.state == QueuedJob::State::kOver && was_taken(found.word);
  return found;
}

template <class Act>
void each_line(std::string_view answer, Act act) {
  while (!answer.empty()) {
    const std::size_t end = std::min(answer.find('\n'), answer.size());
    const QueuedJob found = read_line(answer.substr(0, end));
    answer.remove_prefix(std::min(end + 1, answer.size()));
    if (found.job != 0) act(found);
  }
}

// "--array" of "--array=0-1", "-a" of "-a0-1".
std::string option_name(const std::string& word) {
  if (word.starts_with("--")) return word.substr(0, word.find_first_of("= "));
  return word.substr(0, 2);
}

bool has_option(const std::vector<std::string>& options, std::initializer_list<std::string_view> names) {
  return std::any_of(options.begin(), options.end(), [names](const std::string& word) {
    return std::find(names.begin(), names.end(), option_name(word)) != names.end();
  });
}

// sbatch reads no script with the line ends of DOS.
std::string with_plain_ends(std::string_view words) {
  std::string plain;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] != '\r' || i + 1 == words.size() || words[i + 1] != '\n') plain += words[i];
  }
  while (plain.ends_with('\n')) plain.pop_back();
  return plain;
}

}  // namespace

Result<std::string> submission_script(const JobSpec& job, const SubmissionOrder& order) {
  const auto* slurm = job.launch.as<LaunchSlurm>();
  if (slurm == nullptr) return Error{ErrorCode::kInvalid, "the job is not for Slurm"};
  const SlurmRequest& wish = slurm->request;
  for (const std::string& word : wish.options) {
    if (!has_option({word}, {"--array", "-a", "--clusters", "-M", "--cluster", "--requeue", "--wait", "-W", "--wrap"}))
      continue;
    return Error{ErrorCode::kInvalid,
                 text("launch.slurm.options: `", printable(word), "` is not for a job that monarch gives to sbatch")};
  }
  Script script("#!/bin/bash");
  script.option("--job-name=", job.name);
  script.option(text("--nodes=", slurm->nodes.value_or(job.hosts_needed() + job.spares())));
  script.option("--ntasks-per-node=1");
  script.option("--no-kill");
  script.option(slurm->on_preempt == OnPreempt::kRequeue ? "--requeue" : "--no-requeue");
  script.option("--comment=monarch");  // nothing else runs in it
  script.option("--partition=", wish.partition);
  script.option("--account=", wish.account);
  script.option("--qos=", wish.qos);
  script.option("--constraint=", wish.constraint);
  constexpr std::int64_t kMinute = 60'000;
  if (wish.time) {
    script.option(
        text("--time=", std::max<std::int64_t>((wish.time->count_milliseconds() + kMinute - 1) / kMinute, 1)));
  }
  if (!wish.exclude.empty()) script.option("--exclude=", join(wish.exclude, ","));
  if (const std::uint32_t gpus = gpus_per_node(job); gpus > 0) script.option(text("--gpus-per-node=", gpus));
  // A host is a whole node, unless the spec says how much of it.
  const bool said = has_option(wish.options, {"--exclusive", "--oversubscribe", "-s", "--share", "--cpus-per-task",
                                              "-c", "--cpus-per-gpu", "--mincpus"});
  if (const std::uint32_t cpus = cpus_per_node(job); cpus > 0) {
    script.option(text("--cpus-per-task=", cpus));
  } else if (!said) {
    script.option("--exclusive");
  }
  script.option("--chdir=", order.directory);
  for (const std::string& word : wish.options) script.option(word);
  // What Slurm does not show to whom the script runs; unless the wishes undo it.
  if (!has_option(wish.options, {"--no-kill", "-k"})) script.line("export SLURM_NO_KILL=1");
  const std::string end = end_word(order.spec);
  script.line(text("exec ", shell_word(order.monarch), " run ${", kSubmittedVariable, ":+--submitted \"$",
                   kSubmittedVariable, "\"} - <<'", end, "'"));
  script.line(with_plain_ends(order.spec));
  script.line(end);
  return script.take();
}

// What stands on the command line counts before the script's lines: whose job it is, nobody's options change.
std::vector<std::string> submit_command(const std::string& job_id, const std::string& job_directory) {
  return {"sbatch",
          "--parsable",
          "--open-mode=append",
          text("--output=", as_it_is(job_directory), "/", kSubmissionOutputFile),
          text("--comment=", kToken, job_id),
          text("--export=ALL,", kSubmittedVariable, "=", job_id),
          text(job_directory, "/", kSubmissionScriptFile)};
}

std::vector<std::string> mark_command(std::uint32_t job, const std::string& job_id) {
  return {"scontrol", "update", text("JobId=", job), "Requeue=1", text("Comment=", kToken, job_id)};
}

std::vector<std::string> requeue_command(std::uint32_t job) { return {"scontrol", "requeue", text(job)}; }

// SLURM_CONF says where Slurm is.
std::vector<std::string> successor_command(const std::string& job_id, const std::string& job_directory,
                                           const std::vector<std::string>& variables) {
  std::vector<std::string> command = {"/usr/bin/env"};
  for (const std::string& name : variables) {
    const bool option = name.starts_with("SLURM") || name.starts_with("SBATCH_") || name.starts_with("SRUN_");
    if (!option || name == "SLURM_CONF") continue;
    command.push_back(text("--unset=", name));
  }
  const std::vector<std::string> submit = submit_command(job_id, job_directory);
  command.insert(command.end(), submit.begin(), submit.end());
  return command;
}

Result<std::uint32_t> read_submission(std::string_view answer) { return read_submitted(answer); }

std::string write_submitted(const SubmittedJob& submitted) {
  return to_json(Json::object({{"v", 1},
                               {"slurm", Json::object({{"job", submitted.job}, {"submitted", submitted.submitted}})},
                               {"host", submitted.host}})) +
         "\n";
}

Result<SubmittedJob> parse_submitted(const std::string& json) {
  const auto parsed = parse_json(json);
  if (!parsed.ok()) return Error{ErrorCode::kInvalid, text("reading ", kSubmittedFile, ": ", parsed.error().message)};
  const Json* slurm = parsed->find("slurm");
  const std::uint64_t job = slurm == nullptr ? UINT64_MAX : slurm->get_uint64("job").value_or(UINT64_MAX);
  if (job > UINT32_MAX) {
    return Error{ErrorCode::kInvalid, text("reading ", kSubmittedFile, ": it names no job of Slurm")};
  }
  return SubmittedJob{.job = static_cast<std::uint32_t>(job),
                      .submitted = slurm->get_string("submitted").value_or(""),
                      .host = parsed->get_string("host").value_or("")};
}

std::vector<std::string> queue_query(std::uint32_t job) {
  return {"squeue", "--noheader", "--states=all", text("--jobs=", job), std::string(kQueueFormat)};
}

QueuedJob read_queue(std::string_view answer, std::uint32_t job) {
  QueuedJob mine;
  each_line(answer, [&](const QueuedJob& found) {
    if (found.job == job) mine = found;
  });
  return mine;
}

std::vector<std::string> lost_submission_query() {
  return {"squeue", "--noheader", "--me", "--states=all", std::string(kQueueFormat)};
}

std::optional<QueuedJob> find_submission(std::string_view answer, const std::string& job_id) {
  std::optional<QueuedJob> mine;
  each_line(answer, [&](const QueuedJob& found) {
    if (found.comment == text(kToken, job_id)) mine = found;
  });
  return mine;
}

bool is_submission(const QueuedJob& found, const std::string& job_id) {
  return found.comment == text(kToken, job_id) ||
         (!found.comment.starts_with(kToken) && found.name == job_id.substr(0, job_id.rfind('-')));
}

bool is_any_submission(const QueuedJob& found) { return found.comment.starts_with(kToken); }

std::vector<std::string> not_for_asking() { return {"SQUEUE_*", "SCANCEL_*", "SLURM_CLUSTERS"}; }

std::vector<std::string> not_for_submitting(const JobSpec& job) {
  std::vector<std::string> names = {"SBATCH_ARRAY_INX", "SBATCH_REQUEUE",  "SBATCH_WAIT",   "SBATCH_CLUSTERS",
                                    "SLURM_CLUSTERS",   "SBATCH_JOB_NAME", "SBATCH_EXPORT", "SBATCH_OPEN_MODE"};
  const auto* slurm = job.launch.as<LaunchSlurm>();
  if (slurm == nullptr) return names;
  const SlurmRequest& wish = slurm->request;
  if (!wish.partition.empty()) names.emplace_back("SBATCH_PARTITION");
  if (!wish.account.empty()) names.emplace_back("SBATCH_ACCOUNT");
  if (!wish.qos.empty()) names.emplace_back("SBATCH_QOS");
  if (!wish.constraint.empty()) names.emplace_back("SBATCH_CONSTRAINT");
  if (wish.time) names.emplace_back("SBATCH_TIMELIMIT");
  return names;
}

std::vector<std::string> cancel_command(std::uint32_t job) { return {"scancel", text(job)}; }

bool says_refused(std::string_view words) { return is_refusal(words); }

bool says_unknown_job(std::string_view words) { return says_no_such_job(words); }

}  // namespace monarch
