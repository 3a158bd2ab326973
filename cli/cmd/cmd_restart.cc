#include "cli/away/away.h"
#include "cli/cmd/operator_call.h"
#include "cli/commands.h"
#include "cli/follow/session_flags.h"

namespace monarch {

namespace {

int run_restart(const Arguments& arguments, Context& context) {
  const JobArgument argument = take_job(arguments.positional(0), context);
  if (argument.job == nullptr) return argument.exit_code;
  int exit_code = 0;
  const auto ranks = gangs_meant(*argument.job, arguments, context, exit_code);
  if (!ranks) return exit_code;
  return ask_the_supervisor(*argument.job, {.wish = OperatorWish::kRestart, .ranks = *ranks}, arguments, context);
}

}  // namespace

Command restart_command() {
  std::vector<Flag> flags = selector_flags();
  flags.push_back({.name = "json", .value = "", .help = "the answer as one line of JSON"});
  return where_the_job_lives(
      {.name = "restart",
       .summary = "start the gangs of ranks again",
       .description =
           "Each gang that has a rank that is meant is stopped, with its stop signal and its whole grace, and\n"
           "started again as its next generation, on the same hosts. It costs nothing of a budget.",
       .flags = std::move(flags),
       .positionals = {{.name = "JOB", .help = "which job"}},
       .run = run_restart});
}

}  // namespace monarch
