#include "cli/start/launch.h"

#include <algorithm>

#include "cli/args/say.h"
#include "cli/job/spec_origin.h"
#include "cli/start/allocation_check.h"
#include "cli/start/continued_job.h"
#include "cli/start/submit.h"
#include "cli/start/workspace_check.h"
#include "supervisor/client/abandoned_job.h"
#include "supervisor/client/continuation.h"
#include "supervisor/client/link/viewer_json.h"
#include "supervisor/client/new_job.h"
#include "supervisor/client/start_supervisor.h"
#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

LaunchedJob failed(const Context& context, int exit_code, const std::string& message) {
  const std::string_view id = exit_code == kExitInternal ? "E0908" : "E0909";
  say_error(context.terminal, exit_code == kExitUsage
                                  ? state_complaint(message)
                                  : Complaint{.id = std::string(id), .message = message, .help = ""});
  return {.view = nullptr, .exit_code = exit_code};
}

LaunchedJob not_supervised(const Context& context, const StartFailure& failure, const std::string& log) {
  const std::string_view id = failure.exit_code == kExitUsage      ? "E0911"
                              : failure.exit_code == kExitInternal ? "E0908"
                                                                   : "E0909";
  say_error(context.terminal,
            {.id = std::string(id), .message = printable(failure.message), .help = text("its log is ", log)});
  return {.view = nullptr, .exit_code = failure.exit_code};
}

// A place that is wrong is the user's to mend; one that is full or cannot be written is a failure of the journal's
// ground.
int exit_code_for(const Error& error) { return error.code == ErrorCode::kInvalid ? kExitUsage : kExitJournal; }

// Without one, the job would look as if its supervisor had crashed.
Verdict write_failed_verdict(const JobDirectory& job, const StartFailure& failure) {
  Verdict verdict;
  verdict.outcome = Outcome::kFailed;
  verdict.exit_code = failure.exit_code;
  verdict.cause.kind = CauseKind::kInternal;
  verdict.cause.summary = failure.message;
  if (failure.host) {
    verdict.cause.kind = CauseKind::kHost;
    verdict.cause.host = failure.host->host;
    verdict.failed_hosts.push_back(*failure.host);
  }
  verdict.reason = text("the supervisor did not start: ", failure.message);
  verdict.started = verdict.ended = wall_now();
  // If it cannot be written, the reason was said on stderr, and `ps` shows the job as abandoned.
  (void)job.directory.write_file(kVerdictFile, to_json(verdict_json(verdict)) + "\n");
  return verdict;
}

// The folder that a job was given where it was submitted.
Result<NewJob> begin_submitted(const std::string& id, const NewJobFiles& files) {
  MONARCH_ASSIGN(StateDir state, open_state());
  MONARCH_ASSIGN(JobDirectory job, state.open_job(id));
  MONARCH_ASSIGN(const JobView view, JobView::open(state, id));
  const auto verdict = view.verdict();
  if (verdict.ok() && *verdict) {
    return Error{ErrorCode::kInvalid, text(id, " has ended already: ", printable((*verdict)->reason))};
  }
  // A script that Slurm runs twice: what the first has left, or holds, is not this one's.
  if (view.endpoint().ok() || view.live() || view.awaited_from()) {
    return Error{ErrorCode::kInvalid, text(id, " has begun already, and does not begin again")};
  }
  MONARCH_TRY(write_job_files(job, files));
  return NewJob{.state = std::move(state), .job = std::move(job)};
}

// One of the same spec may hold GPUs and ports that this one wants, and may be what was meant.
void note_abandoned(const SpecInput& input, const Terminal& terminal) {
  const auto state = open_state();
  if (!state.ok()) return;  // there is no job yet, or the next step says why
  const auto id = abandoned_job_of(*state, {.name = input.spec.name, .text = input.text});
  if (!id) return;
  say_note(terminal, text("job ", *id, " of the same spec has lost its supervisor: `monarch up --resume ", *id,
                          "` goes on with it, `monarch rm ", *id, "` removes it; this is another job"));
}

