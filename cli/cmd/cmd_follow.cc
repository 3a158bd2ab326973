// `monarch follow`: the second half of `run` and `up`, on the machine where the job's supervisor lives. Not for people:
// theirs is `attach`, which does not end the job.

#include "cli/args/say.h"
#include "cli/commands.h"
#include "cli/follow/run_reports.h"
#include "cli/follow/session_flags.h"
#include "transport/base/exit_code.h"

namespace monarch {

namespace {

int run_follow(const Arguments& arguments, Context& context) {
  const auto timeout = timeout_flag(arguments, context);
  const auto lines = line_options(arguments, context);
  if (!timeout || !lines) return kExitUsage;
  const JobArgument argument = take_job(arguments.positional(0), context);
  if (argument.job == nullptr) return argument.exit_code;
  const OpenedJob& job = *argument.job;
  auto selector = take_selector(arguments, job.spec, context, job.named_hosts());
  if (!selector) return kExitUsage;
  const auto reports = take_reports(arguments, context);
  if (!reports) return kExitUsage;
  const bool until_running = arguments.has("until-running");
  SessionOptions options;
  options.kind = ViewerKind::kOwner;
  options.viewer = until_running ? "up" : "run";
  options.from_the_start = !arguments.has("from-now");
  options.events = options.result = true;
  if (until_running) {
    options.until = SessionOptions::Until::kRunning;
    const SessionEnd end = follow_job(job, context, std::move(options));
    if (end.running || end.verdict) write_out(context.terminal, job.view.id() + "\n");
    return end.exit_code;
  }
  options.output = true;
  options.json = arguments.has("json");
  options.hosts = std::make_shared<RankHosts>(job.spec);
  options.wanted = wanted_streams(arguments, options.hosts, std::move(*selector));
  options.lines = *lines;
  options.stop_after = *timeout;
  options.spec_name = arguments.value("spec-name").value_or("");
  return leave_reports(*reports, job.view, job.spec, follow_job(job, context, std::move(options)), context);
}

}  // namespace

Command follow_command() {
  std::vector<Flag> flags = {{.name = "timeout", .value = "DURATION", .help = "stop the job in order after this"},
                             {.name = "until-running", .value = "", .help = "as `up`: leave it running"},
                             {.name = "from-now", .value = "", .help = "not what was shown before"},
                             {.name = "spec-name", .value = "FILE", .help = "how its spec is called"}};
  for (const Flag& flag : report_flags()) flags.push_back(flag);
  for (const Flag& flag : output_flags()) flags.push_back(flag);
  for (const Flag& flag : selector_flags()) flags.push_back(flag);
  return {.name = "follow",
          .summary = "show a job that `run` or `up` has started from another machine",
          .description = "",
          .flags = std::move(flags),
          .positionals = {{.name = "JOB", .help = "which job", .required = true}},
          .run = run_follow,
          .hidden = true};
}

}  // namespace monarch
