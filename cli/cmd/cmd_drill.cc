#include <unistd.h>

#include <algorithm>
#include <random>

#include "cli/args/say.h"
#include "cli/args/spec_flags.h"
#include "cli/args/values.h"
#include "cli/away/away.h"
#include "cli/commands.h"
#include "cli/drill/drill_plan.h"
#include "cli/drill/drill_run.h"
#include "cli/follow/session_flags.h"
#include "cli/job/job_argument.h"
#include "cli/start/launch.h"
#include "supervisor/client/link/supervisor_client.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "transport/process/hidden_memory.h"

namespace monarch {

namespace {

int usage(const Context& context, const std::string& message, const std::string& help = "") {
  return refuse(context, {.id = "E0903", .message = message, .help = help}, kExitUsage);
}

// Nothing: its value is wrong, and stderr says so.
std::optional<std::uint64_t> seed_of(const Arguments& arguments, const drill::Scenario& scenario,
                                     const Context& context) {
  const auto written = count_flag(arguments, "seed");
  if (!written.ok()) return refuse_value(context, written.error().message);
  if (*written) return **written;
  if (scenario.seed) return *scenario.seed;
  std::random_device chance;
  return chance() % 1'000'000U;  // one that can be typed again
}

// To run it again.
std::vector<std::string> command_of(const Arguments& arguments) {
  std::vector<std::string> words = {"monarch", "drill"};
  for (const std::string& written : arguments.positionals()) words.push_back(written);
  for (const char* const flag : {"smoke", "live", "fault", "for", "mesh", "at", "rank", "host", "file", "launch"}) {
    if (arguments.has(flag)) words.insert(words.end(), {text("--", flag), arguments.value(flag).value_or("")});
  }
  for (const std::string& setting : arguments.values("set")) words.insert(words.end(), {"--set", setting});
  if (arguments.has("compare")) words.emplace_back("--compare");
  return words;
}

std::optional<DrillWish> wish_of(PlannedDrill planned, const Arguments& arguments, const Context& context) {
  const auto seed = seed_of(arguments, planned.scenario, context);
  if (!seed) return std::nullopt;
  auto places = take_drill_places(arguments, context);
  if (!places) return std::nullopt;
  return DrillWish{.scenario = std::move(planned.scenario),
                   .seed = *seed,
                   .left_out = std::move(planned.left_out),
                   .command = command_of(arguments),
                   .places = std::move(*places),
                   .keep = arguments.has("keep"),
                   .json = arguments.has("json")};
}

int drill_own_job(const Arguments& arguments, Context& context) {
  hide_memory();  // its environment has what a spec may pass on to ranks
  auto planned = plan_own_drill(arguments, context);
  if (!planned) return kExitUsage;
  for (const std::string& left : planned->left_out) say_note(context.terminal, text("left out: ", left));
  if (arguments.has("print")) {
    write_out(context.terminal, planned->text);
    return kExitOk;
  }
  const SpecInput input = std::move(*planned->input);
  const std::optional<SpecInput> peer = std::move(planned->peer);
  const auto wish = wish_of(std::move(*planned), arguments, context);
  if (!wish) return kExitUsage;
  if (arguments.has("dry-run")) {
    write_out(context.terminal, dry_run_text(*wish, input.spec, nullptr, context.terminal.out_colour));
    return kExitOk;
  }
  const LaunchFacts& hosts = input.spec.launch.facts();
  if (hosts.waits_in_queue) {
    return usage(context, "a drill is done in an allocation of Slurm, and this shell is in none",
                 "salloc monarch drill …, or a script of sbatch");
  }
  return run_own_drill(input, peer ? &*peer : nullptr, *wish, arguments, context);
}

int drill_live_job(const Arguments& arguments, Context& context) {
  const JobArgument argument = take_job(*arguments.value("live"), context);
  if (argument.job == nullptr) return argument.exit_code;
  if (away_of(argument.job->view)) {
    return usage(context, "the supervisor of this job is on another machine, from where alone its hosts are reached",
                 "run monarch drill there");
  }
  const JobView& view = argument.job->view;
  if (const auto verdict = view.verdict(); !view.live() && verdict.ok() && *verdict) {
    return usage(context, text(view.id(), " is over: ", printable((*verdict)->reason)), "monarch ps shows what runs");
  }
  auto planned = plan_live_drill(*argument.job, arguments, context);
  if (!planned) return kExitUsage;
  const auto wish = wish_of(std::move(*planned), arguments, context);
  if (!wish) return kExitUsage;
  if (arguments.has("dry-run")) {
    const auto rights = ask_rights(*argument.job, context);
    if (!rights.ok()) return usage(context, text("--dry-run: ", rights.error().message));
    write_out(context.terminal, dry_run_text(*wish, argument.job->spec, &*rights, context.terminal.out_colour));
    return kExitOk;
  }
  return run_live_drill(*argument.job, *wish, context);
}

int stop_drill(const Arguments& arguments, const Context& context) {
  const JobArgument argument = take_job(arguments.positional(0), context);
  if (argument.job == nullptr) return argument.exit_code;
  const auto endpoint = argument.job->view.endpoint();
  if (!endpoint.ok()) {
    return refuse(context, {.id = "E0928", .message = endpoint.error().message, .help = ""}, kExitInternal);
  }
  const auto answer = ask(viewer_address(*endpoint),
                          DrillNotice{.what = DrillWhat::kStop, .who = text("monarch drill --stop, pid ", ::getpid())});
  if (!answer.ok()) {
    const bool refused = answer.error().code == ErrorCode::kInvalid;
    return refuse(context, {.id = "E0928", .message = printable(answer.error().message), .help = ""},
                  refused ? kExitUsage : kExitInternal);
  }
  write_out(context.terminal, text(printable(answer->message), "\n"));
  return kExitOk;
}

// Of the ways in which it is called: each with the flag that says so; the last without.
int run_drill(const Arguments& arguments, Context& context) {
  constexpr std::array kWays = {"faults", "replay", "stop", "live", "smoke"};
  const auto ways = std::count_if(kWays.begin(), kWays.end(), [&](const char* way) { return arguments.has(way); });
  if (ways > 1) return usage(context, "of --faults, --replay, --stop, --live and --smoke one at a time");
  const bool one_blow = arguments.has("fault");
  if (one_blow && !arguments.has("live")) return usage(context, "--fault is one blow at a job that runs: --live JOB");
  if (arguments.has("for") && !one_blow) return usage(context, "--for says how long the fault of --fault lasts");
  if (arguments.has("faults")) return show_faults(arguments, context);
  if (arguments.has("replay")) return replay_drill(arguments, context);
  if (arguments.has("stop")) return stop_drill(arguments, context);
  if (arguments.has("live")) return drill_live_job(arguments, context);
  return drill_own_job(arguments, context);
}

}  // namespace

Command drill_command() {
  std::vector<Flag> flags = {
      {.name = "smoke", .value = "SPEC", .help = "one fault of each kind that this job can have; needs no scenario"},
      {.name = "live", .value = "JOB", .help = "of a job that runs, and whose spec says drills: {allow: true}"},
      {.name = "fault", .value = "FAULT", .help = "with --live: this one, once; whom, by --mesh, --at, --rank, --host"},
      {.name = "for", .value = "DURATION", .help = "with --fault: how long it lasts"},
      {.name = "faults", .value = "", .help = "show which faults there are; of a running JOB also on how many hosts"},
      {.name = "replay", .value = "FILE", .help = "measure again what a report.json has"},
      {.name = "expect", .value = "FILE", .help = "with --replay: by what this scenario expects"},
      {.name = "html", .value = "FILE", .help = "with --replay: write the page there"},
      {.name = "stop", .value = "", .help = "end the drill that a job has; its faults are taken back"},
      {.name = "dry-run", .value = "", .help = "show what would strike whom, and start nothing"},
      {.name = "print", .value = "", .help = "show the scenario, as --smoke makes it, and start nothing"},
      {.name = "seed", .value = "N", .help = "of what is left to chance"},
      {.name = "compare", .value = "", .help = "strike the job again, as one that stops and starts everything"},
      {.name = "out", .value = "DIR", .help = "a new folder for report.html, report.json and junit.xml"},
      {.name = "junit", .value = "FILE", .help = "write what was expected, and each fault, as JUnit XML"},
      {.name = "keep", .value = "", .help = "let the job go on when its drill is over"},
      {.name = "json", .value = "", .help = "write report.json to stdout instead of the last line"}};
  for (const Flag& flag : overlay_flags()) flags.push_back(flag);
  for (const Flag& flag : launch_flags()) flags.push_back(flag);
  for (const Flag& flag : place_flags()) flags.push_back(flag);
  return {
      .name = "drill",
      .summary = "inject faults into a job, and report what it made of them",
      .description =
          "Starts the job of the scenario, watches it undisturbed, has each fault strike somebody who is well, and\n"
          "measures how soon it was seen, answered and recovered from. Exits with 0 where all that was expected was\n"
          "so, 1 where a bound was not met, 4 where something was left or a promise was broken, 5 where too many\n"
          "faults did nothing. monarch-drill(7) tells of scenarios and figures.",
      .flags = std::move(flags),
      .positionals = {{.name = "SCENARIO", .help = "a file that says which faults strike whom, and what is expected"},
                      {.name = "SPEC", .help = "the job, where the scenario names none"}},
      .run = run_drill,
      .program = "ARGS"};
}

}  // namespace monarch
