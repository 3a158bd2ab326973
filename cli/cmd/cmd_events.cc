#include <poll.h>
#include <sys/inotify.h>

#include <array>
#include <cerrno>
#include <deque>

#include "cli/args/say.h"
#include "cli/away/away.h"
#include "cli/commands.h"
#include "cli/follow/session_flags.h"
#include "cli/job/job_argument.h"
#include "cli/show/announcer.h"
#include "supervisor/client/link/viewer_json.h"
#include "supervisor/journal/journal_reader.h"
#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"

namespace monarch {

namespace {

// Without inotify's word (the directory may be on a network) the journal is looked at this often.
constexpr Duration kLookPeriod = Duration::seconds(1);
// A supervisor that crashed is started again well within this.
constexpr Duration kAbandonedAfter = Duration::seconds(15);

std::string event_words(const JobEvent& event, bool json, bool colour) {
  if (json) return to_json(event_json(event)) + "\n";
  std::string line = plain_event_line(event);
  if (event.severity == Severity::kInfo) return line;
  const Colour shade = event.severity == Severity::kError ? Colour::kRed : Colour::kYellow;
  return paint(shade, std::string_view(line).substr(0, line.size() - 1), colour) + "\n";
}

// Which events are meant, and how they are shown.
struct Shown {
  History past;
  Selector selector;
  bool json = false;
  bool colour = false;
};

class EventPrinter {
 public:
  EventPrinter(const Terminal& terminal, Shown shown) : terminal_(terminal), shown_(std::move(shown)) {}

  // Those of the past, of which only the last ones may be meant.
  void add_past(const JobEvent& event) {
    if (!meant(event)) return;
    lines_.push_back(event_words(event, shown_.json, shown_.colour));
    if (shown_.past.start.lines && lines_.size() > *shown_.past.start.lines) lines_.pop_front();
  }
  void print_past() {
    std::string out;
    for (const std::string& line : lines_) out += line;
    lines_.clear();
    write_out(terminal_, out);
  }
  void print(const JobEvent& event) {
    if (meant(event)) write_out(terminal_, event_words(event, shown_.json, shown_.colour));
  }

 private:
  bool meant(const JobEvent& event) {
    if (!shown_.selector.has(event)) return false;
    if (shown_.past.start.since && event.time < *shown_.past.start.since) return false;
    if (!shown_.past.only) return true;
    const std::string line = plain_event_line(event);
    return shown_.past.only->matches(std::string_view(line).substr(0, line.size() - 1));
  }

  const Terminal& terminal_;
  Shown shown_;
  std::deque<std::string> lines_;
};

int fail(const Context& context, const std::string& message) {
  say_error(context.terminal, {.id = "E0908", .message = message, .help = ""});
  return kExitInternal;
}

// Waits until something in the directory changes, or for a while.
void wait_for_change(int inotify, Duration at_most) {
  pollfd wait{.fd = inotify, .events = POLLIN, .revents = 0};
  // What poll() answers does not matter: the journal is read in any case.
  (void)::poll(&wait, 1, EventLoop::wait_milliseconds(boot_now(), boot_now() + at_most));
  alignas(inotify_event) std::array<char, 4096> changes{};
  while (inotify >= 0 && ::read(inotify, changes.data(), changes.size()) > 0) continue;
}

int follow_events(const OpenedJob& job, const Context& context, EventPrinter& printer) {
  auto directory = job.view.directory().directory.duplicate();
  if (!directory.ok()) return fail(context, directory.error().message);
  const UniqueFd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  // Without a watch, kLookPeriod has to do.
  if (inotify.valid())
    (void)::inotify_add_watch(inotify.get(), job.view.path().c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO);
  const std::unique_ptr<JournalFiles> files = posix_journal_files(std::move(*directory));
  const auto contents = read_journal(*files);
  if (!contents.ok()) return fail(context, contents.error().message);
  if (!contents->usable()) return fail(context, contents->describe_end());
  for (const std::vector<Record>* part : {&contents->history, &contents->records}) {
    for (const Record& record : *part) {
      if (const auto event = event_of(record)) printer.add_past(*event);
    }
  }
  printer.print_past();
  JournalFollower follower(*files, *contents);
  Instant alive_at = boot_now();
  for (;;) {
    // In this order: what is written before the job ended is read after it was seen to have ended.
    const bool ended = !job.view.live() && !job.view.awaited_from();
    if (!ended) alive_at = boot_now();
    const auto news = follower.poll();
    if (!news.ok()) return fail(context, news.error().message);
    if (news->missed > 0)
      say_note(context.terminal, text(news->missed, " records were deleted before they could be read"));
    for (const Record& record : news->records) {
      if (const auto event = event_of(record)) printer.print(*event);
    }
    if (ended) {
      const auto verdict = job.view.verdict();
      if (verdict.ok() && *verdict) return kExitOk;
      if (boot_now() > alive_at + kAbandonedAfter)
        return fail(context, text("no supervisor of ", job.view.id(), " runs, and it left no verdict"));
    }
    if (has_lost_output(context.terminal)) return kExitOk;  // nobody reads on
    wait_for_change(inotify.get(), kLookPeriod);
  }
}

int run_events(const Arguments& arguments, Context& context) {
  auto past = history(arguments, context);
  if (!past) return kExitUsage;
  const JobArgument argument = take_job(arguments.positional(0), context);
  if (argument.job == nullptr) return argument.exit_code;
  auto selector = take_selector(arguments, argument.job->spec, context, argument.job->named_hosts());
  if (!selector) return kExitUsage;
  EventPrinter printer(context.terminal, {.past = std::move(*past),
                                          .selector = std::move(*selector),
                                          .json = arguments.has("json"),
                                          .colour = context.terminal.out_colour});
  if (arguments.has("follow")) return follow_events(*argument.job, context, printer);
  const auto events = argument.job->view.events();
  if (!events.ok()) return fail(context, events.error().message);
  for (const JobEvent& event : events->events) printer.add_past(event);
  printer.print_past();
  if (!events->cut.empty()) return fail(context, text("what follows in the journal cannot be read: ", events->cut));
  say_missing_end(argument.job->view, context);
  return kExitOk;
}

}  // namespace

Command events_command() {
  std::vector<Flag> flags = {{.name = "follow", .value = "", .help = "go on until the job has ended", .letter = 'f'}};
  for (const Flag& flag : history_flags("events")) flags.push_back(flag);
  flags.push_back({.name = "json", .value = "", .help = "one object per line"});
  for (const Flag& flag : selector_flags()) flags.push_back(flag);
  return where_the_job_lives({.name = "events",
                              .summary = "show what happened to a job, from its journal, while it runs and after it",
                              .description = "",
                              .flags = std::move(flags),
                              .positionals = {{.name = "JOB", .help = "which job"}},
                              .run = run_events});
}

}  // namespace monarch
