#include "cli/away/away.h"
#include "cli/cmd/operator_call.h"
#include "cli/commands.h"
#include "transport/base/exit_code.h"

namespace monarch {

namespace {

int run_undrain(const Arguments& arguments, Context& context) {
  const std::vector<std::string>& words = arguments.positionals();
  const JobArgument argument = take_job(words.size() > 1 ? words.front() : std::string(), context);
  if (argument.job == nullptr) return argument.exit_code;
  const auto hosts = hosts_meant(*argument.job, words.back(), context);
  if (!hosts) return kExitUsage;
  return ask_the_supervisor(*argument.job, {.wish = OperatorWish::kUndrain, .hosts = *hosts}, arguments, context);
}

}  // namespace

Command undrain_command() {
  return where_the_job_lives({.name = "undrain",
                              .summary = "let hosts be used again that were drained",
                              .description = "Nothing is moved back: they are spares from then on.",
                              .flags = {{.name = "json", .value = "", .help = "the answer as one line of JSON"}},
                              .positionals = {{.name = "JOB", .help = "which job"},
                                              {.name = "HOSTS", .help = "such as v1 or node[05-07]", .required = true}},
                              .run = run_undrain});
}

}  // namespace monarch
