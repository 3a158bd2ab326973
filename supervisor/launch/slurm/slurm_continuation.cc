#include "supervisor/launch/slurm/slurm_continuation.h"

#include <utility>

#include "supervisor/launch/slurm/submission.h"
#include "transport/base/log.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr Duration kAskAgain = Duration::seconds(1);

}  // namespace

SlurmContinuation::SlurmContinuation(EventLoop& loop, SlurmCalls& calls, SlurmContinuationOptions options, Then then)
    : loop_(loop), calls_(calls), options_(std::move(options)), then_(std::move(then)), asked_(options_.order.again) {}

SlurmContinuation::~SlurmContinuation() { loop_.cancel(retry_); }

void SlurmContinuation::ask() {
  if (options_.how == OnPreempt::kRequeue) return requeue();
  asked_ ? look() : submit();
}

void SlurmContinuation::call(Words command, void (SlurmContinuation::*then)(const Result<std::string>& answer)) {
  calls_.call(std::move(command),
              scope_.guard([this, then](const Result<std::string>& answer) { (this->*then)(answer); }));
}

// Whom the job of Slurm's belongs to from then on: who looks for it in the queue goes by that.
void SlurmContinuation::requeue() {
  call(in_environment(options_.environment, mark_command(options_.slurm_job, options_.order.job_id)),
       &SlurmContinuation::on_marked);
}

// A cluster may have comments of its own, and a job may be one that is requeued anyhow.
void SlurmContinuation::on_marked(const Result<std::string>& answer) {
  if (!answer.ok()) log_warn("job ", options_.slurm_job, " of Slurm: ", printable(answer.error().message));
  call(in_environment(options_.environment, requeue_command(options_.slurm_job)), &SlurmContinuation::on_requeued);
}

// Slurm kills us with the answer, or soon after. What it refuses may be what it has done already, at our own word or by
// itself.
void SlurmContinuation::on_requeued(const Result<std::string>& answer) {
  if (answer.ok()) return then_(options_.slurm_job);
  if (answer.error().code != ErrorCode::kUnsupported || !says_refused(answer.error().message)) {
    return try_again(answer.error());
  }
  refusal_ = answer.error();
  call(job_state_query(options_.slurm_job, options_.environment), &SlurmContinuation::on_state);
}

void SlurmContinuation::on_state(const Result<std::string>& answer) {
  if (!answer.ok()) return try_again(answer.error());
  const SlurmJobState state = read_job_state(*answer, options_.slurm_job).state;
  if (state == SlurmJobState::kWaiting || state == SlurmJobState::kEnding) return then_(options_.slurm_job);
  then_(refusal_);
}

void SlurmContinuation::submit() {
  asked_ = true;
  call(successor_command(options_.order.job_id, options_.order.directory, options_.variables),
       &SlurmContinuation::on_submitted);
}

void SlurmContinuation::on_submitted(const Result<std::string>& answer) {
  const auto number = answer.ok() ? read_submission(*answer) : Result<std::uint32_t>(answer.error());
  if (number.ok()) return then_(*number);
  try_again(number.error());
}

void SlurmContinuation::look() {
  call(in_environment(options_.environment, lost_submission_query()), &SlurmContinuation::on_looked);
}

void SlurmContinuation::on_looked(const Result<std::string>& answer) {
  if (!answer.ok()) return try_again(answer.error());
  const auto found = find_submission(*answer, options_.order.job_id);
  if (found) return then_(found->job);
  submit();
}

void SlurmContinuation::try_again(const Error& why) {
  const bool refused = why.code == ErrorCode::kUnsupported && says_refused(why.message);
  if (refused) return then_(why);
  if (loop_.now() >= options_.order.until) return then_(Error{ErrorCode::kTimeout, why.message});
  log_warn("going on as ", options_.order.job_id, ": ", printable(why.message), "; trying again");
  retry_ = loop_.at(loop_.now() + kAskAgain, [this] { ask(); });
}

}  // namespace monarch
