#include "cli/args/say.h"
#include "cli/away/away.h"
#include "cli/commands.h"
#include "cli/follow/session_flags.h"
#include "cli/start/continued_job.h"
#include "cli/start/slurm_queue.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// What the files hold now, and no more.
int print_logs(const OpenedJob& job, const Context& context, RankOutputOptions output_options,
               const OutputStart& start) {
  const auto loop = EventLoop::create();
  if (!loop.ok()) {
    say_error(context.terminal, {.id = "E0908", .message = "cannot make an event loop", .help = ""});
    return kExitInternal;
  }
  Screen screen(**loop, context.terminal);
  RankOutput output(**loop, screen, job.spec, std::move(output_options));
  const auto stop = [&] { (*loop)->stop(); };
  output.on_reader_gone(stop);
  output.start_at(start);
  output.finish([&] {
    if (screen.written()) return stop();
    screen.on_drained([&] {
      if (screen.written()) stop();
    });
  });
  (*loop)->run();
  note_lost_output(context.terminal, screen.out().error());
  return kExitOk;
}

int run_logs(const Arguments& arguments, Context& context) {
  auto lines = line_options(arguments, context);
  auto past = history(arguments, context);
  if (!lines || !past) return kExitUsage;
  lines->only = std::move(past->only);
  const bool follow = arguments.has("follow");
  for (std::string called = arguments.positional(0);;) {
    const JobArgument argument = follow ? take_begun_job(called, context, "logs") : take_job(called, context);
    if (argument.job == nullptr) return argument.exit_code;
    const OpenedJob& job = *argument.job;
    auto selector = take_selector(arguments, job.spec, context, job.named_hosts());
    if (!selector) return kExitUsage;
    const auto hosts = rank_hosts_of(job);
    auto wanted = wanted_streams(arguments, hosts, std::move(*selector));
    const auto verdict = job.view.verdict();
    SessionEnd end;
    if (!follow || (verdict.ok() && verdict->has_value())) {
      if (job.view.never_began()) {
        const std::string words = how_it_waits(job.view).words;
        say_note(context.terminal, text(job.view.id(), " has written nothing: ", printable(words)));
      }
      end.exit_code = print_logs(job, context,
                                 {.lines = *lines,
                                  .job_id = job.view.id(),
                                  .log_directory = job.view.log_directory(),
                                  .wanted = std::move(wanted),
                                  .hosts = hosts},
                                 past->start);
      if (!follow || end.exit_code != kExitOk) return end.exit_code;
      end.verdict = *verdict;
    } else {
      SessionOptions options;
      options.viewer = "logs";
      options.output = options.from_the_start = options.reader_decides = true;
      options.wanted = std::move(wanted);
      options.hosts = hosts;
      options.lines = *lines;
      options.start = past->start;
      end = follow_job(job, context, std::move(options));
    }
    const auto next = next_job(job.view, end, context);
    if (next == nullptr) return end.verdict ? kExitOk : end.exit_code;
    called = next->id();
  }
}

}  // namespace

Command logs_command() {
  std::vector<Flag> flags = {
      {.name = "follow", .value = "", .help = "go on until the job has ended; Ctrl-C detaches", .letter = 'f'}};
  for (const Flag& flag : selector_flags()) flags.push_back(flag);
  for (const Flag& flag : stream_flags()) flags.push_back(flag);
  for (const Flag& flag : history_flags("lines of each rank")) flags.push_back(flag);
  for (const Flag& flag : output_flags()) flags.push_back(flag);
  return where_the_job_lives({.name = "logs",
                              .summary = "show what ranks wrote, from their files, while the job runs and after it",
                              .description = "",
                              .flags = std::move(flags),
                              .positionals = {{.name = "JOB", .help = "which job"}},
                              .run = run_logs});
}

}  // namespace monarch
