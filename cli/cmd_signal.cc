#include <algorithm>
#include <cctype>

#include "cli/commands.h"
#include "cli/elsewhere.h"
#include "cli/exit_code.h"
#include "cli/say.h"
#include "cli/session_flags.h"
#include "supervisor/client/supervisor_client.h"
#include "supervisor/spec/suggest.h"
#include "transport/base/text.h"
#include "transport/loop/signals.h"

namespace monarch {

namespace {

std::string upper(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return word;
}

Complaint unknown_signal(const std::string& written, const Error& error) {
  const std::string name = upper(written);
  const auto near = nearest(name.starts_with("SIG") ? name.substr(3) : name, signal_names());
  return {.id = "E0924",
          .message = error.message,
          .help = near ? text("did you mean ", *near, "?") : "a name, such as USR1, or a number; kill -l lists them"};
}

bool runs(const RankStatus& rank) {
  return rank.phase == "running" || rank.phase == "suspended" || rank.phase == "stopping";
}

// The ranks that run and are meant, as they are now.
std::vector<RankId> meant_ranks(const JobStatus& status, const Selector& selector) {
  std::vector<RankId> meant;
  for (std::uint32_t m = 0; m < status.meshes.size(); ++m) {
    for (const RankStatus& rank : status.meshes[m].ranks) {
      const RankId id{MeshId(m), Rank(rank.rank)};
      if (runs(rank) && selector.has(id, rank.host, rank.generation)) meant.push_back(id);
    }
  }
  return meant;
}

int refuse(const Context& context, const Complaint& complaint, int exit_code = kExitUsage) {
  say_error(context.terminal, complaint);
  return exit_code;
}

int run_signal(const Arguments& arguments, Context& context) {
  const std::vector<std::string>& words = arguments.positionals();
  const std::string& written = words.back();
  const auto number = signal_number(upper(written));
  if (!number.ok()) return refuse(context, unknown_signal(written, number.error()));
  const JobArgument argument = take_job(words.size() > 1 ? words.front() : std::string(), context);
  if (argument.job == nullptr) return argument.exit_code;
  const OpenedJob& job = *argument.job;
  const auto selector = take_selector(arguments, job.spec, context);
  if (!selector) return kExitUsage;
  const std::string& id = job.view.id();
  const auto failed = [&](const Error& error) {
    return refuse(context, {.id = "E0908", .message = text("signal to ", id, ": ", error.message), .help = ""},
                  kExitInternal);
  };
  const auto verdict = job.view.verdict();
  if (verdict.ok() && *verdict) {
    return refuse(context, {.id = "E0923",
                            .message = text(id, " has ended: there is nothing to signal"),
                            .help = "monarch ps lists the jobs that live"});
  }
  const auto endpoint = job.view.endpoint();
  if (!endpoint.ok()) return failed(endpoint.error());
  const auto status = ask_status(endpoint->socket);
  if (!status.ok()) return failed(status.error());
  const std::vector<RankId> ranks = meant_ranks(*status, *selector);
  if (ranks.empty()) return refuse(context, nothing_selected(id));
  const auto sent = ask_signal(endpoint->socket, {.ranks = ranks, .number = *number});
  if (!sent.ok()) return failed(sent.error());
  write_out(text(printable(sent->message), " of ", id, "\n"));
  return kExitOk;
}

}  // namespace

Command signal_command() {
  return where_the_job_lives(
      {.name = "signal",
       .summary = "send a signal to the ranks of a live job",
       .description = "It goes to the process group of each rank that is meant and runs. A rank that KILL ends has\n"
                      "failed; one that STOP suspends keeps its place until CONT, and status shows it as suspended.",
       .flags = selector_flags(),
       .positionals = {{.name = "JOB", .help = "which job"},
                       {.name = "SIGNAL", .help = "a name, such as USR1, or a number", .required = true}},
       .run = run_signal});
}

}  // namespace monarch
