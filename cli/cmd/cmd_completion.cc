#include <algorithm>

#include "cli/args/completion.h"
#include "cli/args/mesh_names.h"
#include "cli/args/say.h"
#include "cli/commands.h"
#include "cli/job/job_argument.h"
#include "cli/job/spec_input.h"
#include "supervisor/client/new_job.h"
#include "supervisor/core/spec/placement.h"
#include "supervisor/spec/spec.h"
#include "transport/base/exit_code.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

std::vector<Candidate> known_jobs() {
  std::vector<Candidate> candidates;
  const auto state = open_state();
  if (!state.ok()) return candidates;
  const auto jobs = list_jobs(*state);
  if (!jobs.ok()) return candidates;
  for (auto job = jobs->rbegin(); job != jobs->rend(); ++job) {  // the newest first
    candidates.push_back({.word = job->id, .about = text(life_word(*job), ", of ", to_text(job->created))});
  }
  return candidates;
}

// The spec of the job or of the file that the line names; whatever is wrong with it is told when the command runs.
std::optional<JobSpec> spec_of(const Positional& kind, const std::string& subject) {
  if (kind.name == "SPEC") {
    const auto source = read_spec_file(subject, Duration::zero());
    if (!source.ok()) return std::nullopt;
    SpecSurroundings around = users_surroundings();
    around.hash_plugin = nullptr;  // who completes a line reads no plugin
    auto outcome = load_spec(*source, around);
    if (!outcome.loaded) return std::nullopt;
    return std::move(outcome.loaded->spec);
  }
  const auto state = open_state();
  if (!state.ok()) return std::nullopt;
  const auto jobs = list_jobs(*state);
  if (!jobs.ok()) return std::nullopt;
  const auto id = resolve_job(*jobs, subject);
  if (!id.ok()) return std::nullopt;
  const auto view = JobView::open(*state, *id);
  if (!view.ok()) return std::nullopt;
  const auto words = view->spec_text();
  const auto directory = view->spec_directory();
  if (!words.ok() || !directory.ok()) return std::nullopt;
  auto spec = parse_stored_spec(*words, *directory);
  if (!spec.ok()) return std::nullopt;
  return std::move(*spec);
}

Sources sources_of_this_machine() {
  return {.jobs = known_jobs,
          .meshes =
              [](const Positional& kind, const std::string& subject) {
                const auto spec = spec_of(kind, subject);
                return spec ? mesh_names(*spec) : std::vector<std::string>();
              },
          .hosts =
              [](const Positional& kind, const std::string& subject) {
                std::vector<std::string> names;
                const auto spec = spec_of(kind, subject);
                for (const PoolHost& host : spec ? pool_of(*spec) : std::vector<PoolHost>()) names.push_back(host.name);
                return names;
              },
          .dimensions =
              [](const Positional& kind, const std::string& subject) {
                std::vector<std::string> names;
                const auto spec = spec_of(kind, subject);
                for (const MeshSpec& mesh : spec ? spec->meshes : std::vector<MeshSpec>()) {
                  for (const Dimension& dim : mesh.dims) {
                    const std::string name = dim.name + "=";
                    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
                  }
                }
                return names;
              }};
}

int run_completion(const Arguments& arguments, Context& context) {
  const std::string shell = arguments.positional(0);
  const std::string script = completion_script(shell);
  if (!script.empty()) {
    write_out(context.terminal, script);
    return kExitOk;
  }
  const auto near = nearest(shell, completion_shells());
  say_error(context.terminal,
            {.id = "E0927",
             .message = text("no completion for the shell `", printable(shell), "`"),
             .help = near ? text("did you mean ", *near, "?") : text("one of: ", join(completion_shells(), " "))});
  return kExitUsage;
}

}  // namespace

Command completion_command() {
  return {.name = "completion",
          .summary = "print what a shell needs to complete command lines",
          .description =
              "bash: . <(monarch completion bash)      zsh: . <(monarch completion zsh)\n"
              "fish: monarch completion fish | source   in the shell's start-up file; packages install it.",
          .flags = {},
          .positionals = {{.name = "SHELL", .help = "bash, zsh or fish", .required = true}},
          .run = run_completion};
}

Command complete_command(std::vector<Command> (*commands)()) {
  return {.name = "complete",
          .summary = "answer the completion scripts",
          .description = "",
          .flags = {},
          .positionals = {},
          .run =
              [commands](const Arguments& arguments, Context& context) {
                write_out(context.terminal,
                          completion_lines(complete(commands(), arguments.positionals(), sources_of_this_machine())));
                return kExitOk;
              },
          .hidden = true,
          .takes_argv = true};
}

}  // namespace monarch
