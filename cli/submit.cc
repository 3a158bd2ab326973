#include "cli/submit.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "cli/exit_code.h"
#include "cli/say.h"
#include "supervisor/client/new_job.h"
#include "supervisor/client/run_program.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/client/viewer_json.h"
#include "transport/base/clock.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"

namespace monarch {

namespace {

constexpr Duration kSubmits = Duration::seconds(30);
constexpr Duration kLooksForIt = Duration::seconds(60);  // after an answer of sbatch that was lost
constexpr Duration kLookAgain = Duration::seconds(2);
constexpr Duration kGlance = Duration::milliseconds(200);  // at the job's folder
constexpr Duration kFirstPause = Duration::seconds(1);     // between two questions to Slurm
constexpr Duration kLongestPause = Duration::seconds(10);
// A supervisor that Slurm has started says so in the folder; over this time the folder may be another one there.
constexpr Duration kShouldBeThere = Duration::seconds(60);
constexpr Duration kCancelled = Duration::seconds(60);
constexpr int kSureAfter = 3;  // looks that find it over, while its folder says nothing of that
constexpr std::size_t kOutputTail = 2'000;

Verdict verdict_of(Outcome outcome, int exit_code, CauseKind kind, std::string reason) {
  Verdict verdict;
  verdict.outcome = outcome;
  verdict.exit_code = exit_code;
  verdict.cause.kind = kind;
  verdict.cause.summary = reason;
  verdict.reason = std::move(reason);
  verdict.started = verdict.ended = wall_now();
  return verdict;
}

// The first that is written counts; a supervisor's own, where one began after all.
Verdict leave_verdict(const JobView& view, Verdict verdict) {
  const auto known = view.verdict();
  if (known.ok() && *known) return **known;
  // Where it cannot be written, whoever looks next finds the same.
  (void)view.directory().directory.write_file(kVerdictFile, to_json(verdict_json(verdict)) + "\n");
  return verdict;
}

std::optional<SubmittedJob> submitted_of(const JobView& view) {
  const auto json = view.directory().directory.read_file(kSubmittedFile, kSubmittedBytes);
  if (!json.ok()) return std::nullopt;
  auto parsed = parse_submitted(*json);
  return parsed.ok() ? std::optional(std::move(*parsed)) : std::nullopt;
}

// Slurm's word for what it does not know is an error of squeue's.
Result<QueuedJob> ask_queue(std::uint32_t job, int interrupt = -1) {
  const auto answer = run_program(queue_query(job), {.interrupt = interrupt});
  if (answer.ok()) return read_queue(*answer, job);
  if (says_unknown_job(answer.error().message)) return QueuedJob{};
  return answer.error();
}

void show_output(const JobView& view) {
  const auto output = view.directory().directory.read_file(kSubmissionOutputFile, limits::kSpecBytes);
  if (!output.ok() || output->empty()) return;
  std::string_view tail(*output);
  if (tail.size() > kOutputTail) tail.remove_prefix(tail.find('\n', tail.size() - kOutputTail) + 1);
  std::string shown;
  while (!tail.empty()) {
    const std::size_t newline = std::min(tail.find('\n'), tail.size());
    shown += text("   │ ", printable(tail.substr(0, newline)), "\n");
    tail.remove_prefix(std::min(newline + 1, tail.size()));
  }
  write_err(shown);
}

class Queue {
 public:
  Queue(const JobView& view, const Context& context, SignalFd& signals, const QueueWait& wait, SubmittedJob submitted)
      : view_(view),
        context_(context),
        signals_(signals),
        wait_(wait),
        submitted_(std::move(submitted)),
        policy_(wait.kind),
        began_(boot_now()),
        told_at_(began_) {}

  std::optional<SessionEnd> follow();

 private:
  void look();
  void note(const QueuedJob& found);
  std::optional<SessionEnd> take_signals();
  std::optional<SessionEnd> withdraw(const SignalAnswer& answer, int number);
  std::optional<SessionEnd> over(const QueuedJob& found);
  void say(const std::string& words) {
    if (!wait_.quiet) say_note(context_.terminal, words);
  }
  std::string called() const { return text("job ", submitted_.job, " of Slurm"); }

