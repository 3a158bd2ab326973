#include "cli/follow/lost_submission.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "supervisor/core/spec/hostlist.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "transport/process/run_program.h"

namespace monarch {

namespace {

constexpr Duration kBetweenQuestions = Duration::seconds(3);

std::string_view without_domain(std::string_view name) { return name.substr(0, name.find('.')); }

}  // namespace

std::optional<LostSubmission> LostSubmission::of(const JobView& view) {
  auto submitted = submitted_of(view);
  if (!submitted || submitted->job == 0) return std::nullopt;
  const char* own = std::getenv("SLURM_JOB_ID");
  if (own != nullptr && own == text(submitted->job)) return std::nullopt;
  return LostSubmission(view, std::move(*submitted));
}

LostSubmission::Answer LostSubmission::ask(const std::optional<StopRequest>& stop, int interrupt, const Say& say) {
  if (boot_now() < ask_at_) return {};
  const auto found = ask_queue(*view_, submitted_.job, interrupt);
  if (!found.ok() && found.error().code == ErrorCode::kGone) return {};
  ask_at_ = boot_now() + kBetweenQuestions;
  const bool unknown = found.ok() && found->state == QueuedJob::State::kUnknown;
  if (unknown && !known_) return {.nobody_knows = true};
  known_ = known_ || found.ok();
  if (unknown || (found.ok() && found->state == QueuedJob::State::kOver)) {
    over_since_ = std::min(over_since_, boot_now());
    // What its supervisor wrote may come to this machine later than Slurm's word.
    if (boot_now() - over_since_ < kSureOfOneThatRan) return {};
    return {.verdict = over(*found, stop)};
  }
  over_since_ = Instant::never();
  const std::string words = words_of(found, stop.has_value());
  if (words == told_ && boot_now() < tell_at_) return {};
  told_ = words;
  tell_at_ = boot_now() + limits::kNamesMissingEvery;
  say(words);
  return {};
}

// A supervisor that cannot be reached from here is not lost: what somebody wants of it, Slurm does only where its node
// is none of the job's any more.
std::string LostSubmission::words_of(const Result<QueuedJob>& found, bool stops) {
  const std::string called = called_of(submitted_);
  const std::string nobody = text("no supervisor of ", view_->id(), " answers, and ");
  if (!found.ok()) {
    return text(nobody, "Slurm does not say how ", called, " is: ", printable(found.error().message), "; asking on");
  }
  if (found->state == QueuedJob::State::kEnding) return text(nobody, called, " ends");
  const std::string has = text(nobody, called, " still has ", printable(found->nodes));
  if (!stops) return text(has, ": waiting for Slurm to end it");
  if (has_first_node(*found)) {
    return text(has, ": waiting for it, or for Slurm to give up its node; to end it all the same: scancel ",
                submitted_.job);
  }
  const auto cancelled = run_program(cancel_command(submitted_.job), {.without = not_for_asking()});
  if (cancelled.ok()) return text(has, ": taking it from Slurm");
  return text(has, ", which does not take it back: ", printable(cancelled.error().message), "; trying on");
}

bool LostSubmission::has_first_node(const QueuedJob& found) const {
  const auto endpoint = view_->endpoint();
  const auto nodes = expand_hostlist(found.nodes);
  if (!endpoint.ok() || !nodes.ok()) return true;
  return std::any_of(nodes->begin(), nodes->end(),
                     [&](const std::string& node) { return without_domain(node) == without_domain(endpoint->host); });
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
