#include <unistd.h>

#include "cli/args/say.h"
#include "cli/away/away.h"
#include "cli/commands.h"
#include "cli/follow/session_flags.h"
#include "cli/start/slurm_queue.h"
#include "cli/start/submit.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

int run_stop(const Arguments& arguments, Context& context) {
  const auto timeout = timeout_flag(arguments, context);
  if (!timeout) return kExitUsage;
  const JobArgument argument = take_job(arguments.positional(0), context);
  if (argument.job == nullptr) return argument.exit_code;
  const OpenedJob& job = *argument.job;
  const auto verdict = job.view.verdict();
  if (verdict.ok() && *verdict) {
    say_note(context.terminal, text(job.view.id(), " has ended already: ", printable((*verdict)->reason)));
    return kExitOk;
  }
  const std::string who = text("monarch stop, pid ", ::getpid());
  if (job.view.queued()) {
    const Withdrawal taken = withdraw_from_queue(job.view, stopped_in_queue(who), context);
    if (taken.verdict) {
      say_note(context.terminal, text(job.view.id(), " has ended: ", printable(taken.verdict->reason)));
      return kExitOk;
    }
    if (taken.unknown) {
      say_error(context.terminal, {.id = "E0908",
                                   .message = text(job.view.id(), " may still be in Slurm's queue"),
                                   .help = text("monarch status ", job.view.id())});
      return kExitInternal;
    }
  }
  const auto spec = begun_spec(job.view, context);
  if (!spec) return kExitInternal;
  const auto signals = SignalFd::create(SignalPolicy::signals(ViewerKind::kWatcher));
  if (!signals.ok()) {
    say_error(context.terminal, {.id = "E0908", .message = signals.error().message, .help = ""});
    return kExitInternal;
  }
  SessionOptions options;
  options.viewer = "stop";
  options.events = true;
  options.leave_after = *timeout;
  options.stop = StopRequest{.how = arguments.has("kill") ? StopHow::kKill : StopHow::kOrderly,
                             .interrupted = false,
                             .exit_code = 0,
                             .who = who};
  const SessionEnd end = follow_job(job.view, *spec, context, **signals, std::move(options));
  if (!end.verdict) return end.exit_code;
  say_note(context.terminal, text(job.view.id(), " has ended: ", printable(end.verdict->reason)));
  return kExitOk;
}

}  // namespace

Command stop_command() {
  return where_the_job_lives(
      {.name = "stop",
       .summary = "stop a job and wait until it has ended",
       .description = "Each rank gets its stop signal and its whole grace. A job that has ended already is no error.",
       .flags = {{.name = "kill", .value = "", .help = "kill at once, without grace"},
                 {.name = "timeout",
                  .value = "DURATION",
                  .help = "wait no longer than this: exit code 124; the job goes on stopping"}},
       .positionals = {{.name = "JOB", .help = "which job"}},
       .run = run_stop});
}

}  // namespace monarch
