// `monarch launch-for`: who launches the hosts of a job whose supervisor is on the first of them, and `monarch
// supervise-there`: our process on that host. Not for people: `run` and `up` start the one, and that one the other.

#include "cli/args/descriptor_flag.h"
#include "cli/args/say.h"
#include "cli/commands.h"
#include "supervisor/away/launch_for.h"
#include "supervisor/away/start_there.h"
#include "supervisor/client/start_supervisor.h"
#include "transport/base/exit_code.h"
#include "transport/loop/signals.h"

namespace monarch {

namespace {

int not_for_people(const Context& context, const char* command) {
  say_error(context.terminal,
            {.id = "E0901",
             .message = std::string("`monarch ") + command + "` is started by `monarch run` and `monarch up`",
             .help = "run `monarch up SPEC`"});
  return kExitUsage;
}

int run_launch_for(const Arguments& arguments, Context& context) {
  ignore_what_is_for_ranks();
  const auto ready = descriptor_of(arguments.value("ready-fd").value_or(""));
  const auto binaries = find_binaries(context.executable, context.env.get("MONARCH_WORKER"));
  if (!ready || !arguments.has("job-dir") || !binaries.ok()) return not_for_people(context, "launch-for");
  return launch_for({.job_directory = *arguments.value("job-dir"),
                     .monarch = binaries->monarch,
                     .worker = binaries->worker,
                     .ready_fd = *ready,
                     .accept_new_host_keys = arguments.has("accept-new")});
}

int run_supervise_there(const Arguments&, Context& context) {
  if (context.terminal.out_is_terminal) return not_for_people(context, "supervise-there");
  return start_there({.monarch = context.executable,
                      .worker = context.env.get("MONARCH_WORKER"),
                      .ssh_connection = context.env.get("SSH_CONNECTION")});
}

}  // namespace

Command launch_for_command() {
  return {.name = "launch-for",
          .summary = "launch the hosts for a supervisor elsewhere (started by `run` and `up`)",
          .description = "",
          .flags = {{.name = "job-dir", .value = "DIR", .help = "the job's directory here"},
                    {.name = "ready-fd", .value = "N", .help = "descriptor that is told when the supervisor is ready"},
                    {.name = "accept-new", .value = "", .help = "take keys of hosts that known_hosts does not have"}},
          .positionals = {},
          .run = run_launch_for,
          .hidden = true};
}

Command supervise_there_command() {
  return {.name = "supervise-there",
          .summary = "start a supervisor on the first host of a job (started over SSH)",
          .description = "",
          .flags = {},
          .positionals = {},
          .run = run_supervise_there,
          .hidden = true};
}

}  // namespace monarch
