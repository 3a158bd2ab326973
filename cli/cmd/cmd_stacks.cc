#include <algorithm>
#include <optional>

#include "cli/args/mesh_names.h"
#include "cli/args/say.h"
#include "cli/away/away.h"
#include "cli/cmd/meant_ranks.h"
#include "cli/commands.h"
#include "cli/follow/session_flags.h"
#include "cli/show/stacks_text.h"
#include "supervisor/client/link/supervisor_client.h"
#include "supervisor/client/stacks/ask_stacks.h"
#include "supervisor/client/stacks/stack_fold.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Nothing: its value is wrong, and stderr says so.
std::optional<Duration> limit_flag(const Arguments& arguments, const Context& context) {
  const auto written = timeout_flag(arguments, context);
  if (!written) return std::nullopt;
  const Duration limit = written->value_or(limits::kStackLimit);
  if (limit >= Duration::milliseconds(10) && limit <= limits::kLongestStackLimit) return limit;
  (void)refuse(
      context,
      {.id = "E0904",
       .message = text("--timeout ", to_text(limit), " is not between 10ms and ", to_text(limits::kLongestStackLimit)),
       .help = "it is the time for the debugger of one rank, which stands still meanwhile"},
      kExitUsage);
  return std::nullopt;
}

// A process is there to be looked at.
bool lives(const RankStatus& rank) {
  return rank.phase == "starting" || rank.phase == "running" || rank.phase == "suspended" || rank.phase == "stopping";
}

int show(const StacksShown& shown, const Arguments& arguments, const Context& context) {
  if (arguments.has("json")) {
    write_out(context.terminal, stacks_json(shown));
  } else if (arguments.has("raw")) {
    write_out(context.terminal, stacks_raw(shown));
  } else {
    write_out(context.terminal, stacks_text(shown, context.terminal.out_colour));
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
    return refuse(context, {.id = "E0903", .message = "--json and --raw are two ways to show the same", .help = ""},
                  kExitUsage);
  }
  const MeantRanks meant = take_ranks(arguments.positional(0), arguments, context,
                                      {.doing = "stacks of", .verb = "look at", .counts = lives});
  if (meant.job == nullptr) return meant.exit_code;
  const StacksRequest request{.ranks = meant.ranks,
                              .limit = *limit,
                              .all_threads = arguments.has("all-threads"),
                              .native = arguments.has("native")};
  auto ranks = ask_stacks(meant.supervisor, request, meant.hosts);
  if (!ranks.ok()) return refuse_call(context, "stacks of", meant.job->view, ranks.error());
  return show({.job = meant.id(),
               .meshes = mesh_names(meant.job->spec),
               .ranks = std::move(*ranks),
               .all_threads = request.all_threads},
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
