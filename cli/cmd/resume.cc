#include "cli/cmd/resume.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "cli/args/say.h"
#include "cli/away/away.h"
#include "cli/follow/session_flags.h"
#include "cli/follow/signal_policy.h"
#include "cli/job/job_argument.h"
#include "cli/start/started_line.h"
#include "supervisor/client/start_supervisor.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "transport/loop/signals.h"

namespace monarch {

namespace {

int refuse_resume(const Context& context, std::string message, std::string help) {
  say_error(context.terminal, {.id = "E0903", .message = std::move(message), .help = std::move(help)});
  return kExitUsage;
}

// Not by its events, of which the journal keeps the latest alone: a job that has run would be waited for without end,
// and who presses Ctrl-C then would stop it. One that cannot be asked is not waited for.
bool is_starting(const OpenedJob& job) {
  const auto status = job.view.status(job.spec);
  return status.ok() && status->phase == "starting";
}

// What would make or start another job; nothing of it is taken.
std::optional<int> refuse_what_makes_a_spec(const Arguments& arguments, const OpenedJob& job, const Context& context) {
  const std::string again = text("monarch up --resume ", job.view.id());
  for (const auto& [flag, shown] :
       {std::pair("file", "-f"), std::pair("set", "--set"), std::pair("size", "-n"), std::pair("hosts", "-H"),
        std::pair("launch", "--launch"), std::pair("save", "--save"), std::pair("mesh", "--mesh")}) {
    if (!arguments.has(flag)) continue;
    const bool variable = arguments.from_variable(flag);
    return refuse_resume(context,
                         text("`", variable ? option_variable(flag) : shown,
                              "` is for a spec, and `--resume` goes on with ", "the one that the job has"),
                         variable ? "unset it" : again);
  }
  if (arguments.has("accept-new") && !job.spec.launch.facts().has_host_keys) {
    return refuse_resume(context, "`--accept-new` is for hosts that SSH reaches, and this job has none", again);
  }
  return std::nullopt;
}

int start_again(const OpenedJob& job, const Arguments& arguments, Context& context) {
  const std::string log = text("its log is ", job.view.path(), "/", kSupervisorLogFile);
  auto signals = SignalFd::create(SignalPolicy::signals(ViewerKind::kOwner));
  const auto binaries = find_binaries(context.executable, context.env.get("MONARCH_WORKER"));
  if (!signals.ok() || !binaries.ok()) {
    const Error why = signals.ok() ? binaries.error() : signals.error();
    say_error(context.terminal, {.id = "E0908", .message = why.message, .help = ""});
    return kExitInternal;
  }
  const StartFailure failure = start_supervisor(job.view.directory(), *binaries,
                                                {.accept_new_host_keys = arguments.has("accept-new"),
                                                 .resume = true,
                                                 .force_takeover = arguments.has("force-takeover")});
  if (failure.exit_code != kExitOk) {
    const std::string_view id = failure.exit_code == kExitUsage      ? "E0911"
                                : failure.exit_code == kExitInternal ? "E0908"
                                                                     : "E0909";
    say_error(context.terminal, {.id = std::string(id), .message = printable(failure.message), .help = log});
    return failure.exit_code;
  }
  say_note(context.terminal, text(job.view.id(), " has a supervisor again"));
  if (!is_starting(job)) {
    write_started(job.view, job.spec, arguments.has("json"), context);
    return kExitOk;
  }
  SessionOptions options;
  options.kind = ViewerKind::kOwner;
  options.viewer = "up";
  options.until = SessionOptions::Until::kRunning;
  options.events = options.result = true;
  const SessionEnd end = follow_job(job.view, job.spec, context, **signals, std::move(options));
  if (end.running || end.verdict) write_started(job.view, job.spec, arguments.has("json"), context);
  return end.exit_code;
}

}  // namespace

std::vector<Flag> resume_flags() {
  return {
      {.name = "resume",
       .value = "JOB",
       .help = "start a supervisor for a job whose own is gone with its guard; what still runs goes on"},
      {.name = "force-takeover",
       .value = "",
       .help = "with --resume: also a copy, or a job of another machine, if you know that no supervisor lives there"}};
}

int resume_job(const Arguments& arguments, Context& context) {
  if (!arguments.positionals().empty() || arguments.program()) {
    return refuse_resume(context, "`--resume` goes on with the spec that the job has, and takes no other",
                         text("monarch up --resume ", *arguments.value("resume")));
  }
  const JobArgument argument = take_job(*arguments.value("resume"), context);
  if (argument.job == nullptr) return argument.exit_code;
  const OpenedJob& job = *argument.job;
  if (const auto refused = refuse_what_makes_a_spec(arguments, job, context)) return *refused;
  if (const auto there = away_of(job.view)) {
    return refuse_resume(context, text("the supervisor of ", job.view.id(), " lives on ", there->host),
                         text("there: monarch up --resume ", job.view.id()));
  }
  // Its supervisor may be about to leave: it holds the job for a moment after it has told everybody of the end.
  const auto verdict = job.view.verdict();
  if (verdict.ok() && *verdict) {
    return refuse_resume(context, text(job.view.id(), " has ended, with exit code ", (*verdict)->exit_code),
                         text("monarch events ", job.view.id()));
  }
  return start_again(job, arguments, context);
}

}  // namespace monarch
