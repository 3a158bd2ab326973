#include "cli/start/continued_job.h"

#include <utility>

#include "cli/args/say.h"
#include "cli/job/job_argument.h"
#include "cli/job/submitted_job.h"
#include "supervisor/client/continuation.h"
#include "supervisor/client/job_resolver.h"
#include "supervisor/client/new_job.h"
#include "supervisor/core/state/foreseen_end.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "transport/process/run_program.h"

namespace monarch {

namespace {

constexpr const char* kSlurmJob = "SLURM_JOB_ID";
constexpr const char* kRestarts = "SLURM_RESTART_COUNT";
constexpr Duration kLeaves = Duration::seconds(10);  // a supervisor that has told the end needs a moment of it

bool is_set(const Context& context, const char* name) {
  const std::string value = context.env.get(name);
  return !value.empty() && value != "0";
}

// Slurm's job that it ran in. Nothing: it ran elsewhere.
Result<std::optional<std::uint32_t>> slurm_job_of(const JobView& view) {
  MONARCH_ASSIGN(const std::string words, view.spec_text());
  MONARCH_ASSIGN(const std::string folder, view.spec_directory());
  MONARCH_ASSIGN(const JobSpec spec, parse_stored_spec(words, folder));
  const auto& allocation = spec.launch.facts().allocation;
  return allocation ? std::optional(allocation->job) : std::nullopt;
}

// One that Slurm's job is to go on with, by the word of the run before.
bool waits_for(const StateDir& state, const JobView& view, std::uint32_t slurm_job) {
  const auto from = continues_from(view.directory().directory);
  const auto submitted = submitted_of(view);
  if (!view.queued() || !from || !submitted || submitted->job != slurm_job) return false;
  const auto before = state.open_job(*from);
  return before.ok() && continued_as(state, *before) == view.id();
}

// What goes on from it began; what never did has ended in the queue, and is none that goes on.
bool went_on(const StateDir& state, const JobView& view) {
  const auto next = continued_as(state, view.directory());
  const auto opened = next ? JobView::open(state, *next) : Result<JobView>(Error{});
  return opened.ok() && !(opened->never_began() && !opened->queued());
}

// One that ran in Slurm's job, and did not end well. What it has is not to be lost because that cannot be read; where
// it ran, a spec of another version of ours may not tell, and then no later run is to end for that.
Result<bool> ran_before(const StateDir& state, const JobView& view, std::uint32_t slurm_job, const Context& context) {
  const auto verdict = view.verdict();
  const bool well = verdict.ok() && *verdict && (*verdict)->exit_code == kExitOk;
  if (view.never_began() || well || went_on(state, view)) return false;
  const auto ran_in = slurm_job_of(view);
  if (!ran_in.ok()) {
    say_note(context.terminal, text("whether ", view.id(), " is of the run before of job ", slurm_job,
                                    " of Slurm, and has what to go on from, its spec does not tell: ",
                                    printable(ran_in.error().message)));
    return false;
  }
  if (*ran_in != slurm_job) return false;
  if (!verdict.ok()) return verdict.error();
  return true;
}

Result<std::string> go_on_from(const StateDir& state, const JobView& view, const LaunchFacts& launch) {
  const std::uint32_t slurm_job = launch.allocation->job;
  if (view.live()) {
    return Error{ErrorCode::kBusy, text(view.id(), " ran in the run before of job ", slurm_job,
                                        " of Slurm, and its folder is still held by a supervisor")};
  }
  MONARCH_ASSIGN(const JobDirectory next, make_continuation(state, view.directory()));
  MONARCH_TRY(submit_continuation(next, slurm_job));
  // One that had the time has told its end. Where it cannot be written, the job looks abandoned, and says all the same
  // where it goes on.
  if (const auto verdict = view.verdict(); verdict.ok() && !*verdict) {
    Verdict lost = verdict_without_supervisor(
        Outcome::kFailed, kExitLost, CauseKind::kTimeLimit,
        text("Slurm has requeued its job ", slurm_job, ", which ended the supervisor; it goes on as ", next.id));
    lost.cause.rule = rule_of(launch);
    (void)leave_verdict_for_supervisor(view, lost);
  }
  // Who looks for the job in Slurm's queue goes by that; a cluster may have comments of its own.
  (void)run_program(mark_command(slurm_job, next.id), {.without = not_for_asking()});
  return next.id;
}

}  // namespace

Result<std::optional<std::string>> requeued_job(const SpecInput& input, const Context& context) {
  const LaunchFacts& launch = input.spec.launch.facts();
  if (!launch.allocation || !is_set(context, kRestarts)) return std::optional<std::string>();
  const std::uint32_t job = launch.allocation->job;
  const auto state = open_state();
  if (!state.ok() && state.error().code == ErrorCode::kNotFound) return std::optional<std::string>();
  if (!state.ok()) return state.error();
  MONARCH_ASSIGN(const std::vector<KnownJob> known, list_jobs(*state));
  std::optional<JobView> before;
  WallTime latest;
  for (const KnownJob& one : known) {
    if (job_name(one.id) != input.spec.name) continue;
    MONARCH_ASSIGN(JobView view, JobView::open(*state, one.id));
    if (waits_for(*state, view, job)) return std::optional(one.id);
    const bool later = !before || one.created.nanoseconds_since_epoch > latest.nanoseconds_since_epoch;
    if (launch.on_preempt != OnPreempt::kRequeue || !later) continue;
    MONARCH_ASSIGN(const bool ran, ran_before(*state, view, job, context));
    if (!ran) continue;
    before = std::move(view);
    latest = one.created;
  }
  if (!before) return std::optional<std::string>();
  MONARCH_ASSIGN(std::string next, go_on_from(*state, *before, launch));
  return std::optional(std::move(next));
}

std::optional<std::string> continued_job(const std::string& written, const Context& context) {
  JobArgument argument = take_job(written, context);
  if (argument.job == nullptr) return std::nullopt;
  const JobView& view = argument.job->view;
  const auto refuse = [&](const std::string& why, const std::string& help) {
    say_error(context.terminal,
              {.id = "E0904", .message = text("`--continue ", printable(view.id()), "`: ", why), .help = help});
    return std::nullopt;
  };
  const auto verdict = view.verdict();
  if (!verdict.ok()) return refuse(verdict.error().message, "");
  // Its end is told before its supervisor has gone.
  if (!*verdict || !view.is_left_within(kLeaves)) {
    return refuse("it has not ended, and only one may act on what it has",
                  view.live() ? text("monarch stop ", view.id())
                              : text("monarch up --resume ", view.id(), " goes on with the job itself"));
  }
  const auto state = open_state();
  const auto by = state.ok() ? needed_by(*state, view.directory()) : std::nullopt;
  if (by) return refuse(text("it goes on as ", *by, " already, which has not ended"), text("monarch stop ", *by));
  if (view.never_began() && !continues_from(view.directory().directory)) {
    return refuse("it never began, and there is nothing to go on from", "");
  }
  return view.id();
}

std::unique_ptr<JobView> next_job(const JobView& view, const SessionEnd& end, const Context& context) {
  const auto state = end.verdict ? open_state() : Result<StateDir>(Error{});
  const auto next = state.ok() ? continued_as(*state, view.directory()) : std::nullopt;
  if (!next) return nullptr;
  const auto slurm_job = slurm_job_of(view);
  const bool known = slurm_job.ok() && *slurm_job;
  if (!known || context.env.get(kSlurmJob) == text(**slurm_job)) return nullptr;
  auto opened = JobView::open(*state, *next);
  if (!opened.ok()) {
    say_note(context.terminal,
             text(view.id(), " goes on as ", *next, ", which cannot be followed: ", printable(opened.error().message)));
    return nullptr;
  }
  say_note(context.terminal, text(view.id(), " goes on as ", *next));
  return std::make_unique<JobView>(std::move(*opened));
}

}  // namespace monarch
