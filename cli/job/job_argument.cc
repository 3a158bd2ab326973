#include "cli/job/job_argument.h"

#include "cli/args/say.h"
#include "cli/job/spec_input.h"
#include "supervisor/client/new_job.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

JobArgument no_job(const Context& context, const std::string& message) {
  say_error(context.terminal, {.id = "E0906", .message = message, .help = "monarch ps --all lists the jobs"});
  return {.job = nullptr, .exit_code = kExitUsage};
}

// An id that is no job of ours to read is asked for by name, so that the refusal says whose it is.
Result<std::string> find_id(const StateDir& state, const std::string& written) {
  MONARCH_ASSIGN(const std::vector<KnownJob> jobs, list_jobs(state));
  auto id = resolve_job(jobs, written);
  if (id.ok() || !is_job_id(written)) return id;
  const auto job = state.open_job(written);
  if (!job.ok() && job.error().code != ErrorCode::kNotFound) return job.error();
  return id;
}

}  // namespace

void say_missing_end(const JobView& view, const Context& context) {
  const auto missing = view.missing_end();
  const std::string what = missing.ok() ? *missing : missing.error().message;
  if (!what.empty())
    say_note(context.terminal,
             text("the end of the journal of ", view.id(), " is missing, and what it told is not shown: ", what));
}

StateArgument take_state(const Context& context) {
  auto state = open_state();
  if (state.ok()) return {.state = std::move(*state), .exit_code = kExitOk};
  if (state.error().code == ErrorCode::kNotFound) return {};
  say_error(context.terminal, state_complaint(state.error().message));
  return {.state = std::nullopt, .exit_code = kExitUsage};
}

std::string help_without_supervisor(const JobView& view) {
  if (view.live()) return "";
  const auto verdict = view.verdict();
  if (verdict.ok() && *verdict) return "";
  if (view.queued()) return text("it waits in Slurm's queue: monarch status ", view.id(), ", monarch stop ", view.id());
  if (view.awaited_from()) return "its supervisor has ended, and its guard starts the next: try again in a moment";
  return text("it has no supervisor, and nobody starts one: monarch up --resume ", view.id(), " does, and monarch rm ",
              view.id(), " ends and removes what is left of it");
}

std::vector<std::string> OpenedJob::named_hosts() const {
  std::vector<std::string> names;
  if (spec.hosts_on_request() == 0) return names;
  const auto status = view.status(spec);
  if (!status.ok()) return names;
  for (const HostStatus& host : status->hosts) names.push_back(host.name);
  return names;
}

JobArgument take_job(const std::string& written, const Context& context) {
  const StateArgument state = take_state(context);
  if (state.exit_code != kExitOk) return {.job = nullptr, .exit_code = state.exit_code};
  if (!state.state) return no_job(context, "there is no job: none was ever started here");
  const auto id = find_id(*state.state, written);
  if (!id.ok()) return no_job(context, id.error().message);
  auto view = JobView::open(*state.state, *id);
  if (!view.ok()) return no_job(context, view.error().message);
  const auto spec_text = view->spec_text();
  const auto directory = view->spec_directory();
  if (!spec_text.ok()) return no_job(context, spec_text.error().message);
  if (!directory.ok()) return no_job(context, directory.error().message);
  auto spec = parse_stored_spec(*spec_text, *directory);
  if (!spec.ok()) return no_job(context, spec.error().message);
  return {.job = std::make_unique<OpenedJob>(OpenedJob{.view = std::move(*view), .spec = std::move(*spec)}),
          .exit_code = kExitOk};
}

}  // namespace monarch