// A script of somebody's own is not ours to submit again, with the options that it was given.
bool may_go_on(OnPreempt action, bool submitted, const Context& context) {
  const bool in_a_script = !context.env.get("SLURM_TASK_PID").empty();
  if (action == OnPreempt::kSuccessor && !submitted) {
    say_error(
        context.terminal,
        {.id = "E0911",
         .message = "`launch.slurm.on_preempt: successor` is for a job that monarch submits, and this shell is in "
                    "an allocation already",
         .help = in_a_script ? "`requeue` has Slurm run this script again"
                             : "start it outside of any allocation, and monarch submits it"});
    return false;
  }
  if (action == OnPreempt::kRequeue && !in_a_script) {
    say_note(context.terminal,
             "launch.slurm.on_preempt: Slurm requeues jobs of sbatch, and this shell is in one of salloc: it is not "
             "going to go on");
  }
  return true;
}

std::string indented(const std::string& lines) {
  std::string out;
  std::string_view rest = lines;
  while (!rest.empty()) {
    const std::size_t newline = rest.find('\n');
    out += text("   │ ", printable(rest.substr(0, newline)), "\n");
    rest.remove_prefix(newline == std::string_view::npos ? rest.size() : newline + 1);
  }
  return out;
}

}  // namespace

bool is_supervised_elsewhere(const JobSpec& spec) {
  return spec.supervised_away() || spec.launch.facts().waits_in_queue;
}

std::vector<Flag> launch_flags() {
  return {{.name = "accept-new",
           .value = "",
           .help = "take the key of a host that known_hosts does not have, and note it there"}};
}

Flag continue_flag() {
  return {.name = "continue",
          .value = "JOB",
          .help = "go on from that job, which has ended: its committed checkpoints, and its generations"};
}

namespace {

// False: something of the command line or the workspace cannot go with this spec, and was said.
bool goes_with_its_flags(const SpecInput& input, const Arguments& arguments, const Context& context) {
  if (arguments.has("accept-new") && !input.spec.launch.facts().has_host_keys) {
    say_error(context.terminal, {.id = "E0903",
                                 .message = "`--accept-new` is for hosts that SSH reaches, and this job has none",
                                 .help = "leave it out"});
    return false;
  }
  if (input.spec.input && is_supervised_elsewhere(input.spec)) {
    say_error(context.terminal,
              {.id = "E0401",
               .message = "this build cannot do that yet: `stdin` where the supervisor is on another machine",
               .help = "leave it out, and let the program read a file"});
    return false;
  }
  const WorkspaceLook look = look_at_workspace(input.spec, input.tree, input.sources);
  if (!has_its_workspace(look, input.sources, context.terminal)) return false;
  for (const std::string& note : input.notes) say_note(context.terminal, note);
  if (!arguments.has("continue") || !input.spec.supervised_away()) return true;
  say_error(context.terminal,
            {.id = "E0401",
             .message = "this build cannot do that yet: `--continue` where the supervisor is on another machine",
             .help = "write `supervisor: {on: here}`"});
  return false;
}

// Of a job that has its folder: its supervisor runs, or why it does not is in its verdict.
LaunchedJob start_launched(const NewJob& made, const SupervisorBinaries& binaries, const StartOptions& start,
                           std::unique_ptr<SignalFd> signals, const Context& context) {
  const JobDirectory& job = made.job;
  const std::string log = text(job.directory.path(), "/", kSupervisorLogFile);
  const StartFailure failure = start_supervisor(job, binaries, start);
  // Whoever holds it has what it says of its end.
  if (failure.exit_code == kExitBusy) return not_supervised(context, failure, log);
  if (failure.exit_code != kExitOk) {
    const Verdict verdict = write_failed_verdict(job, failure);
    LaunchedJob none = not_supervised(context, failure, log);
    write_err(indented(failure.log_tail));
    none.end = {.exit_code = failure.exit_code, .verdict = verdict};
    none.signals = std::move(signals);
    auto ended = JobView::open(made.state, job.id);
    if (ended.ok()) none.ended = std::make_unique<JobView>(std::move(*ended));  // else there is nothing to leave
    return none;
  }
  auto view = JobView::open(made.state, job.id);
  if (!view.ok()) return failed(context, kExitInternal, view.error().message);
  return {.view = std::make_unique<JobView>(std::move(*view)), .signals = std::move(signals), .exit_code = kExitOk};
}

}  // namespace

