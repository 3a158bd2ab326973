#include <unistd.h>

#include <algorithm>

#include "cli/args/say.h"
#include "cli/args/spec_flags.h"
#include "cli/away/away.h"
#include "cli/commands.h"
#include "cli/follow/run_reports.h"
#include "cli/follow/session_flags.h"
#include "cli/job/spec_input.h"
#include "cli/start/continued_job.h"
#include "cli/start/launch.h"
#include "cli/start/slurm_queue.h"
#include "cli/start/submit.h"
#include "cli/term/unread_input.h"
#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/process/hidden_memory.h"

namespace monarch {

namespace {

// A program that waits for input gets its end at once, and nobody would know why. Said once, and though little is to be
// said: what is dropped is dropped in silence nowhere.
bool say_unread_input() {
  if (!has_unread_input(STDIN_FILENO)) return false;
  write_err("monarch: standard input goes to no rank: they read /dev/null\n");
  return true;
}

int run_run(const Arguments& arguments, Context& context) {
  hide_memory();  // its environment has what a spec may pass on to ranks
  const auto timeout = timeout_flag(arguments, context);
  const auto lines = line_options(arguments, context);
  if (!timeout || !lines) return kExitUsage;
  const std::optional<SpecInput> input = take_spec(arguments, context);
  if (!input) return kExitUsage;
  const auto selector = take_selector(arguments, input->spec, context);
  if (!selector) return kExitUsage;
  const auto reports = take_reports(arguments, context);
  if (!reports) return kExitUsage;
  LaunchedJob job = launch_job(*input, arguments, context);
  if (job.ended) return leave_reports(*reports, *job.ended, input->spec, job.end, context);
  if (job.view == nullptr) return job.exit_code;
  Duration followed;
  const bool input_said = input->spec.input || say_unread_input();
  for (std::unique_ptr<JobView> view = std::move(job.view);;) {
    QueueOutcome queue = wait_in_queue(*view, context, *job.signals, {.kind = ViewerKind::kOwner, .viewer = "run"});
    SessionEnd end;
    if (queue.end) {
      end = std::move(*queue.end);
    } else {
      const auto spec = begun_spec(*view, context);
      if (!spec) return kExitInternal;
      if (away_of(*view)) {
        return follow_there(*view, arguments, context, *job.signals, {.spec_name = input->name, .reports = *reports});
      }
      SessionOptions options;
      options.kind = ViewerKind::kOwner;
      options.viewer = "run";
      // What ranks write is in the job's folder, in bounds; a script's output is a file that has none.
      options.output = !arguments.has("submitted");
      options.from_the_start = options.events = options.result = true;
      options.json = arguments.has("json");
      options.hosts = std::make_shared<RankHosts>(*spec);
      options.wanted = wanted_streams(arguments, options.hosts, *selector);
      options.lines = *lines;
      if (spec->input) options.input = STDIN_FILENO;
      if (*timeout) options.stop_after = std::max(**timeout - followed, Duration::zero());
      options.stop = queue.stop;
      options.spec_name = input->name;
      const Instant began = boot_now();
      end = follow_job(*view, *spec, context, *job.signals, std::move(options));
      followed = followed + (boot_now() - began);
    }
    auto next = next_job(*view, end, context);
    if (next == nullptr && !input_said) (void)say_unread_input();  // of a pipe that was written to meanwhile
    if (next == nullptr) return leave_reports(*reports, *view, input->spec, end, context);
    view = std::move(next);
  }
}

}  // namespace

Command run_command() {
  std::vector<Flag> flags = {
      {.name = "timeout", .value = "DURATION", .help = "stop the job in order after this (30s, 5m, 4h): exit code 124"},
      {.name = "submitted",
       .value = "JOB",
       .help = "in the script that Slurm was given for a job: go on with that job's folder"}};
  flags.push_back({.name = "stdin",
                   .value = "RANK",
                   .help = "give this rank, or all, or MESH/RANK, what is read here: the key `stdin` of the spec"});
  for (const Flag& flag : report_flags()) flags.push_back(flag);
  for (const Flag& flag : program_flags()) flags.push_back(flag);
  for (const Flag& flag : launch_flags()) flags.push_back(flag);
  flags.push_back(continue_flag());
  for (const Flag& flag : output_flags()) flags.push_back(flag);
  for (const Flag& flag : selector_flags()) flags.push_back(flag);
  return {
      .name = "run",
      .summary = "start a job, show its output and events until it ends, and exit as it did",
      .description =
          "The ranks' stdout goes to stdout, their stderr and our own words to stderr. Ctrl-C once stops the job in\n"
          "order, twice kills it, three times leaves while the supervisor goes on killing. TERM and HUP stop it in\n"
          "order; USR1, USR2, QUIT and CONT go to the ranks; Ctrl-Z stops the viewer alone. A viewer that is killed\n"
          "leaves the job running: monarch attach. --mesh, --at, --rank, --host and --generation choose whose output "
          "is\n"
          "shown.",
      .flags = std::move(flags),
      .positionals = {spec_positional()},
      .run = run_run,
      .program = "ARGS"};
}

}  // namespace monarch
