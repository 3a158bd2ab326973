// A job whose nodes Slurm takes, and that goes on as another one when Slurm has nodes again (launch.slurm.on_preempt): its folder is there,
// and this one's names it, before anybody hears the verdict; Slurm is asked once all is written, for by that it may end us.

#include <algorithm>
#include <utility>

#include "supervisor/client/continuation.h"
#include "supervisor/client/job_view.h"
#include "supervisor/client/link/viewer_json.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/core/state/foreseen_end.h"
#include "supervisor/loop/supervisor_loop.h"
#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/log.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// For an answer of Slurm's, where nodes are not taken by a time, or are any moment.
constexpr Duration kLeastPatience = Duration::seconds(10);

}  // namespace

// A supervisor that comes back to a job that has ended asks again for what nobody has begun.
void Supervisor::prepare_continuation(Verdict& verdict) {
  const LaunchFacts& launch = core_.spec().launch.facts();
  if (launch.on_preempt == OnPreempt::kStop || verdict.cause.rule != rule_of(launch)) return;
  const bool requeue = launch.on_preempt == OnPreempt::kRequeue;
  bool again = false;
  bool begun = false;
  const auto make = [&]() -> Result<JobDirectory> {
    MONARCH_ASSIGN(const StateDir state, StateDir::open_for_writing(files_.root));
    MONARCH_ASSIGN(const JobDirectory own, state.open_job(files_.job_id));
    const auto known = continued_as(state, own);
    again = known.has_value();
    MONARCH_ASSIGN(JobDirectory next, known ? state.open_job(*known) : make_continuation(state, own));
    MONARCH_ASSIGN(const JobView view, JobView::open(state, next.id));
    if (!view.submitted()) MONARCH_TRY(submit_continuation(next, requeue ? launch.allocation->job : 0));
    begun = !view.queued();
    return next;
  };
  auto next = make();
  if (!next.ok()) {
    log_error("going on: ", next.error().message);
    verdict.reason += text("; it does not go on: ", printable(next.error().message));
    return;
  }
  verdict.reason += text("; it goes on as ", next->id);
  if (begun) return;
  next_ = std::move(*next);
  const Instant by = core_.state().foreseen ? core_.state().foreseen->by : loop_->now();
  continuation_ = launcher_->continuation(
      {.job_id = next_->id,
       .directory = next_->directory.path(),
       .again = again,
       .until = std::clamp(by, loop_->now() + kLeastPatience, loop_->now() + kLeastPatience * 6)},
      [this](const Result<std::uint32_t>& batch_job) { on_continuation(batch_job); });
}

void Supervisor::ask_continuation(std::function<void()> then) {
  asked_continuation_ = std::move(then);
  continuation_->ask();
}

// What Slurm refuses, nobody is to wait for. Of what it has not answered to, its queue tells: who waits there looks for it.
void Supervisor::on_continuation(const Result<std::uint32_t>& slurm_job) {
  Status written;
  if (slurm_job.ok()) {
    log_info("it goes on as ", next_->id, ", job ", *slurm_job, " of Slurm");
    written = submit_continuation(*next_, *slurm_job);
  } else if (slurm_job.error().code != ErrorCode::kUnsupported) {
    log_error("whether it goes on as ", next_->id, " nobody knows: ", printable(slurm_job.error().message));
  } else {
    Verdict verdict;
    verdict.outcome = Outcome::kFailed;
    verdict.exit_code = kExitLost;
    verdict.cause.kind = CauseKind::kStart;
    verdict.cause.summary = text("Slurm did not take it: ", printable(slurm_job.error().message));
    verdict.reason = verdict.cause.summary;
    verdict.started = verdict.ended = wall_now();
    log_error("it was to go on as ", next_->id, ": ", verdict.reason);
    written = next_->directory.write_file(kVerdictFile, to_json(verdict_json(verdict)) + "\n");
  }
  if (!written.ok()) log_error(next_->directory.path(), ": ", written.error().message);
  std::exchange(asked_continuation_, nullptr)();
}

}  // namespace monarch
