#include "cli/away/away.h"
#include "cli/cmd/operator_call.h"
#include "cli/commands.h"
#include "cli/follow/session_flags.h"

namespace monarch {

namespace {

int run_retry(const Arguments& arguments, Context& context) {
  const JobArgument argument = take_job(arguments.positional(0), context);
  if (argument.job == nullptr) return argument.exit_code;
  int exit_code = 0;
  const auto ranks = gangs_meant(*argument.job, arguments, context, exit_code);
  if (!ranks) return exit_code;
  return ask_the_supervisor(*argument.job, {.wish = OperatorWish::kRetry, .ranks = *ranks}, arguments, context);
}

}  // namespace

Command retry_command() {
  std::vector<Flag> flags = selector_flags();
  flags.push_back({.name = "json", .value = "", .help = "the answer as one line of JSON"});
  return where_the_job_lives(
      {.name = "retry",
       .summary = "forgive what failed, and try at once what waits",
       .description =
           "The failures of the gangs that are meant count no longer, one that waits for its back-off starts now, and\n"
           "one that was parked is tried again. Hosts that were quarantined, or wait for a next chance, may be used\n"
           "again, and replacements made so far cost nothing.",
       .flags = std::move(flags),
       .positionals = {{.name = "JOB", .help = "which job"}},
       .run = run_retry});
}

}  // namespace monarch
