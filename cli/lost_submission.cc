#include "cli/lost_submission.h"

#include <algorithm>
#include <utility>

#include "cli/exit_code.h"
#include "transport/base/text.h"
#include "transport/process/run_program.h"

namespace monarch {

namespace {

constexpr Duration kBetweenQuestions = Duration::seconds(3);

}  // namespace

std::optional<LostSubmission> LostSubmission::of(const JobView& view) {
  auto submitted = submitted_of(view);
  if (!submitted || submitted->job == 0) return std::nullopt;
  return LostSubmission(view, std::move(*submitted));
}

std::optional<Verdict> LostSubmission::ask(const std::optional<StopRequest>& stop, const Say& say) {
  if (boot_now() < ask_at_) return std::nullopt;
  const std::string called = called_of(submitted_);
  const auto found = ask_queue(*view_, submitted_.job);
  ask_at_ = boot_now() + kBetweenQuestions;
  const bool ended =
      found.ok() && (found->state == QueuedJob::State::kOver || found->state == QueuedJob::State::kUnknown);
  if (ended) {
    over_since_ = std::min(over_since_, boot_now());
    // What its supervisor wrote may come to this machine later than Slurm's word.
    if (boot_now() - over_since_ < kSureOfOneThatRan) return std::nullopt;
    return over(*found, stop);
  }
  over_since_ = Instant::never();
  if (found.ok() && stop && found->state == QueuedJob::State::kRunning) cancel(say);
  const std::string words =
      !found.ok() ? text("no supervisor of ", view_->id(), " answers, and Slurm does not say how ", called,
                         " is: ", printable(found.error().message), "; asking on")
                  : text("no supervisor of ", view_->id(), " answers, and ", called, " still has ",
                         printable(found->nodes), stop ? ": taking it from Slurm" : ": waiting for Slurm to end it");
  if (words == told_ && boot_now() < tell_at_) return std::nullopt;
  told_ = words;
  tell_at_ = boot_now() + limits::kNamesMissingEvery;
  say(words);
  return std::nullopt;
}

void LostSubmission::cancel(const Say& say) {
  const auto cancelled = run_program(cancel_command(submitted_.job), {.without = not_for_asking()});
  if (!cancelled.ok()) say(text("Slurm does not take it: ", printable(cancelled.error().message)));
}

std::optional<Verdict> LostSubmission::over(const QueuedJob& found, const std::optional<StopRequest>& stop) const {
  const std::string how = found.state == QueuedJob::State::kUnknown ? "Slurm does not know it any more"
                                                                    : text("it is ", printable(found.word));
  const auto endpoint = view_->endpoint();
  const std::string lost =
      text("the supervisor was lost", endpoint.ok() ? text(" with ", printable(endpoint->host)) : "", ", and ",
           called_of(submitted_), " is over: ", how);
  if (!stop) {
    return leave_verdict_for_supervisor(
        *view_, verdict_without_supervisor(Outcome::kFailed, kExitLost, CauseKind::kHost, lost));
  }
  const Outcome outcome = stop->interrupted ? Outcome::kInterrupted : Outcome::kStopped;
  const int exit_code = stop->interrupted ? kExitInterrupted : stop->exit_code != 0 ? stop->exit_code : kExitStopped;
  return leave_verdict_for_supervisor(
      *view_, verdict_without_supervisor(outcome, exit_code, CauseKind::kRequest, text(stop->who, "; ", lost)));
}

void LostSubmission::found_again() {
  over_since_ = Instant::never();
  told_.clear();
}

}  // namespace monarch
