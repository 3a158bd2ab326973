#include "cli/start/slurm_queue.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "cli/args/say.h"
#include "cli/job/submitted_job.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "transport/process/run_program.h"

namespace monarch {

namespace {

constexpr Duration kGlance = Duration::milliseconds(200);  // at the job's folder
constexpr Duration kFirstPause = Duration::seconds(1);     // between two questions to Slurm
constexpr Duration kLongestPause = Duration::seconds(10);
// A supervisor that Slurm has started says so in the folder; over this time the folder may be another one there.
constexpr Duration kShouldBeThere = Duration::seconds(60);
constexpr Duration kCancelled = Duration::seconds(60);
// That it is over, while its folder says nothing of that: of one that never had a node.
constexpr Duration kSureOfOne = Duration::seconds(2);
// That nobody submits it any more, who wrote that somebody does.
constexpr Duration kSureOfNone = kMaySubmit + Duration::seconds(30);
constexpr std::size_t kOutputTail = 2'000;

// Of squeue(1)'s reasons those that waiting alone mostly does not help against.
struct Obstacle {
  std::string_view reason;
  std::string_view words;
};
constexpr std::array kObstacles = {
    Obstacle{"PartitionNodeLimit",
             "the partition has, or allows, fewer nodes than the job asks for, or they are down or drained"},
    Obstacle{"PartitionTimeLimit", "the partition allows less time than the job asks for"},
    Obstacle{"BadConstraints", "no nodes are what the job asks for"},
};

std::string waits(const QueuedJob& found) {
  if (found.reason.empty()) return " waits";
  const auto* obstacle = std::find_if(kObstacles.begin(), kObstacles.end(),
                                      [&](const Obstacle& known) { return known.reason == found.reason; });
  if (obstacle == kObstacles.end()) return text(" waits: ", printable(found.reason));
  return text(" waits: ", found.reason, ": ", obstacle->words);
}

// True: somebody does not want to wait any more. A terminal that is resized says nothing of that.
bool pause_for(Duration time, SignalFd* signals) {
  if (!pause(time, signals == nullptr ? -1 : signals->descriptor())) return false;
  SignalPolicy policy(ViewerKind::kWatcher);
  bool leaves = false;
  while (const auto signal = signals->next()) {
    leaves = leaves || policy.on_signal(signal->number).action == SignalAction::kDetach;
  }
  return leaves;
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

Verdict verdict_of_over(const QueuedJob& found, const std::string& called) {
  const bool unknown = found.state == QueuedJob::State::kUnknown;
  const bool cancelled = found.word.starts_with("CANCELLED");
  const std::string how = unknown ? "Slurm does not know it any more" : text("it is ", printable(found.word));
  const std::string where = found.nodes.empty() || cancelled
                                ? ""
                                : text(". Its script ran on ", printable(found.nodes), " and wrote to ",
                                       kSubmissionOutputFile, " of the job's folder, if that is the same there");
  return verdict_without_supervisor(cancelled ? Outcome::kStopped : Outcome::kFailed,
                                    cancelled                ? kExitStopped
                                    : unknown || found.taken ? kExitLost
                                                             : kExitUnreachable,
                                    cancelled ? CauseKind::kRequest : CauseKind::kStart,
                                    text("its ", called, " is over before a supervisor began: ", how, where));
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

  QueueOutcome follow();

 private:
  void look();
  void note(const QueuedJob& found);
  std::optional<SessionEnd> take_signals();
  std::optional<SessionEnd> withdraw(const SignalAnswer& answer, int number);
  std::optional<SessionEnd> over(const QueuedJob& found);
  Instant sure_at(const QueuedJob& found) const;
  void say(const std::string& words) {
    if (!wait_.quiet) say_note(context_.terminal, words);
  }
  std::string called() const { return called_of(submitted_); }

  const JobView& view_;
  const Context& context_;
  SignalFd& signals_;
  const QueueWait& wait_;
  SubmittedJob submitted_;
  SignalPolicy policy_;
  Instant began_;
  Instant told_at_;
  Instant look_at_ = Instant();
  Duration pause_ = kFirstPause;
  std::string told_;
  std::string silence_;  // of Slurm, as it was told
  Instant running_since_ = Instant::never();
  bool asked_where_ = false;
  Instant over_since_ = Instant::never();
  std::optional<SessionEnd> end_;
  std::optional<StopRequest> stop_;
};

QueueOutcome Queue::follow() {
  for (;;) {
    const auto verdict = view_.verdict();
    // A short job may have begun and ended since the last look: what it wrote is yet to be shown.
    if (verdict.ok() && *verdict && !view_.live() && !view_.never_began()) return {.end = {}, .stop = stop_};
    if (verdict.ok() && *verdict && !view_.live()) {
      say_note(context_.terminal, text(view_.id(), ": ", printable((*verdict)->reason)));
      return {.end = SessionEnd{.exit_code = (*verdict)->exit_code, .verdict = **verdict}, .stop = {}};
    }
    if (view_.endpoint().ok()) return {.end = {}, .stop = stop_};
    if (wait_.leave_after && boot_now() - began_ >= *wait_.leave_after) {
      say_note(context_.terminal,
               text("--timeout ", to_text(*wait_.leave_after), " is over, and ", view_.id(), " has not ended"));
      return {.end = SessionEnd{.exit_code = kExitTimeout}, .stop = {}};
    }
    if (boot_now() >= look_at_) look();
    if (end_) return {.end = std::move(end_), .stop = {}};
    if (auto left = take_signals()) return {.end = std::move(left), .stop = {}};
    (void)pause(kGlance, signals_.descriptor());
  }
}

void Queue::look() {
  if (submitted_.job == 0) submitted_ = submitted_of(view_).value_or(submitted_);
  const auto found = ask_queue(view_, submitted_.job, signals_.descriptor());
  look_at_ = boot_now() + pause_;
  pause_ = std::min(pause_ * 3 / 2, kLongestPause);
  if (found.ok()) {
    silence_.clear();
    return note(*found);
  }
  if (found.error().code == ErrorCode::kGone) return;
  if (silence_ == found.error().message && boot_now() - told_at_ < limits::kNamesMissingEvery) return;
  silence_ = found.error().message;
  told_at_ = boot_now();
  say(text("Slurm does not say how ", called(), " is: ", printable(silence_), "; asking on"));
}

// What its supervisor has written may come to this machine later than Slurm's word.
Instant Queue::sure_at(const QueuedJob& found) const {
  if (submitted_.job == 0 && found.job == 0) return over_since_ + kSureOfNone;
  return over_since_ + (found.nodes.empty() ? kSureOfOne : kSureOfOneThatRan);
}

void Queue::note(const QueuedJob& found) {
  if (found.state == QueuedJob::State::kOver || found.state == QueuedJob::State::kUnknown) {
    pause_ = kFirstPause;
    over_since_ = std::min(over_since_, boot_now());
    if (boot_now() >= sure_at(found)) end_ = over(found);
    return;
  }
  over_since_ = Instant::never();
  std::string words = text(called(), waits(found));
  if (found.state == QueuedJob::State::kEnding) {
    pause_ = kFirstPause;
    words = text(called(), " ends");
  }
  if (found.state == QueuedJob::State::kRunning) {
    running_since_ = std::min(running_since_, boot_now());
    pause_ = kFirstPause;
    words = text(called(), " has ", printable(found.nodes), ", and its supervisor starts");
    if (boot_now() - running_since_ >= kShouldBeThere && !std::exchange(asked_where_, true)) {
      say(text("nothing of ", view_.id(), " is to be seen in ", view_.path(), " after ", to_text(kShouldBeThere),
               ": is that the same folder on ", printable(found.nodes), "?"));
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
  const auto verdict = leave_verdict(view_, verdict_of_over(found, called()));
  if (!verdict) return std::nullopt;
  if (verdict->outcome == Outcome::kFailed) show_output(view_);
  say_note(context_.terminal, text(view_.id(), ": ", printable(verdict->reason)));
  return SessionEnd{.exit_code = verdict->exit_code, .verdict = verdict};
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
  const std::string who = text(signal_name(number), " to monarch ", wait_.viewer, ", pid ", ::getpid());
  const Withdrawal taken =
      withdraw_from_queue(view_,
                          verdict_without_supervisor(interrupted ? Outcome::kInterrupted : Outcome::kStopped, exit_code,
                                                     CauseKind::kRequest, text(who, ", while it was in Slurm's queue")),
                          context_, &signals_);
  if (taken.verdict) {
    say_note(context_.terminal, text(view_.id(), ": ", printable(taken.verdict->reason)));
    return SessionEnd{.exit_code = taken.verdict->exit_code, .verdict = taken.verdict};
  }
  if (taken.unknown) {
    say_note(context_.terminal, text(view_.id(), " may still be in Slurm's queue: monarch stop ", view_.id()));
    return SessionEnd{.exit_code = exit_code};
  }
  stop_ = StopRequest{.how = StopHow::kOrderly,
                      .interrupted = interrupted,
                      .exit_code = interrupted ? 0 : answer.exit_code,
                      .who = who};
  return std::nullopt;
}

}  // namespace

Withdrawal withdraw_from_queue(const JobView& view, const Verdict& verdict, const Context& context, SignalFd* signals) {
  auto submitted = submitted_of(view);
  if (!submitted || view.endpoint().ok()) return {};
  say_note(context.terminal, text("taking ", called_of(*submitted), " out of its queue"));
  QueuePatience patience(submitted->job == 0 ? kSureOfNone : kCancelled);
  std::string silence;
  for (;;) {
    if (view.endpoint().ok()) return {};
    if (submitted->job == 0) submitted = submitted_of(view).value_or(*submitted);
    const std::string called = called_of(*submitted);
    const auto found = ask_queue(view, submitted->job);
    const bool over = found.ok() && found->state == QueuedJob::State::kOver;
    const bool unknown = found.ok() && found->state == QueuedJob::State::kUnknown;
    // One that is being submitted is not in the queue yet.
    if (over || (unknown && (submitted->job != 0 || patience.over()))) {
      return {.verdict = leave_verdict(view, verdict)};
    }
    if (patience.over()) return {.verdict = {}, .unknown = true};
    const bool again = found.ok() && !unknown && found->state != QueuedJob::State::kEnding;
    const auto cancelled = again ? run_program(cancel_command(found->job), {.without = not_for_asking()})
                                 : Result<std::string>(std::string());
    const std::string why = !found.ok() ? found.error().message : !cancelled.ok() ? cancelled.error().message : "";
    if (!why.empty() && (silence != why || patience.wants_word())) {
      silence = why;
      say_note(context.terminal, text("Slurm does not take ", called, " back: ", printable(silence), "; trying on"));
    }
    if (unknown && patience.wants_word()) say_note(context.terminal, text(called, " is not there yet; looking on"));
    if (pause_for(kFirstPause, signals)) return {.verdict = {}, .unknown = true};
  }
}

Verdict stopped_in_queue(const std::string& who) {
  return verdict_without_supervisor(Outcome::kStopped, kExitStopped, CauseKind::kRequest,
                                    text(who, ", while it was in Slurm's queue"));
}

QueueOutcome wait_in_queue(const JobView& view, const Context& context, SignalFd& signals, const QueueWait& wait) {
  auto submitted = view.queued() ? submitted_of(view) : std::nullopt;
  if (!submitted) return {};
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
  const QueueOutcome outcome = wait_in_queue(argument.job->view, context, **signals, {.viewer = viewer});
  if (outcome.end) return {.job = nullptr, .exit_code = outcome.end->exit_code};
  return take_job(argument.job->view.id(), context);
}

std::optional<std::string> queue_words(const JobView& view) {
  const auto submitted = view.queued() ? submitted_of(view) : std::nullopt;
  if (!submitted) return std::nullopt;
  const std::string called = called_of(*submitted);
  const auto found = ask_queue(view, submitted->job);
  if (!found.ok()) return text(called, ", of which Slurm says nothing: ", printable(found.error().message));
  switch (found->state) {
    case QueuedJob::State::kWaiting: return text(called, waits(*found));
    case QueuedJob::State::kRunning:
      return text(called, " has ", printable(found->nodes), ", and its supervisor has not begun yet");
    case QueuedJob::State::kEnding: return text(called, " ends");
    case QueuedJob::State::kOver:
    case QueuedJob::State::kUnknown: break;
  }
  if (submitted->job == 0) return text(called, " is not in its queue yet");
  (void)leave_verdict(view, verdict_of_over(*found, called));
  if (!view.queued()) return std::nullopt;
  return text(called, " is over, and what became of it is not known here yet");
}

NotBegun how_it_waits(const JobView& view) {
  if (auto queued = queue_words(view)) return {.phase = "queued", .words = std::move(*queued)};
  const auto verdict = view.verdict();
  if (verdict.ok() && *verdict) return {.phase = "ended", .words = (*verdict)->reason};
  return {.phase = "starting", .words = "it begins just now"};
}

}  // namespace monarch
