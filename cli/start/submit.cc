#include "cli/start/submit.h"

#include <utility>

#include "cli/args/say.h"
#include "cli/job/submitted_job.h"
#include "supervisor/client/continuation.h"
#include "supervisor/client/new_job.h"
#include "supervisor/client/start_supervisor.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "transport/process/run_program.h"

namespace monarch {

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
    write_out(context.terminal, *script);
    return kExitOk;
  }
  say_error(context.terminal, {.id = "E0935", .message = script.error().message, .help = ""});
  return kExitUsage;
}

namespace {

constexpr Duration kSubmits = Duration::seconds(30);
constexpr Duration kLooksForIt = Duration::seconds(60);  // after an answer of sbatch that was lost
static_assert(kSubmits + kLooksForIt == kMaySubmit);
constexpr Duration kLookAgain = Duration::seconds(2);

// Of an answer that was lost: whether Slurm has the job all the same. Nothing: it is not there after a while, in which
// a controller that is busy may yet have come to it; an error: nobody knows.
Result<std::optional<std::uint32_t>> look_for(const std::string& job_id, const Context& context) {
  QueuePatience patience(kLooksForIt);
  for (;;) {
    const auto answer = run_program(lost_submission_query(), {.without = not_for_asking()});
    const auto found = answer.ok() ? find_submission(*answer, job_id) : std::nullopt;
    if (found) return std::optional(found->job);
    if (patience.over() && answer.ok()) return std::optional<std::uint32_t>();
    if (patience.over()) return answer.error();
    if (patience.wants_word()) say_note(context.terminal, "still looking whether Slurm has the job");
    (void)pause(kLookAgain, -1);
  }
}

struct Submission {
  std::uint32_t job = 0;
  int exit_code = 0;
  std::string why;
};

Submission submit(const JobDirectory& job, const JobSpec& spec, const Context& context) {
  const auto answer = run_program(submit_command(job.id, job.directory.path()),
                                  {.deadline = kSubmits, .without = not_for_submitting(spec)});
  const auto number = answer.ok() ? read_submission(*answer) : Result<std::uint32_t>(answer.error());
  if (number.ok()) return {.job = *number};
  const std::string why = printable(number.error().message);
  if (number.error().code == ErrorCode::kUnsupported && says_refused(number.error().message)) {
    return {.exit_code = kExitUsage, .why = why};
  }
  say_note(context.terminal, text("Slurm's answer was lost (", why, "); looking whether it has the job"));
  const auto found = look_for(job.id, context);
  if (found.ok() && *found) return {.job = **found};
  if (found.ok()) return {.exit_code = kExitUnreachable, .why = text(why, "; it has not taken the job")};
  return {.exit_code = kExitUnreachable,
          .why = text(why, "; whether it has the job nobody knows: ", printable(found.error().message),
                      ". If it starts it, it finds that nobody waits for it, and ends")};
}

}  // namespace

LaunchedJob submit_job(const SpecInput& input, const std::optional<std::string>& before, const Context& context) {
  const auto failed = [&](std::string_view id, int exit_code, const std::string& message) {
    say_error(context.terminal, {.id = std::string(id), .message = message, .help = ""});
    return LaunchedJob{.view = nullptr, .exit_code = exit_code};
  };
  auto signals = SignalFd::create(SignalPolicy::signals(ViewerKind::kOwner));
  if (!signals.ok()) return failed("E0908", kExitInternal, signals.error().message);
  const auto script =
      submission_script(input.spec, {.spec = input.text, .directory = input.directory, .monarch = context.executable});
  if (!script.ok()) return failed("E0935", kExitUsage, script.error().message);
  const YamlNode* place = input.tree.find("supervisor");
  const YamlNode* on = place == nullptr ? nullptr : place->find("on");
  if (on != nullptr && on->text == "here") {
    return failed("E0401", kExitUsage,
                  "this build cannot do that yet: `supervisor: {on: here}` for a job that Slurm is to start");
  }
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
    if (made.error().code != ErrorCode::kInvalid) return failed("E0909", kExitJournal, made.error().message);
    say_error(context.terminal, state_complaint(made.error().message));
    return {.view = nullptr, .exit_code = kExitUsage};
  }
  const JobDirectory& job = made->job;
  say_note(context.terminal, text("job ", job.id, " from ", printable(input.name)));
  auto view = JobView::open(made->state, job.id);
  if (!view.ok()) return failed("E0908", kExitInternal, view.error().message);
  // First that it is being submitted: from then on whoever looks finds it in Slurm by its word.
  SubmittedJob submitted{.job = 0, .submitted = "", .host = name_of_this_machine()};
  const auto keep = [&] { return job.directory.write_file(kSubmittedFile, write_submitted(submitted)); };
  Status written = job.directory.write_file(kSubmissionScriptFile, *script);
  if (written.ok() && before) written = write_continues(job.directory, *before);
  if (written.ok()) written = keep();
  const Submission taken = written.ok() ? submit(job, input.spec, context)
                                        : Submission{.exit_code = kExitJournal, .why = written.error().message};
  if (taken.exit_code != kExitOk) {
    const Verdict verdict = verdict_without_supervisor(Outcome::kFailed, taken.exit_code, CauseKind::kStart,
                                                       text("Slurm did not take it: ", taken.why));
    LaunchedJob none = failed("E0935", taken.exit_code, text("Slurm did not take the job: ", taken.why));
    none.end = {.exit_code = taken.exit_code, .verdict = leave_verdict(*view, verdict).value_or(verdict)};
    none.signals = std::move(*signals);
    none.ended = std::make_unique<JobView>(std::move(*view));
    return none;
  }
  submitted.job = taken.job;
  if (const Status kept = keep(); !kept.ok()) {
    say_note(context.terminal,
             text("that it is job ", taken.job, " of Slurm cannot be written: ", kept.error().message));
  }
  say_note(context.terminal, text("it is job ", taken.job, " of Slurm"));
  return {.view = std::make_unique<JobView>(std::move(*view)), .signals = std::move(*signals), .exit_code = kExitOk};
}

}  // namespace monarch
