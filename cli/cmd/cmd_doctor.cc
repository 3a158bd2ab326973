#include <sys/utsname.h>

#include <algorithm>

#include "cli/args/say.h"
#include "cli/args/spec_flags.h"
#include "cli/args/values.h"
#include "cli/commands.h"
#include "cli/job/spec_input.h"
#include "cli/start/launch.h"
#include "cli/term/table.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/doctor/device_checks.h"
#include "supervisor/doctor/host_checks.h"
#include "supervisor/doctor/host_findings.h"
#include "supervisor/doctor/host_rows.h"
#include "supervisor/doctor/machine_checks.h"
#include "supervisor/doctor/python_checks.h"
#include "supervisor/doctor/run_checks.h"
#include "supervisor/doctor/spec_checks.h"
#include "supervisor/doctor/state_checks.h"
#include "supervisor/launch/launcher_checks.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "transport/zmq/context.h"

namespace monarch {

namespace {

using doctor::Check;
using doctor::Finding;
using doctor::Findings;
using doctor::Health;

constexpr Duration kDeadline = Duration::seconds(5);         // of all checks of this machine together
constexpr Duration kHostsDeadline = Duration::seconds(120);  // of all hosts, unless --timeout says another

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
      {.name = "loopback", .run = [] { return doctor::check_loopback(); }},
      {.name = "containment", .run = [] { return doctor::check_containment(); }},
      {.name = "stack dumps", .run = [=] { return doctor::check_tracing(places); }},
      {.name = "limits",
       .run = [=] { return doctor::check_limits(doctor::limits_of_this_process(), doctor::has_rdma(places)); }},
      {.name = "shared memory", .run = [=] { return doctor::check_shared_memory(places); }},
      {.name = "clock source", .run = [=] { return doctor::check_clock(places); }},
      {.name = "processors", .run = [=] { return doctor::check_processors(places); }},
      {.name = "GPUs", .run = [=] { return doctor::check_gpus(places); }},
      {.name = "RDMA", .run = [=] { return doctor::check_rdma(places); }},
      {.name = "python", .run = [] { return doctor::check_python(); }},
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

std::string advice_on(const Finding& finding, const std::string& where, bool colour) {
  std::string advice = text("\n", paint(shade_of(finding.health), health_name(finding.health), colour), ": ", where,
                            printable(finding.check), ": ", printable(finding.found), "\n");
  if (!finding.means.empty()) advice += text("  = means: ", printable(finding.means), "\n");
  if (!finding.fix.empty()) advice += text("  = do: ", printable(finding.fix), "\n");
  return advice;
}

std::string report(const Findings& findings, bool colour) {
  Table table({"CHECK", "STATE", "FOUND"});
  std::string advice;
  for (const Finding& finding : findings) {
    table.add({{.words = finding.check},
               {.words = std::string(health_name(finding.health)), .colour = shade_of(finding.health)},
               {.words = finding.found}});
    if (finding.health != Health::kFine) advice += advice_on(finding, "", colour);
  }
  return table.render(colour) + advice;
}

// All that SSH reaches of a spec.
struct Hosts {
  std::vector<doctor::HostSeen> seen;
  doctor::HostFindings findings;
};

std::string report(const Hosts& hosts, bool colour) {
  Table table(doctor::host_titles());
  for (const auto& row : doctor::host_rows(hosts.seen, hosts.findings)) {
    std::vector<Table::Cell> cells;
    for (const doctor::HostCell& cell : row) {
      const bool fine = cell.health == Health::kFine;
      cells.push_back({.words = cell.words, .colour = fine ? Colour::kNone : shade_of(cell.health)});
    }
    table.add(std::move(cells));
  }
  std::string out = "\n" + table.render(colour);
  for (const doctor::HostFinding& finding : doctor::folded(hosts.findings)) {
    out += advice_on(finding.finding, printable(finding.host) + ": ", colour);
  }
  return out;
}

struct HostsLook {
  Duration deadline = kHostsDeadline;
  bool accept_new = false;
};

// Adds to `here` what concerns all hosts alike.
Hosts look_at_hosts(const JobSpec& spec, const HostsLook& look, const Context& context, Findings& here) {
  doctor::HostChecksOptions options{.user = SshUser::of_this_process(), .deadline = look.deadline};
  options.user.accept_new_host_keys = look.accept_new;
  const auto binaries = find_binaries(context.executable, context.env.get("MONARCH_WORKER"));
  if (!binaries.ok()) return {};  // the check of versions says so
  options.worker_path = binaries->worker;
  options.on_waiting = [&context](const std::vector<std::string>& missing) {
    say_note(context.terminal, text("waiting for ", printable(join(missing, ", "))));
  };
  auto seen = doctor::look_at_hosts(spec, options);
  if (!seen.ok()) {
    here.push_back({.check = "launch.ssh",
                    .health = Health::kFailed,
                    .found = seen.error().message,
                    .means = "no host can be reached",
                    .fix = "mend that first"});
    return {};
  }
  Hosts hosts{.seen = std::move(*seen)};
  hosts.findings = doctor::host_findings(hosts.seen, spec);
  return hosts;
}

void print(const Findings& here, const Hosts& hosts, bool json, const Terminal& terminal) {
  if (!json) {
    const bool colour = terminal.out_colour;
    return write_out(terminal, report(here, colour) + (hosts.seen.empty() ? "" : report(hosts, colour)));
  }
  std::string lines;
  for (const Finding& finding : here) lines += to_json(finding_json(finding)) + "\n";
  for (const doctor::HostSeen& host : hosts.seen) lines += to_json(doctor::host_json(host, hosts.findings)) + "\n";
  for (const doctor::HostFinding& each : hosts.findings) lines += to_json(doctor::host_finding_json(each)) + "\n";
  write_out(terminal, lines);
}

bool flags_fit(const Arguments& arguments, bool has_spec, const Context& context) {
  for (const char* flag : {"set", "launch", "timeout", "accept-new"}) {
    if (has_spec || !arguments.has(flag) || arguments.from_variable(flag)) continue;
    const bool changes = flag == std::string_view("set") || flag == std::string_view("launch");
    say_error(context.terminal, {.id = "E0903",
                                 .message = text("`--", flag, changes ? "` changes a spec" : "` is for a spec's hosts",
                                                 ", and none is named"),
                                 .help = text("usage: monarch doctor SPEC --", flag, " …")});
    return false;
  }
  return true;
}

int run_doctor(const Arguments& arguments, Context& context) {
  const bool has_spec = !arguments.positionals().empty() || arguments.has("file");
  if (!flags_fit(arguments, has_spec, context)) return kExitUsage;
  const auto timeout = duration_flag(arguments, "timeout");
  if (!timeout.ok()) {
    say_error(context.terminal, {.id = "E0904", .message = timeout.error().message, .help = ""});
    return kExitUsage;
  }
  std::vector<Check> checks = local_checks(context);
  std::optional<SpecInput> input;
  if (has_spec) {
    input = take_spec(arguments, context);
    if (!input) return kExitUsage;
    for (Check& check : doctor::spec_checks(input->spec, context.env.all())) checks.push_back(std::move(check));
    for (Check& check : launcher_checks(input->spec, context.env.all())) checks.push_back(std::move(check));
  }
  Findings findings = doctor::run_checks(checks, kDeadline);
  Hosts hosts;
  if (input && input->spec.launch.facts().has_host_keys) {
    hosts = look_at_hosts(input->spec,
                          {.deadline = timeout->value_or(kHostsDeadline), .accept_new = arguments.has("accept-new")},
                          context, findings);
  }
  print(findings, hosts, arguments.has("json"), context.terminal);
  for (const doctor::HostFinding& each : hosts.findings) findings.push_back(each.finding);
  const auto count = [&](Health health) {
    const auto has_it = [&](const Finding& f) { return f.health == health; };
    return static_cast<std::uint64_t>(std::count_if(findings.begin(), findings.end(), has_it));
  };
  const auto failed = count(Health::kFailed);
  say_note(context.terminal,
           text(findings.size(), " findings: ", failed, " failed, ", counted(count(Health::kWarning), "warning"), ", ",
                counted(count(Health::kNote), "note")));
  return failed > 0 ? kExitFailed : kExitOk;
}

}  // namespace

Command doctor_command() {
  std::vector<Flag> flags = {
      {.name = "json", .value = "", .help = "one object per line"},
      {.name = "timeout", .value = "DURATION", .help = "for all hosts that SSH reaches together (default 2m)"}};
  for (Flag& flag : launch_flags()) flags.push_back(std::move(flag));
  for (Flag& flag : overlay_flags()) flags.push_back(std::move(flag));
  return {
      .name = "doctor",
      .summary = "look whether this machine, and the hosts of a spec, can run jobs",
      .description =
          "Places, limits, clocks, devices, versions, and what earlier jobs left; with a spec also its programs,\n"
          "folders, GPUs, cores, ports and addresses. Hosts that SSH reaches are all asked at once, by a worker that\n"
          "is copied to them as a launch does it. Each check has 5 s. Exit code 0, or 1 if a check failed.",
      .flags = std::move(flags),
      .positionals = {{.name = "SPEC", .help = "a YAML file; - for standard input"}},
      .run = run_doctor};
}

}  // namespace monarch