LaunchedJob launch_job(const SpecInput& input, const Arguments& arguments, const Context& context,
                       std::optional<int> tied) {
  if (!goes_with_its_flags(input, arguments, context)) return {.view = nullptr, .exit_code = kExitUsage};
  std::optional<std::string> before;
  if (arguments.has("continue") && !arguments.has("submitted")) {
    before = continued_job(*arguments.value("continue"), context);
    if (!before) return {.view = nullptr, .exit_code = kExitUsage};
  }
  const LaunchFacts& hosts = input.spec.launch.facts();
  if (hosts.waits_in_queue) {
    if (!has_its_variables(input, context.env, context.terminal)) return {.view = nullptr, .exit_code = kExitUsage};
    note_abandoned(input, context.terminal);
    return submit_job(input, before, context);
  }
  auto signals = SignalFd::create(SignalPolicy::signals(ViewerKind::kOwner));
  if (!signals.ok()) return failed(context, kExitInternal, signals.error().message);
  const auto binaries = find_binaries(context.executable, context.env.get("MONARCH_WORKER"));
  if (!binaries.ok()) return failed(context, kExitInternal, binaries.error().message);
  if (!has_its_variables(input, context.env, context.terminal)) return {.view = nullptr, .exit_code = kExitUsage};
  const auto submitted = arguments.value("submitted");
  if (hosts.allocation && !may_go_on(hosts.on_preempt, submitted.has_value(), context)) {
    return {.view = nullptr, .exit_code = kExitUsage};
  }
  if (const auto objection = hosts.allocation ? ask_of_allocation(*hosts.allocation) : std::nullopt) {
    say_error(context.terminal, {.id = "E0911",
                                 .message = *objection,
                                 .help = "`unset SLURM_JOB_ID SLURM_JOB_NODELIST`, and monarch submits the job; or "
                                         "launch.slurm.allocation names one that runs"});
    return {.view = nullptr, .exit_code = kExitUsage};
  }
  if (!submitted) note_abandoned(input, context.terminal);
  const auto requeued = requeued_job(input, context);
  if (!requeued.ok()) return failed(context, exit_code_for(requeued.error()), requeued.error().message);
  const std::optional<std::string> begins = *requeued ? *requeued : submitted;
  NewJobFiles files{.spec = input.text, .spec_directory = input.directory, .origin = input.origin};
  // Until it has said that it is ready, the job never began.
  if (!input.spec.supervised_away()) files.durability = Durability::kLater;
  const auto made = begins ? begin_submitted(*begins, files) : make_job(input.spec.name, files);
  if (!made.ok()) return failed(context, exit_code_for(made.error()), made.error().message);
  const JobDirectory& job = made->job;
  say_note(context.terminal, text("job ", job.id, " from ", printable(input.name)));
  // What a run of this script before has left counts more than what it was written with.
  const bool links = before && !continues_from(job.directory);
  const Status linked = links ? write_continues(job.directory, *before) : Status();
  if (!linked.ok()) return failed(context, exit_code_for(linked.error()), linked.error().message);
  StartOptions start{.accept_new_host_keys = arguments.has("accept-new")};
  if (tied) start.tied = *tied;
  if (input.spec.supervised_away()) {
    // Another machine is reached first, and may have to be sent what runs there.
    start.away = true;
    start.deadline = std::max(input.spec.start_timeout, start.deadline);
    start.interrupt = (*signals)->descriptor();
  }
  return start_launched(*made, *binaries, start, std::move(*signals), context);
}

}  // namespace monarch
