#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/launch.h"
#include "cli/say.h"
#include "cli/session_flags.h"
#include "cli/spec_flags.h"
#include "cli/spec_input.h"
#include "cli/spec_origin.h"
#include "supervisor/spec/spec_diff.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Where the same files made another spec before, that job goes on beside the new one.
void say_what_changed(const JobView& view, const SpecInput& input, const std::string& running,
                      const Terminal& terminal) {
  const auto before = origin_of(view);
  const auto now = parse_origin(input.origin);
  if (!before || !now || before->files.front() != now->files.front()) return;
  const std::string changes = changes_text(spec_changes(running, input.text));
  say_note(terminal,
           text(view.id(), " from the same file is live with another spec", changes.empty() ? "" : " (", changes,
                changes.empty() ? "" : ")", ", and goes on with it; this is a new job, and `monarch stop ", view.id(),
                "` ends the other"));
}

// The id of a live job whose spec says the same, however it was written and put together.
std::optional<std::string> live_and_unchanged(const SpecInput& input, const StateDir& state, const Terminal& terminal) {
  std::vector<std::pair<JobView, std::string>> others;
  const auto jobs = list_jobs(state);
  if (!jobs.ok()) return std::nullopt;
  for (const KnownJob& job : *jobs) {
    if (job.life != JobLife::kLive || job_name(job.id) != input.spec.name) continue;
    auto view = JobView::open(state, job.id);
    if (!view.ok()) continue;
    const auto spec = view->spec_text();
    const auto directory = view->spec_directory();
    if (!spec.ok() || !directory.ok()) continue;
    const auto stored = parse_stored_spec(*spec, *directory);
    if (stored.ok() && *stored == input.spec) return job.id;
    others.emplace_back(std::move(*view), *spec);
  }
  for (const auto& [view, running] : others) say_what_changed(view, input, running, terminal);
  return std::nullopt;
}

int run_up(const Arguments& arguments, Context& context) {
  if (arguments.has("mesh") && !arguments.program()) {
    say_error(context.terminal, {.id = "E0903",
                                 .message = "`--mesh` says whose program gets what follows `--`, and nothing does",
                                 .help = "monarch up SPEC --mesh MESH -- ARGS"});
    return kExitUsage;
  }
  const std::optional<SpecInput> input = take_spec(arguments, context);
  if (!input) return kExitUsage;
  const StateArgument state = take_state(context);
  if (state.exit_code != kExitOk) return state.exit_code;
  if (const auto id = state.state ? live_and_unchanged(*input, *state.state, context.terminal) : std::nullopt) {
    say_note(context.terminal, text(*id, " is live, and its spec is unchanged"));
    write_out(*id + "\n");
    return kExitOk;
  }
  const LaunchedJob job = launch_job(*input, arguments, context);
  if (job.view == nullptr) return job.exit_code;
  SessionOptions options;
  options.kind = ViewerKind::kOwner;
  options.viewer = "up";
  options.until = SessionOptions::Until::kRunning;
  options.from_the_start = options.events = options.result = true;
  const SessionEnd end = follow_job(*job.view, input->spec, context, *job.signals, std::move(options));
  if (end.running || end.verdict) write_out(job.view->id() + "\n");
  return end.exit_code;
}

}  // namespace

Command up_command() {
  std::vector<Flag> flags = program_flags();
  for (const Flag& flag : launch_flags()) flags.push_back(flag);
  flags.push_back(mesh_flag());
  return {
      .name = "up",
      .summary = "start a job and leave it running: prints its id when every mesh is ready",
      .description =
          "A spec that is live and unchanged is left as it is; one that has changed is said to be live, and becomes a\n"
          "second job beside it: a job never changes while it runs. Until the job is ready, Ctrl-C stops it as in run.",
      .flags = std::move(flags),
      .positionals = {spec_positional()},
      .run = run_up,
      .program = "ARGS"};
}

}  // namespace monarch
