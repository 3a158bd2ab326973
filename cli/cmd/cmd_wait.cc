#include <algorithm>

#include "cli/args/say.h"
#include "cli/away/away.h"
#include "cli/commands.h"
#include "cli/follow/run_reports.h"
#include "cli/follow/session_flags.h"
#include "cli/start/continued_job.h"
#include "cli/start/slurm_queue.h"
#include "cli/start/submit.h"
#include "supervisor/client/link/viewer_json.h"
#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

SessionEnd wait_for_end(const JobView& view, const std::optional<Duration>& timeout, const Context& context) {
  const auto verdict = view.verdict();
  if (verdict.ok() && *verdict) return {.exit_code = (*verdict)->exit_code, .verdict = *verdict};
  const Instant began = boot_now();
  const auto signals = SignalFd::create(SignalPolicy::signals(ViewerKind::kWatcher));
  if (!signals.ok()) {
    say_error(context.terminal, {.id = "E0908", .message = signals.error().message, .help = ""});
    return {.exit_code = kExitInternal};
  }
  QueueOutcome queue = wait_in_queue(view, context, **signals, {.viewer = "wait", .leave_after = timeout});
  if (queue.end) return std::move(*queue.end);
  const auto spec = begun_spec(view, context);
  if (!spec) return {.exit_code = kExitInternal};
  SessionOptions options;
  options.viewer = "wait";
  if (timeout) options.leave_after = std::max(*timeout - (boot_now() - began), Duration::zero());
  return follow_job(view, *spec, context, **signals, std::move(options));
}

int run_wait(const Arguments& arguments, Context& context) {
  const auto timeout = timeout_flag(arguments, context);
  if (!timeout) return kExitUsage;
  const auto by_class = exit_code_by_class(arguments, context);
  if (!by_class) return kExitUsage;
  JobArgument argument = take_job(arguments.positional(0), context);
  if (argument.job == nullptr) return argument.exit_code;
  const Instant began = boot_now();
  auto view = std::make_unique<JobView>(std::move(argument.job->view));
  for (;;) {
    std::optional<Duration> left = *timeout;
    if (left) left = std::max(*left - (boot_now() - began), Duration::zero());
    const SessionEnd end = wait_for_end(*view, left, context);
    if (end.verdict) say_note(context.terminal, text(view->id(), ": ", printable(end.verdict->reason)));
    auto next = next_job(*view, end, context);
    if (next == nullptr) {
      if (end.verdict && arguments.has("json")) write_out(context.terminal, to_json(verdict_json(*end.verdict)) + "\n");
      return end.verdict && *by_class ? class_of(*end.verdict) : end.exit_code;
    }
    view = std::move(next);
  }
}

}  // namespace

Command wait_command() {
  return where_the_job_lives(
      {.name = "wait",
       .summary = "wait until a job has ended, and exit as it did",
       .description = "",
       .flags = {{.name = "timeout",
                  .value = "DURATION",
                  .help = "wait no longer than this (30s, 5m): exit code 124; the job goes on"},
                 exit_code_flag(),
                 {.name = "json", .value = "", .help = "the result as one line of JSON on stdout"}},
       .positionals = {{.name = "JOB", .help = "which job"}},
       .run = run_wait});
}

}  // namespace monarch
