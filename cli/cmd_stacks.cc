#include <algorithm>
#include <optional>

#include "cli/commands.h"
#include "cli/elsewhere.h"
#include "cli/exit_code.h"
#include "cli/say.h"
#include "cli/session_flags.h"
#include "cli/stacks_text.h"
#include "supervisor/client/ask_stacks.h"
#include "supervisor/client/stack_fold.h"
#include "supervisor/client/supervisor_client.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

int refuse(const Context& context, const Complaint& complaint, int exit_code = kExitUsage) {
  say_error(context.terminal, complaint);
  return exit_code;
}

struct MeantRanks {
  std::vector<RankId> ranks;
  std::vector<std::string> hosts;  // of each
};

// The ranks that have a process and are meant, as they are now.
MeantRanks meant_ranks(const JobStatus& status, const Selector& selector) {
  MeantRanks meant;
  for (std::uint32_t m = 0; m < status.meshes.size(); ++m) {
    for (const RankStatus& rank : status.meshes[m].ranks) {
      const bool lives =
          rank.phase == "starting" || rank.phase == "running" || rank.phase == "suspended" || rank.phase == "stopping";
      const RankId id{MeshId(m), Rank(rank.rank)};
      if (!lives || !selector.has(id, rank.host, rank.generation)) continue;
      meant.ranks.push_back(id);
      meant.hosts.push_back(rank.host);
    }
  }
  return meant;
}

// Nothing: its value is wrong, and stderr says so.
std::optional<Duration> limit_flag(const Arguments& arguments, const Context& context) {
  const auto written = timeout_flag(arguments, context);
  if (!written) return std::nullopt;
  const Duration limit = written->value_or(limits::kStackLimit);
  if (limit >= Duration::milliseconds(10) && limit <= limits::kLongestStackLimit) return limit;
  (void)refuse(context, {.id = "E0904",
                         .message = text("--timeout ", to_text(limit), " is not between 10ms and ",
                                         to_text(limits::kLongestStackLimit)),
                         .help = "it is the time for the debugger of one rank, which stands still meanwhile"});
  return std::nullopt;
}

std::vector<std::string> mesh_names(const JobSpec& spec) {
  std::vector<std::string> names;
  for (const MeshSpec& mesh : spec.meshes) names.push_back(mesh.name);
  return names;
}

int show(const StacksShown& shown, const Arguments& arguments, const Context& context) {
  if (arguments.has("json")) {
    write_out(stacks_json(shown));
  } else if (arguments.has("raw")) {
    write_out(stacks_raw(shown));
  } else {
    write_out(stacks_text(shown, context.terminal.out_colour));
  }
  const bool any = std::any_of(shown.ranks.begin(), shown.ranks.end(),
                               [](const RankStacks& rank) { return any_taken(rank.stacks); });
  if (!any) {
    const std::string why = why_not(shown.ranks.front());
    return refuse(context, {.id = "E0929", .message = text("no stack of ", shown.job, " could be taken: ", why)},
                  kExitInternal);
  }
  const std::vector<std::string> hosts = hosts_without_py_spy(shown);
  if (!hosts.empty() && !arguments.has("native")) {
    say_note(context.terminal, text("without py-spy on ", printable(hosts.front()),
                                    hosts.size() > 1 ? text(" and ", hosts.size() - 1, " more") : "",
                                    ", Python programs are shown by the frames of their interpreter"));
  }
  return kExitOk;
}

int run_stacks(const Arguments& arguments, Context& context) {
  const auto limit = limit_flag(arguments, context);
  if (!limit) return kExitUsage;
  if (arguments.has("json") && arguments.has("raw")) {
    return refuse(context, {.id = "E0903", .message = "--json and --raw are two ways to show the same", .help = ""});
  }
  const JobArgument argument = take_job(arguments.positional(0), context);
  if (argument.job == nullptr) return argument.exit_code;
  const OpenedJob& job = *argument.job;
  const auto selector = take_selector(arguments, job.spec, context);
  if (!selector) return kExitUsage;
  const std::string& id = job.view.id();
  const auto failed = [&](const Error& error) {
    return refuse(context, {.id = "E0908", .message = text("stacks of ", id, ": ", error.message), .help = ""},
                  kExitInternal);
  };
  const auto verdict = job.view.verdict();
  if (verdict.ok() && *verdict) {
    return refuse(context, {.id = "E0923",
                            .message = text(id, " has ended: there is nothing to look at"),
                            .help = "monarch ps lists the jobs that live"});
  }
  const auto endpoint = job.view.endpoint();
  if (!endpoint.ok()) return failed(endpoint.error());
  const auto status = ask_status(endpoint->socket);
  if (!status.ok()) return failed(status.error());
  const MeantRanks meant = meant_ranks(*status, *selector);
  const StacksRequest request{.ranks = meant.ranks,
                              .limit = *limit,
                              .all_threads = arguments.has("all-threads"),
                              .native = arguments.has("native")};
  if (request.ranks.empty()) return refuse(context, nothing_selected(id));
  auto ranks = ask_stacks(endpoint->socket, request, meant.hosts);
  if (!ranks.ok()) return failed(ranks.error());
  return show(
      {.job = id, .meshes = mesh_names(job.spec), .ranks = std::move(*ranks), .all_threads = request.all_threads},
      arguments, context);
}

}  // namespace

Command stacks_command() {
  std::vector<Flag> flags = {
      {.name = "all-threads", .value = "", .help = "of every thread; else of each process's main one"},
      {.name = "native", .value = "", .help = "of Python programs the frames of their libraries, too"},
      {.name = "timeout",
       .value = "DURATION",
       .help = "how long the debugger of one rank may take (2s); the rank stands still meanwhile"},
      {.name = "raw", .value = "", .help = "as the debuggers wrote it, rank by rank"},
      {.name = "json", .value = "", .help = "one object per rank"}};
  for (const Flag& flag : selector_flags()) flags.push_back(flag);
  return where_the_job_lives(
      {.name = "stacks",
       .summary = "show where the ranks of a live job stand: which share a stack, and who differs",
       .description =
           "On each host a debugger looks at the ranks: py-spy at Python programs, else eu-stack or gdb, whichever is\n"
           "in the PATH there. Ranks whose stacks are alike are shown once, the most of them first.",
       .flags = std::move(flags),
       .positionals = {{.name = "JOB", .help = "which job"}},
       .run = run_stacks});
}

}  // namespace monarch
