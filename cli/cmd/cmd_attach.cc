#include "cli/args/say.h"
#include "cli/away/away.h"
#include "cli/commands.h"
#include "cli/follow/run_reports.h"
#include "cli/follow/session_flags.h"
#include "cli/show/result_text.h"
#include "cli/start/continued_job.h"
#include "cli/start/slurm_queue.h"
#include "supervisor/client/link/viewer_json.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

void show_ended(const OpenedJob& job, const Verdict& verdict, const Context& context, bool json) {
  if (json) write_out(context.terminal, to_json(verdict_json(verdict)) + "\n");
  say_note(context.terminal, text(job.view.id(), " has ended; monarch logs ", job.view.id(), " shows its output"));
  write_err(context.terminal.runner.lines_as_text(result_text(verdict, {.job_id = job.view.id(),
                                                                        .log_directory = job.view.log_directory(),
                                                                        .spec = "",
                                                                        .colour = context.terminal.err_colour,
                                                                        .quiet = context.terminal.quiet})));
  write_err(context.terminal.runner.annotation(verdict, job.view.id()));
}

int run_attach(const Arguments& arguments, Context& context) {
  const auto lines = line_options(arguments, context);
  if (!lines) return kExitUsage;
  const auto reports = take_reports(arguments, context);
  if (!reports) return kExitUsage;
  for (std::string called = arguments.positional(0);;) {
    const JobArgument argument = take_begun_job(called, context, "attach");
    if (argument.job == nullptr) return argument.exit_code;
    const OpenedJob& job = *argument.job;
    auto selector = take_selector(arguments, job.spec, context, job.named_hosts());
    if (!selector) return kExitUsage;
    const auto verdict = job.view.verdict();
    SessionEnd end;
    if (!job.view.live() && verdict.ok() && *verdict) {
      show_ended(job, **verdict, context, arguments.has("json"));
      end = {.exit_code = (*verdict)->exit_code, .verdict = *verdict};
    } else {
      SessionOptions options;
      options.first_word = text("attached to ", job.view.id(), "; Ctrl-C detaches");
      options.viewer = "attach";
      options.output = options.events = options.result = true;
      options.json = arguments.has("json");
      options.hosts = rank_hosts_of(job);
      options.wanted = wanted_streams(arguments, options.hosts, std::move(*selector));
      options.lines = *lines;
      end = follow_job(job, context, std::move(options));
    }
    const auto next = next_job(job.view, end, context);
    if (next == nullptr) return leave_reports(*reports, job.view, job.spec, end, context);
    called = next->id();
  }
}

}  // namespace

Command attach_command() {
  std::vector<Flag> flags = report_flags();
  for (const Flag& flag : output_flags()) flags.push_back(flag);
  for (const Flag& flag : selector_flags()) flags.push_back(flag);
  return where_the_job_lives(
      {.name = "attach",
       .summary = "show a live job's output and events from now on; exits as the job does",
       .description =
           "Ctrl-C detaches and leaves the job running. --mesh, --at, --rank, --host and --generation choose whose "
           "output\n"
           "is shown.",
       .flags = std::move(flags),
       .positionals = {{.name = "JOB", .help = "which job"}},
       .run = run_attach});
}

}  // namespace monarch
