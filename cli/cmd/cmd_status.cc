#include "cli/args/say.h"
#include "cli/away/away.h"
#include "cli/commands.h"
#include "cli/follow/session_flags.h"
#include "cli/job/job_argument.h"
#include "cli/job/spec_origin.h"
#include "cli/show/status_text.h"
#include "cli/start/slurm_queue.h"
#include "supervisor/client/link/viewer_json.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

int show_queued(const JobView& view, const Arguments& arguments, const Context& context) {
  const NotBegun how = how_it_waits(view);
  const Json json =
      Json::object({{"v", 1}, {"type", "status"}, {"job", view.id()}, {"phase", how.phase}, {"queue", how.words}});
  write_out(context.terminal, arguments.has("json")
                                  ? to_json(json) + "\n"
                                  : text(view.id(), "  ", how.phase, ": ", printable(how.words), "\n"));
  return kExitOk;
}

int run_status(const Arguments& arguments, Context& context) {
  const JobArgument argument = take_job(arguments.positional(0), context);
  if (argument.job == nullptr) return argument.exit_code;
  const auto selector = take_selector(arguments, argument.job->spec, context);
  if (!selector) return kExitUsage;
  if (argument.job->view.never_began()) return show_queued(argument.job->view, arguments, context);
  const auto status = argument.job->view.status(argument.job->spec);
  if (!status.ok()) {
    const std::string& id = argument.job->view.id();
    say_error(context.terminal, {.id = "E0908",
                                 .message = text("status of ", id, ": ", status.error().message),
                                 .help = text("monarch events ", id)});
    return kExitInternal;
  }
  if (argument.job->view.live()) {
    const auto drift = spec_drift(argument.job->view, argument.job->spec);
    if (drift) say_note(context.terminal, *drift);
  } else if (const auto guard = argument.job->view.awaited_from(); guard && !status->verdict) {
    say_note(context.terminal,
             text("the supervisor of ", argument.job->view.id(), " has ended, and its guard (pid ", guard->pid, " on ",
                  printable(guard->host), ") starts the next: this is what the journal says"));
  } else if (!status->verdict) {
    const std::string& id = argument.job->view.id();
    say_note(context.terminal,
             text(id,
                  " is abandoned: its supervisor ended without a verdict, and its hosts end what they run when their "
                  "lease, and then orphan_ttl, is over; monarch up --resume ",
                  id, " goes on with what still runs, monarch rm ", id, " ends and removes it"));
  } else {
    say_missing_end(argument.job->view, context);
  }
  const JobStatus shown = selected_part(*status, *selector);
  if (shown.meshes.empty() && shown.hosts.empty() && !selector->selects_all()) {
    say_error(context.terminal, nothing_selected(argument.job->view.id()));
    return kExitUsage;
  }
  write_out(context.terminal, arguments.has("json")
                                  ? to_json(status_json(shown)) + "\n"
                                  : status_text(shown, context.terminal.out_colour, context.terminal.out_columns));
  return kExitOk;
}

}  // namespace

Command status_command() {
  std::vector<Flag> flags = {{.name = "json", .value = "", .help = "as one line of JSON"}};
  for (const Flag& flag : selector_flags()) flags.push_back(flag);
  return where_the_job_lives(
      {.name = "status",
       .summary = "show a job's meshes, ranks and hosts, while it runs and after it",
       .description =
           "Without a supervisor, what its journal says. Of a live job whose files say something else by now, that.",
       .flags = std::move(flags),
       .positionals = {{.name = "JOB", .help = "which job"}},
       .run = run_status});
}

}  // namespace monarch
