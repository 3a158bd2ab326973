#include "cli/continued_job.h"

#include <utility>

#include "cli/exit_code.h"
#include "cli/job_argument.h"
#include "cli/say.h"
#include "cli/submitted_job.h"
#include "supervisor/client/continuation.h"
#include "supervisor/client/job_resolver.h"
#include "supervisor/client/new_job.h"
#include "supervisor/core/foreseen_end.h"
#include "transport/base/text.h"
#include "transport/process/run_program.h"

namespace monarch {

namespace {

constexpr const char* kSlurmJob = "SLURM_JOB_ID";
constexpr const char* kRestarts = "SLURM_RESTART_COUNT";

bool is_set(const Context& context, const char* name) {
  const std::string value = context.env.get(name);
  return !value.empty() && value != "0";
}

// One that Slurm's job is to go on with, by the word of the run before.
bool waits_for(const JobView& view, std::uint32_t slurm_job) {
  if (!view.queued() || !continues_from(view.directory().directory)) return false;
  const auto submitted = submitted_of(view);
  return submitted && submitted->job == slurm_job;
}

// One that ran in Slurm's job, and did not end well.
bool ran_before(const JobView& view, std::uint32_t slurm_job) {
  const auto verdict = view.verdict();
  const bool done = verdict.ok() && *verdict && (*verdict)->exit_code == kExitOk;
  if (view.never_began() || !verdict.ok() || done || continued_as(view.directory().directory)) return false;
  const auto words = view.spec_text();
  const auto folder = view.spec_directory();
  const auto spec = words.ok() && folder.ok() ? parse_stored_spec(*words, *folder) : Result<JobSpec>(Error{});
  if (!spec.ok()) return false;
  const auto* slurm = std::get_if<LaunchSlurm>(&spec->launch);
  return slurm != nullptr && slurm->allocation && slurm->allocation->job == slurm_job;
}

Result<std::string> go_on_from(const StateDir& state, const JobView& view, std::uint32_t slurm_job) {
  if (view.live()) {
    return Error{ErrorCode::kBusy, text(view.id(), " ran in the run before of job ", slurm_job,
                                        " of Slurm, and its folder is still held by a supervisor")};
  }
  MONARCH_ASSIGN(const JobDirectory next, make_continuation(state, view.directory(), slurm_job));
  // One that had the time has told its end. Where it cannot be written, the job looks abandoned, and says all the same where it goes on.
  if (const auto verdict = view.verdict(); verdict.ok() && !*verdict) {
    Verdict lost = verdict_without_supervisor(
        Outcome::kFailed, kExitLost, CauseKind::kTimeLimit,
        text("Slurm has requeued its job ", slurm_job, ", which ended the supervisor; it goes on as ", next.id));
    lost.cause.rule = rule_of(OnPreempt::kRequeue);
    (void)leave_verdict_for_supervisor(view, lost);
  }
  // Who looks for the job in Slurm's queue goes by that; a cluster may have comments of its own.
  (void)run_program(mark_command(slurm_job, next.id), {.without = not_for_asking()});
  return next.id;
}

}  // namespace

Result<std::optional<std::string>> requeued_job(const SpecInput& input, const Context& context) {
  const auto* slurm = std::get_if<LaunchSlurm>(&input.spec.launch);
  if (slurm == nullptr || !slurm->allocation || !is_set(context, kRestarts)) return std::optional<std::string>();
  const std::uint32_t job = slurm->allocation->job;
  const auto state = open_state();
  const auto known = state.ok() ? list_jobs(*state) : Result<std::vector<KnownJob>>(state.error());
  if (!known.ok()) return std::optional<std::string>();
  std::optional<JobView> before;
  WallTime latest;
  for (const KnownJob& one : *known) {
    if (job_name(one.id) != input.spec.name) continue;
    auto view = JobView::open(*state, one.id);
    if (!view.ok()) continue;
    if (waits_for(*view, job)) return std::optional(one.id);
    const bool later = !before || one.created.nanoseconds_since_epoch > latest.nanoseconds_since_epoch;
    if (slurm->on_preempt != OnPreempt::kRequeue || !later || !ran_before(*view, job)) continue;
    before = std::move(*view);
    latest = one.created;
  }
  if (!before) return std::optional<std::string>();
  MONARCH_ASSIGN(std::string next, go_on_from(*state, *before, job));
  return std::optional(std::move(next));
}

std::optional<JobDirectory> continued_job(const std::string& written, const Context& context) {
  JobArgument argument = take_job(written, context);
  if (argument.job == nullptr) return std::nullopt;
  const JobView& view = argument.job->view;
  const auto verdict = view.verdict();
  const bool ended = verdict.ok() && *verdict && !view.live();
  if (ended && !view.never_began()) {
    if (const auto next = continued_as(view.directory().directory)) {
      say_note(context.terminal, text(view.id(), " went on as ", *next, " already; this is another one that does"));
    }
    const auto state = open_state();
    auto job = state.ok() ? state->open_job(view.id()) : Result<JobDirectory>(state.error());
    if (job.ok()) return std::move(*job);
    say_error(context.terminal, {.id = "E0907", .message = job.error().message, .help = ""});
    return std::nullopt;
  }
  say_error(context.terminal,
            {.id = "E0904",
             .message = text("`--continue ", printable(view.id()), "`: ",
                             ended ? "it never began, and there is nothing to go on from"
                                   : "it has not ended, and only one may act on what it has"),
             .help = ended         ? ""
                     : view.live() ? text("monarch stop ", view.id())
                                   : text("monarch up --resume ", view.id(), " goes on with the job itself")});
  return std::nullopt;
}

std::unique_ptr<JobView> next_job(const JobView& view, const SessionEnd& end, const Context& context) {
  if (!end.verdict) return nullptr;
  const auto next = continued_as(view.directory().directory);
  if (!next) return nullptr;
  const auto words = view.spec_text();
  const auto folder = view.spec_directory();
  const auto spec = words.ok() && folder.ok() ? parse_stored_spec(*words, *folder) : Result<JobSpec>(Error{});
  const auto* slurm = spec.ok() ? std::get_if<LaunchSlurm>(&spec->launch) : nullptr;
  const bool own = slurm != nullptr && slurm->allocation && context.env.get(kSlurmJob) == text(slurm->allocation->job);
  if (slurm == nullptr || own) return nullptr;
  const auto state = open_state();
  auto opened = state.ok() ? JobView::open(*state, *next) : Result<JobView>(state.error());
  if (!opened.ok()) {
    say_note(context.terminal,
             text(view.id(), " goes on as ", *next, ", which cannot be followed: ", printable(opened.error().message)));
    return nullptr;
  }
  // One that was asked for by hand (--continue) is another story.
  if (!submitted_of(*opened)) return nullptr;
  say_note(context.terminal, text(view.id(), " goes on as ", *next));
  return std::make_unique<JobView>(std::move(*opened));
}

}  // namespace monarch
