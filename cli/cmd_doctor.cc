#include <sys/utsname.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/say.h"
#include "cli/spec_flags.h"
#include "cli/spec_input.h"
#include "cli/table.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/doctor/device_checks.h"
#include "supervisor/doctor/machine_checks.h"
#include "supervisor/doctor/run_checks.h"
#include "supervisor/doctor/spec_checks.h"
#include "supervisor/doctor/state_checks.h"
#include "transport/base/text.h"
#include "transport/zmq/context.h"

namespace monarch {

namespace {

using doctor::Check;
using doctor::Finding;
using doctor::Findings;
using doctor::Health;

constexpr Duration kDeadline = Duration::seconds(5);  // of all checks together

Findings check_versions(const Context& context) {
  Findings findings;
  const auto zmq = ZmqContext::create({});
  Finding library{.check = "libzmq", .found = libzmq_version()};
  if (!zmq.ok()) {
    library.health = Health::kFailed;
    library.found = zmq.error().message;
    library.means = "monarch refuses to open a port with it";
    library.fix = "build monarch with libzmq 4.3.3 or later, with CURVE";
  }
  findings.push_back(std::move(library));
  const auto binaries = find_binaries(context.executable, context.env.get("MONARCH_WORKER"));
  Finding worker{.check = "monarch-worker", .found = binaries.ok() ? binaries->worker : binaries.error().message};
  if (!binaries.ok()) {
    worker.health = Health::kFailed;
    worker.means = "no job can be started";
    worker.fix = "install monarch as a whole, or set MONARCH_WORKER";
  }
  findings.push_back(std::move(worker));
  utsname kernel{};
  (void)::uname(&kernel);  // fails for a bad address alone
  findings.push_back({.check = "version", .found = text("monarch " MONARCH_VERSION ", Linux ", kernel.release)});
  return findings;
}

std::vector<Check> local_checks(const Context& context) {
  const StateEnvironment environment = StateEnvironment::of_this_process();
  const doctor::Places places;
  return {
      {.name = "versions", .run = [&context] { return check_versions(context); }},
      {.name = "state directory", .run = [=] { return doctor::check_state_directory(environment); }},
      {.name = "runtime directory", .run = [=] { return doctor::check_runtime_directory(environment); }},
      {.name = "earlier jobs", .run = [=] { return doctor::check_leftovers(environment); }},
      {.name = "sockets", .run = [=] { return doctor::check_sockets(environment); }},
      {.name = "containment", .run = [] { return doctor::check_containment(); }},
      {.name = "stack dumps", .run = [=] { return doctor::check_tracing(places); }},
      {.name = "limits",
       .run = [=] { return doctor::check_limits(doctor::limits_of_this_process(), doctor::has_rdma(places)); }},
      {.name = "shared memory", .run = [=] { return doctor::check_shared_memory(places); }},
      {.name = "clock source", .run = [=] { return doctor::check_clock(places); }},
      {.name = "processors", .run = [=] { return doctor::check_processors(places); }},
      {.name = "GPUs", .run = [=] { return doctor::check_gpus(places); }},
      {.name = "RDMA", .run = [=] { return doctor::check_rdma(places); }},
  };
}

Colour shade_of(Health health) {
  switch (health) {
    case Health::kFine: return Colour::kGreen;
    case Health::kNote: return Colour::kCyan;
    case Health::kWarning: return Colour::kYellow;
    case Health::kFailed: return Colour::kRed;
  }
  return Colour::kNone;
}

std::string report(const Findings& findings, bool colour) {
  Table table({"CHECK", "STATE", "FOUND"});
  std::string advice;
  for (const Finding& finding : findings) {
    table.add({{.words = finding.check},
               {.words = std::string(health_name(finding.health)), .colour = shade_of(finding.health)},
               {.words = finding.found}});
    if (finding.health == Health::kFine) continue;
    advice += text("\n", paint(shade_of(finding.health), health_name(finding.health), colour), ": ",
                   printable(finding.check), ": ", printable(finding.found), "\n");
    if (!finding.means.empty()) advice += text("  = means: ", printable(finding.means), "\n");
    if (!finding.fix.empty()) advice += text("  = do: ", printable(finding.fix), "\n");
  }
  return table.render(colour) + advice;
}

int run_doctor(const Arguments& arguments, Context& context) {
  const bool has_spec = !arguments.positionals().empty() || arguments.has("file");
  for (const char* flag : {"set", "launch"}) {
    if (has_spec || !arguments.has(flag) || arguments.from_variable(flag)) continue;
    say_error(context.terminal, {.id = "E0903",
                                 .message = text("`--", flag, "` changes a spec, and none is named"),
                                 .help = text("usage: monarch doctor SPEC --", flag, " …")});
    return kExitUsage;
  }
  std::vector<Check> checks = local_checks(context);
  if (has_spec) {
    const std::optional<SpecInput> input = take_spec(arguments, context);
    if (!input) return kExitUsage;
    for (Check& check : doctor::spec_checks(input->spec, context.env.all())) checks.push_back(std::move(check));
  }
  const Findings findings = doctor::run_checks(checks, kDeadline);
  if (arguments.has("json")) {
    std::string lines;
    for (const Finding& finding : findings) lines += to_json(finding_json(finding)) + "\n";
    write_out(lines);
  } else {
    write_out(report(findings, context.terminal.out_colour));
  }
  const auto count = [&](Health health) {
    return std::count_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.health == health; });
  };
  const auto failed = count(Health::kFailed);
  const auto counted = [](auto number, std::string_view one) { return text(number, one, number == 1 ? "" : "s"); };
  say_note(context.terminal,
           text(findings.size(), " findings: ", failed, " failed, ", counted(count(Health::kWarning), " warning"), ", ",
                counted(count(Health::kNote), " note")));
  return failed > 0 ? 1 : static_cast<int>(kExitOk);
}

}  // namespace

Command doctor_command() {
  std::vector<Flag> flags = {{.name = "json", .value = "", .help = "one object per line"}};
  for (Flag& flag : overlay_flags()) flags.push_back(std::move(flag));
  return {.name = "doctor",
          .summary = "look whether this machine can run jobs, and what a spec needs of it",
          .description =
              "Places, limits, clocks, devices, versions, and what earlier jobs left; with a spec also its programs,\n"
              "folders, GPUs, cores, ports and addresses. Each check has 5 s. Exit code 0, or 1 if a check failed.",
          .flags = std::move(flags),
          .positionals = {{.name = "SPEC", .help = "a YAML file"}},
          .run = run_doctor};
}

}  // namespace monarch
