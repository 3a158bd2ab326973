// `monarch supervise`: the supervisor's own process. Not for people: `run` and `up` start it under its guard.

#include <fcntl.h>

#include "cli/args/descriptor_flag.h"
#include "cli/args/say.h"
#include "cli/commands.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/loop/supervisor.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "transport/loop/signals.h"

namespace monarch {

namespace {

int run_supervise(const Arguments& arguments, Context& context) {
  ignore_what_is_for_ranks();
  const auto keeper = descriptor_of(context.env.get("MONARCH_KEEPER_FD"));
  if (!keeper || !arguments.has("job-dir")) {
    say_error(context.terminal, {.id = "E0901",
                                 .message = "`monarch supervise` is started by `monarch run` and `monarch up`",
                                 .help = "run `monarch up SPEC`"});
    return kExitUsage;
  }
  const auto binaries = find_binaries(context.executable, context.env.get("MONARCH_WORKER"));
  const int ready = descriptor_of(arguments.value("ready-fd").value_or("")).value_or(-1);
  const int tied = descriptor_of(arguments.value("tied-fd").value_or("")).value_or(-1);
  if (tied >= 0) (void)::fcntl(tied, F_SETFD, FD_CLOEXEC);  // it is open, and whoever is started here has no use for it
  std::vector<int> kept;
  const int count = descriptor_count(context.env.get("MONARCH_KEPT_FDS"));
  for (int fd = *keeper + 1; fd <= *keeper + count; ++fd) kept.push_back(fd);
  return supervise({.job_directory = *arguments.value("job-dir"),
                    .worker_path = binaries.ok() ? binaries->worker : std::string(),
                    .ready_fd = ready,
                    .keeper_fd = *keeper,
                    .kept_fds = std::move(kept),
                    .tied_fd = tied,
                    .accept_new_host_keys = arguments.has("accept-new"),
                    .force_takeover = arguments.has("force-takeover")});
}

}  // namespace

Command supervise_command() {
  return {.name = "supervise",
          .summary = "decide about one job (started by `run` and `up`)",
          .description = "",
          .flags = {{.name = "job-dir", .value = "DIR", .help = "the job's directory"},
                    {.name = "ready-fd", .value = "N", .help = "descriptor that is told when it is ready"},
                    {.name = "tied-fd", .value = "N", .help = "descriptor at whose end the job stops"},
                    {.name = "accept-new", .value = "", .help = "take keys of hosts that known_hosts does not have"},
                    {.name = "force-takeover", .value = "", .help = "take a job over whose directory is another"}},
          .positionals = {},
          .run = run_supervise,
          .hidden = true};
}

}  // namespace monarch
