#include "cli/away/away.h"
#include "cli/cmd/operator_call.h"
#include "cli/commands.h"
#include "transport/base/exit_code.h"

namespace monarch {

namespace {

int run_drain(const Arguments& arguments, Context& context) {
  const std::vector<std::string>& words = arguments.positionals();
  const JobArgument argument = take_job(words.size() > 1 ? words.front() : std::string(), context);
  if (argument.job == nullptr) return argument.exit_code;
  const auto hosts = hosts_meant(*argument.job, words.back(), context);
  if (!hosts) return kExitUsage;
  return ask_the_supervisor(*argument.job, {.wish = OperatorWish::kDrain, .hosts = *hosts, .now = arguments.has("now")},
                            arguments, context);
}

}  // namespace

Command drain_command() {
  return where_the_job_lives(
      {.name = "drain",
       .summary = "let nothing new start on hosts",
       .description =
           "A gang that runs there goes on, and is started elsewhere when it has to start again; with --now it is\n"
           "stopped with its grace and started elsewhere at once. Each host is a replacement of\n"
           "supervision.reallocate; where none or no other host is left, it is refused. monarch undrain takes it back.",
       .flags = {{.name = "now", .value = "", .help = "move what runs there to other hosts"},
                 {.name = "json", .value = "", .help = "the answer as one line of JSON"}},
       .positionals = {{.name = "JOB", .help = "which job"},
                       {.name = "HOSTS", .help = "such as v1 or node[05-07]", .required = true}},
       .run = run_drain});
}

}  // namespace monarch