  const JobView& view_;
  const Context& context_;
  SignalFd& signals_;
  const QueueWait& wait_;
  const SubmittedJob submitted_;
  SignalPolicy policy_;
  Instant began_;
  Instant told_at_;
  Instant look_at_ = Instant();
  Duration pause_ = kFirstPause;
  std::string told_;
  std::string silence_;  // of Slurm, as it was told
  Instant running_since_ = Instant::never();
  bool asked_where_ = false;
  int seen_over_ = 0;
  std::optional<SessionEnd> end_;
};

std::optional<SessionEnd> Queue::follow() {
  for (;;) {
    const auto verdict = view_.verdict();
    if (verdict.ok() && *verdict && !view_.live()) {
      say_note(context_.terminal, text(view_.id(), ": ", printable((*verdict)->reason)));
      return SessionEnd{.exit_code = (*verdict)->exit_code, .verdict = **verdict};
    }
    if (view_.endpoint().ok()) return std::nullopt;
    if (wait_.leave_after && boot_now() - began_ >= *wait_.leave_after) {
      say_note(context_.terminal,
               text("--timeout ", to_text(*wait_.leave_after), " is over, and ", view_.id(), " has not ended"));
      return SessionEnd{.exit_code = kExitTimeout};
    }
    if (boot_now() >= look_at_) look();
    if (end_) return end_;
    if (auto left = take_signals()) return left;
    pollfd wait{.fd = signals_.descriptor(), .events = POLLIN, .revents = 0};
    (void)::poll(&wait, 1, EventLoop::wait_milliseconds(boot_now(), boot_now() + kGlance));
  }
}

void Queue::look() {
  const auto found = ask_queue(submitted_.job, signals_.descriptor());
  look_at_ = boot_now() + pause_;
  pause_ = std::min(pause_ * 3 / 2, kLongestPause);
  if (!found.ok()) {
    if (found.error().code == ErrorCode::kGone || silence_ == found.error().message) return;
    silence_ = found.error().message;
    return say(text("Slurm does not say how its job ", submitted_.job, " is: ", printable(silence_), "; asking on"));
  }
  silence_.clear();
  note(*found);
}

void Queue::note(const QueuedJob& found) {
  if (found.state == QueuedJob::State::kOver || found.state == QueuedJob::State::kUnknown) {
    pause_ = kFirstPause;
    if (++seen_over_ >= kSureAfter) end_ = over(found);
    return;
  }
  seen_over_ = 0;
  std::string words = text(called(), " waits", found.reason.empty() ? "" : text(": ", printable(found.reason)));
  if (found.state == QueuedJob::State::kRunning) {
    running_since_ = std::min(running_since_, boot_now());
    pause_ = kFirstPause;
    words = text(called(), " has ", printable(found.nodes), ", and its supervisor starts");
    if (boot_now() - running_since_ >= kShouldBeThere && !std::exchange(asked_where_, true)) {
      say(text("nothing of ", view_.id(), " is to be seen in ", view_.path(), " after ", to_text(kShouldBeThere),
               ": is that the same folder on ", printable(found.nodes), "? Its script writes to ",
               kSubmissionOutputFile, " there"));
    }
  }
  const Instant now = boot_now();
  if (words == told_ && now - told_at_ < limits::kNamesMissingEvery) return;
  say(words == told_ ? text(words, " (", to_text(Duration::seconds((now - began_).count_milliseconds() / 1000)), ")")
                     : words);
  told_ = words;
  told_at_ = now;
}

std::optional<SessionEnd> Queue::over(const QueuedJob& found) {
  const bool unknown = found.state == QueuedJob::State::kUnknown;
  const bool cancelled = found.word.starts_with("CANCELLED");
  const std::string how = unknown ? "Slurm does not know it any more" : text("it is ", found.word);
  const Verdict verdict =
      leave_verdict(view_, verdict_of(cancelled ? Outcome::kStopped : Outcome::kFailed,
                                      cancelled                ? kExitStopped
                                      : unknown || found.taken ? kExitLost
                                                               : kExitUnreachable,
                                      cancelled ? CauseKind::kRequest : CauseKind::kStart,
                                      text("its ", called(), " is over before a supervisor began: ", how)));
  if (!cancelled) show_output(view_);
  say_note(context_.terminal, text(view_.id(), ": ", printable(verdict.reason), "; its script wrote to ", view_.path(),
                                   "/", kSubmissionOutputFile));
  return SessionEnd{.exit_code = verdict.exit_code, .verdict = verdict};
}

std::optional<SessionEnd> Queue::take_signals() {
  while (const auto signal = signals_.next()) {
    const SignalAnswer answer = policy_.on_signal(signal->number);
    switch (answer.action) {
      case SignalAction::kStop:
      case SignalAction::kKill:
        if (auto end = withdraw(answer, signal->number)) return end;
        break;
      case SignalAction::kDetach:
        say_note(context_.terminal, text("detached; ", view_.id(),
                                         " waits on in Slurm's queue. To take it out: monarch stop ", view_.id()));
        return SessionEnd{.exit_code = answer.exit_code};
      case SignalAction::kLeave:
        say_note(context_.terminal,
                 text("leaving ", view_.id(), "; to take it out of Slurm's queue: monarch stop ", view_.id()));
        return SessionEnd{.exit_code = answer.exit_code};
      case SignalAction::kForward:
        say_note(context_.terminal, text(signal_name(signal->number), " was not sent: no rank runs yet"));
        break;
      case SignalAction::kIgnore: break;
    }
  }
  return std::nullopt;
}

std::optional<SessionEnd> Queue::withdraw(const SignalAnswer& answer, int number) {
  const bool interrupted = answer.interrupted;
  const int exit_code = interrupted ? kExitInterrupted : answer.exit_code;
  const auto verdict = withdraw_from_queue(
      view_,
      verdict_of(interrupted ? Outcome::kInterrupted : Outcome::kStopped, exit_code, CauseKind::kRequest,
                 text(signal_name(number), " to monarch ", wait_.viewer, ", pid ", ::getpid(),
                      ", while it was in Slurm's queue")),
      context_);
  if (!verdict) return std::nullopt;
  say_note(context_.terminal, text(view_.id(), ": ", printable(verdict->reason)));
  return SessionEnd{.exit_code = verdict->exit_code, .verdict = verdict};
}

}  // namespace

std::optional<Verdict> withdraw_from_queue(const JobView& view, const Verdict& verdict, const Context& context) {
  const auto submitted = submitted_of(view);
  if (!submitted || view.endpoint().ok()) return std::nullopt;
  say_note(context.terminal, text("taking job ", submitted->job, " out of Slurm's queue"));
  const Instant until = boot_now() + kCancelled;
  std::string silence;
  while (boot_now() < until && !view.endpoint().ok()) {
    // Whose it is was said when it was submitted: a number alone may be another's by now.
    const auto known = run_program(lost_submission_query());
    const auto found = known.ok() ? find_submission(*known, view.id()) : std::nullopt;
    const bool gone = known.ok() && (!found || found->state == QueuedJob::State::kOver);
    if (gone) return leave_verdict(view, verdict);
    const auto cancelled = known.ok() ? run_program(cancel_command(found->job)) : known;
    if (!cancelled.ok() && silence != cancelled.error().message) {
      silence = cancelled.error().message;
      say_note(context.terminal,
               text("Slurm does not take job ", submitted->job, " back: ", printable(silence), "; trying on"));
    }
    (void)::poll(nullptr, 0, static_cast<int>(kFirstPause.count_milliseconds()));
  }
  return std::nullopt;
}

Verdict stopped_in_queue(const std::string& who) {
  return verdict_of(Outcome::kStopped, kExitStopped, CauseKind::kRequest, text(who, ", while it was in Slurm's queue"));
}

std::optional<SessionEnd> wait_in_queue(const JobView& view, const Context& context, SignalFd& signals,
                                        const QueueWait& wait) {
  auto submitted = view.queued() ? submitted_of(view) : std::nullopt;
  if (!submitted) return std::nullopt;
  return Queue(view, context, signals, wait, std::move(*submitted)).follow();
}

JobArgument take_begun_job(const std::string& written, const Context& context, const std::string& viewer) {
  JobArgument argument = take_job(written, context);
  if (argument.job == nullptr || !argument.job->view.queued()) return argument;
  const auto signals = SignalFd::create(SignalPolicy::signals(ViewerKind::kWatcher));
  if (!signals.ok()) {
    say_error(context.terminal, {.id = "E0908", .message = signals.error().message, .help = ""});
    return {.job = nullptr, .exit_code = kExitInternal};
  }
  const auto ended = wait_in_queue(argument.job->view, context, **signals, {.viewer = viewer});
  if (ended) return {.job = nullptr, .exit_code = ended->exit_code};
  return take_job(argument.job->view.id(), context);
}

std::optional<std::string> queue_words(const JobView& view) {
  const auto submitted = view.queued() ? submitted_of(view) : std::nullopt;
  if (!submitted) return std::nullopt;
  const std::string called = text("job ", submitted->job, " of Slurm");
  const auto found = ask_queue(submitted->job);
  if (!found.ok()) return text(called, ", of which Slurm says nothing: ", printable(found.error().message));
  switch (found->state) {
    case QueuedJob::State::kWaiting:
      return text(called, " waits", found->reason.empty() ? "" : text(": ", printable(found->reason)));
    case QueuedJob::State::kRunning:
      return text(called, " has ", printable(found->nodes), ", and its supervisor has not begun yet");
    case QueuedJob::State::kOver: return text(called, " is over: ", printable(found->word));
    case QueuedJob::State::kUnknown: break;
  }
  return text(called, ", which Slurm does not know any more");
}

std::optional<JobSpec> begun_spec(const JobView& view, const Context& context) {
  const auto words = view.spec_text();
  const auto directory = view.spec_directory();
  auto spec = words.ok() && directory.ok() ? parse_stored_spec(*words, *directory)
                                           : Result<JobSpec>(words.ok() ? directory.error() : words.error());
  if (spec.ok()) return std::move(*spec);
  say_error(context.terminal, {.id = "E0906", .message = spec.error().message, .help = ""});
  return std::nullopt;
}

int print_submission(const SpecInput& input, const Context& context) {
  const auto script =
      submission_script(input.spec, {.spec = input.text, .directory = input.directory, .monarch = context.executable});
  if (script.ok()) {
    write_out(*script);
    return kExitOk;
  }
  say_error(context.terminal, {.id = "E0935", .message = script.error().message, .help = ""});
  return kExitUsage;
}

namespace {

// Of an answer that was lost: whether Slurm has the job all the same. Nothing: it has not; an error: nobody knows.
Result<std::optional<std::uint32_t>> look_for(const std::string& job_id) {
  const Instant until = boot_now() + kLooksForIt;
  for (;;) {
    const auto answer = run_program(lost_submission_query());
    if (answer.ok()) {
      const auto found = find_submission(*answer, job_id);
      return found ? std::optional(found->job) : std::nullopt;
    }
    if (boot_now() >= until) return answer.error();
    (void)::poll(nullptr, 0, static_cast<int>(kLookAgain.count_milliseconds()));
  }
}

struct Submission {
  std::uint32_t job = 0;
  int exit_code = 0;
  std::string why;
};

Submission submit(const JobDirectory& job, const Context& context) {
  const auto answer = run_program(submit_command(job.id, job.directory.path()), {.deadline = kSubmits});
  const auto number = answer.ok() ? read_submission(*answer) : Result<std::uint32_t>(answer.error());
  if (number.ok()) return {.job = *number};
  const std::string why = printable(number.error().message);
  if (number.error().code == ErrorCode::kUnsupported && says_refused(number.error().message)) {
    return {.exit_code = kExitUsage, .why = why};
  }
  say_note(context.terminal, text("Slurm's answer was lost (", why, "); looking whether it has the job"));
  const auto found = look_for(job.id);
  if (found.ok() && *found) return {.job = **found};
  if (found.ok()) return {.exit_code = kExitUnreachable, .why = text(why, "; it has not taken the job")};
  return {.exit_code = kExitUnreachable,
          .why = text(why, "; whether it has the job nobody knows: ", printable(found.error().message),
                      ". If it starts it, it finds that nobody waits for it, and ends")};
}

}  // namespace

LaunchedJob submit_job(const SpecInput& input, const Context& context) {
  const auto failed = [&](std::string_view id, int exit_code, const std::string& message) {
    say_error(context.terminal, {.id = std::string(id), .message = message, .help = ""});
    return LaunchedJob{.view = nullptr, .exit_code = exit_code};
  };
  auto signals = SignalFd::create(SignalPolicy::signals(ViewerKind::kOwner));
  if (!signals.ok()) return failed("E0908", kExitInternal, signals.error().message);
  const auto script =
      submission_script(input.spec, {.spec = input.text, .directory = input.directory, .monarch = context.executable});
  if (!script.ok()) return failed("E0935", kExitUsage, script.error().message);
  // Asked for before there is a folder: where there is no Slurm, there is no job.
  if (const auto known = run_program({"sbatch", "--version"}); !known.ok()) {
    say_error(context.terminal,
              {.id = "E0935",
               .message = "the job is for Slurm, this shell is in no allocation, and sbatch cannot be asked for one",
               .help = known.error().code == ErrorCode::kNotFound ? "there is no sbatch on this machine"
                                                                  : printable(known.error().message)});
    return {.view = nullptr, .exit_code = kExitUsage};
  }
  const auto made =
      make_job(input.spec.name, {.spec = input.text, .spec_directory = input.directory, .origin = input.origin});
  if (!made.ok()) {
    const bool place = made.error().code == ErrorCode::kInvalid;
    return failed(place ? "E0907" : "E0909", place ? kExitUsage : kExitJournal, made.error().message);
  }
  const JobDirectory& job = made->job;
  say_note(context.terminal, text("job ", job.id, " from ", printable(input.name)));
  auto view = JobView::open(made->state, job.id);
  if (!view.ok()) return failed("E0908", kExitInternal, view.error().message);
  const Status written = job.directory.write_file(kSubmissionScriptFile, *script);
  const Submission taken =
      written.ok() ? submit(job, context) : Submission{.exit_code = kExitJournal, .why = written.error().message};
  if (taken.exit_code != kExitOk) {
    const Verdict verdict = leave_verdict(*view, verdict_of(Outcome::kFailed, taken.exit_code, CauseKind::kStart,
                                                            text("Slurm did not take it: ", taken.why)));
    LaunchedJob none = failed("E0935", taken.exit_code, text("Slurm did not take the job: ", taken.why));
    none.end = {.exit_code = taken.exit_code, .verdict = verdict};
    none.signals = std::move(*signals);
    none.ended = std::make_unique<JobView>(std::move(*view));
    return none;
  }
  const SubmittedJob submitted{.job = taken.job, .submitted = "", .host = name_of_this_machine()};
  if (const Status kept = job.directory.write_file(kSubmittedFile, write_submitted(submitted)); !kept.ok()) {
    // Nobody would find it again.
    (void)run_program(cancel_command(taken.job));
    return failed("E0909", kExitJournal, kept.error().message);
  }
  say_note(context.terminal, text("it is job ", taken.job, " of Slurm"));
  return {.view = std::make_unique<JobView>(std::move(*view)), .signals = std::move(*signals), .exit_code = kExitOk};
}

}  // namespace monarch
