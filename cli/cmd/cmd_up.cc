#include <unistd.h>

#include "cli/args/say.h"
#include "cli/args/spec_flags.h"
#include "cli/away/away.h"
#include "cli/cmd/resume.h"
#include "cli/commands.h"
#include "cli/follow/session_flags.h"
#include "cli/job/spec_input.h"
#include "cli/job/spec_origin.h"
#include "cli/job/submitted_job.h"
#include "cli/start/launch.h"
#include "cli/start/slurm_queue.h"
#include "cli/start/started_line.h"
#include "cli/start/submit.h"
#include "cli/start/tied_descriptor.h"
#include "supervisor/spec/slurm_allocation.h"
#include "supervisor/spec/spec_diff.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "transport/process/hidden_memory.h"

namespace monarch {

namespace {

// Where the same files made another spec before, that job goes on beside the new one.
void say_what_changed(const JobView& view, const SpecInput& input, const std::string& running,
                      const Terminal& terminal) {
  const auto before = origin_of(view);
  const auto now = parse_origin(input.origin);
  if (!before || !now || before->files.front() != now->files.front()) return;
  const std::string changes = changes_text(spec_changes(running, input.text));
  say_note(terminal,
           text(view.id(), " from the same file is live with another spec", changes.empty() ? "" : " (", changes,
                changes.empty() ? "" : ")", ", and goes on with it; this is a new job, and `monarch stop ", view.id(),
                "` ends the other"));
}

// The nodes that Slurm gave it are no part of what was written.
bool is_the_same(const JobSpec& written, const JobSpec& stored) {
  return stored == written || without_allocation(stored) == written;
}

// One that waits for this script of Slurm's to go on with it.
bool is_this_scripts(const JobView& view, const Environment& env) {
  const auto submitted = view.queued() ? submitted_of(view) : std::nullopt;
  return submitted && submitted->job != 0 && env.get("SLURM_JOB_ID") == text(submitted->job);
}

// A live job whose spec says the same, however it was written and put together.
std::optional<JobView> live_and_unchanged(const SpecInput& input, const StateDir& state, const Context& context) {
  std::vector<std::pair<JobView, std::string>> others;
  const auto jobs = list_jobs(state);
  if (!jobs.ok()) return std::nullopt;
  for (const KnownJob& job : *jobs) {
    if (job.life != JobLife::kLive || job_name(job.id) != input.spec.name) continue;
    auto view = JobView::open(state, job.id);
    if (!view.ok() || is_this_scripts(*view, context.env)) continue;
    const auto spec = view->spec_text();
    const auto directory = view->spec_directory();
    if (!spec.ok() || !directory.ok()) continue;
    const auto stored = parse_stored_spec(*spec, *directory);
    if (stored.ok() && is_the_same(input.spec, *stored)) return std::move(*view);
    others.emplace_back(std::move(*view), *spec);
  }
  for (const auto& [view, running] : others) say_what_changed(view, input, running, context.terminal);
  return std::nullopt;
}

// What the command ends with; nothing: there is a job to start.
std::optional<int> end_with_live(const SpecInput& input, const StateDir& state, bool json, const Context& context) {
  std::string asked;
  for (;;) {
    const auto live = live_and_unchanged(input, state, context);
    if (!live) return std::nullopt;
    // It may have ended in Slurm's queue with nobody there.
    const auto queued = queue_words(*live);
    if (!queued && live->verdict().ok() && *live->verdict()) continue;
    if (queued) say_note(context.terminal, *queued);
    if (!away_of(*live) || live->id() == asked) {
      say_note(context.terminal, text(live->id(), " is live, and its spec is unchanged"));
      write_started(*live, input.spec, json, context);
      return kExitOk;
    }
    // It was live when somebody here last spoke with it. No word of it is shown; that it is asked brings what is known
    // of it up to date.
    asked = live->id();
    const int answered = run_there(*live, {.words = {"logs", "--tail=0", asked}}, context);
    if (answered == kExitOk) continue;
    say_note(context.terminal, text(asked, " has the same spec, and may be live: `monarch rm --here ", asked,
                                    "` forgets it here, and another may be started"));
    return answered;
  }
}

int print_script(const SpecInput& input, const Context& context) {
  const LaunchFacts& launch = input.spec.launch.facts();
  if (launch.waits_in_queue) return print_submission(input, context);
  say_error(context.terminal,
            {.id = "E0903",
             .message = launch.allocation ? "`--print` shows what sbatch would get, and this shell is in an allocation"
                                          : "`--print` shows what sbatch would get, and this job is not for Slurm",
             .help = "monarch plan shows what would run where"});
  return kExitUsage;
}

// WARNING: Slurm gives an allocation back when the command of salloc(1), or the script of sbatch(1), ends, and kills
// all that runs there. One of
// --no-shell has neither, and none of the variables that the two set.
void say_how_long_it_has(const JobView& view, const JobSpec& spec, const Context& context) {
  const auto& allocation = spec.launch.facts().allocation;
  if (!allocation || context.env.get("SLURM_SUBMIT_DIR").empty()) return;
  if (context.env.get("SLURM_JOB_ID") != text(allocation->job)) return;
  say_note(context.terminal, text("Slurm ends it with its job ", allocation->job,
                                  ", once the script or command that has the allocation ends: `monarch wait ",
                                  view.id(), "` waits for it"));
}

// What cannot be told from the spec; nothing: it is well, and `tied` is the descriptor of --tied.
std::optional<Complaint> misused_flag(const Arguments& arguments, std::optional<int>& tied) {
  const auto misused = [](std::string message, std::string help) {
    return Complaint{.id = "E0903", .message = std::move(message), .help = std::move(help)};
  };
  if (arguments.has("tied") && arguments.has("resume")) {
    return misused("`--tied` is for a job that is started, and `--resume` goes on with one", "leave one of them out");
  }
  if (arguments.has("force-takeover") && !arguments.has("resume")) {
    return misused("`--force-takeover` is for a job that is resumed", "monarch up --resume JOB --force-takeover");
  }
  if (arguments.has("mesh") && !arguments.has("resume") && !arguments.program()) {
    return misused("`--mesh` says whose program gets what follows `--`, and nothing does",
                   "monarch up SPEC --mesh MESH -- ARGS");
  }
  for (const char* flag : {"tied", "json"}) {
    if (!arguments.has("print") || !arguments.has(flag)) continue;
    return misused(text("`--print` starts nothing, and `--", flag, "` is for a job that is started"),
                   "leave one of them out");
  }
  if (!arguments.has("tied")) return std::nullopt;
  const auto descriptor = tied_descriptor(*arguments.value("tied"));
  if (descriptor.ok()) {
    tied = *descriptor;
    return std::nullopt;
  }
  return Complaint{.id = "E0904",
                   .message = text("--tied: ", descriptor.error().message),
                   .help = "leave the reading end of a pipe open for this command, and keep the writing end alone"};
}

// The flags of `up` that a supervisor on another machine could not answer for.
std::optional<Complaint> only_here(const Arguments& arguments, const JobSpec& spec) {
  for (const char* flag : {"tied", "json"}) {
    if (!arguments.has(flag) || !is_supervised_elsewhere(spec)) continue;
    return Complaint{
        .id = "E0401",
        .message = text("this build cannot do that yet: `--", flag, "` where the supervisor is on another machine"),
        .help = "leave it out, or write `supervisor: {on: here}`"};
  }
  return std::nullopt;
}

SessionOptions until_it_runs(const JobSpec& spec, bool& shown, bool json) {
  SessionOptions options;
  options.kind = ViewerKind::kOwner;
  options.viewer = "up";
  options.until = SessionOptions::Until::kRunning;
  options.from_the_start = options.events = options.result = true;
  if (spec.input) options.input = -1;
  if (json && spec.calls) {
    options.on_door = [&shown](const JobStatus& status) {
      shown = true;
      return started_json(status);
    };
  }
  return options;
}

int run_up(const Arguments& arguments, Context& context) {
  hide_memory();  // its environment has what a spec may pass on to ranks
  std::optional<int> tied;
  if (const auto misused = misused_flag(arguments, tied)) return refuse(context, *misused, kExitUsage);
  if (arguments.has("resume")) return resume_job(arguments, context);
  const std::optional<SpecInput> input = take_spec(arguments, context);
  if (!input) return kExitUsage;
  if (arguments.has("print")) return print_script(*input, context);
  const StateArgument state = take_state(context);
  if (state.exit_code != kExitOk) return state.exit_code;
  const bool json = arguments.has("json");
  // A job that is live is somebody else's, or is tied to somebody else.
  const bool looks = state.state && !tied;
  if (const auto end = looks ? end_with_live(*input, *state.state, json, context) : std::nullopt) return *end;
  if (const auto far = only_here(arguments, input->spec)) return refuse(context, *far, kExitUsage);
  // Ctrl-C in the program's terminal is the program's. It fails where a shell started this as a job of its own.
  if (tied) (void)::setsid();
  const LaunchedJob job = launch_job(*input, arguments, context, tied);
  if (job.view == nullptr) return job.exit_code;
  const QueueOutcome queue =
      wait_in_queue(*job.view, context, *job.signals, {.kind = ViewerKind::kOwner, .viewer = "up"});
  if (queue.end) return queue.end->exit_code;
  const auto spec = begun_spec(*job.view, context);
  if (!spec) return kExitInternal;
  if (away_of(*job.view)) {
    return follow_there(*job.view, arguments, context, *job.signals, {.until_running = true, .spec_name = input->name});
  }
  bool shown = false;
  SessionOptions options = until_it_runs(*spec, shown, json);
  options.stop = queue.stop;
  if (spec->input) {
    say_note(context.terminal, "stdin: nobody gives it where the job is left running: the ranks read its end");
  }
  const SessionEnd end = follow_job(*job.view, *spec, context, *job.signals, std::move(options));
  if (!shown && (end.running || end.verdict)) write_started(*job.view, *spec, json, context);
  if (end.running) say_how_long_it_has(*job.view, *spec, context);
  return end.exit_code;
}

}  // namespace

Command up_command() {
  std::vector<Flag> flags = program_flags();
  for (const Flag& flag : launch_flags()) flags.push_back(flag);
  flags.push_back(continue_flag());
  flags.push_back(mesh_flag());
  flags.push_back(
      {.name = "print",
       .value = "",
       .help = "of a job that Slurm is to start: write the script for sbatch to stdout, and start nothing"});
  flags.push_back({.name = "json",
                   .value = "",
                   .help = "instead of the id one object, as soon as a post of the job can be called"});
  flags.push_back({.name = "tied",
                   .value = "FD",
                   .help = "stop the job, with exit code 0, once the other end of this pipe or socket is closed"});
  for (const Flag& flag : resume_flags()) flags.push_back(flag);
  Positional spec = spec_positional();
  spec.unless.emplace_back("resume");
  return {
      .name = "up",
      .summary = "start a job and leave it running: prints its id when every mesh is ready",
      .description =
          "A spec that is live and unchanged is left as it is; one that has changed is said to be live, and becomes a\n"
          "second job beside it: a job never changes while it runs. Until the job is ready, Ctrl-C stops it as in run.",
      .flags = std::move(flags),
      .positionals = {std::move(spec)},
      .run = run_up,
      .program = "ARGS"};
}

}  // namespace monarch
