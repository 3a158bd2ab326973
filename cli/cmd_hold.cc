#include <unistd.h>

#include "cli/commands.h"
#include "cli/elsewhere.h"
#include "cli/exit_code.h"
#include "cli/say.h"
#include "cli/session_flags.h"
#include "supervisor/client/supervisor_client.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr const char* kRelease = "release";

int refuse(const Context& context, const Complaint& complaint, int exit_code = kExitUsage) {
  say_error(context.terminal, complaint);
  return exit_code;
}

// Of ranks that have ended, too: what is held is their place, over restarts.
std::vector<RankId> meant_ranks(const JobStatus& status, const Selector& selector) {
  std::vector<RankId> meant;
  for (std::uint32_t m = 0; m < status.meshes.size(); ++m) {
    for (const RankStatus& rank : status.meshes[m].ranks) {
      const RankId id{MeshId(m), Rank(rank.rank)};
      if (selector.has(id, rank.host, rank.generation)) meant.push_back(id);
    }
  }
  return meant;
}

int run_hold(const Arguments& arguments, Context& context) {
  const std::vector<std::string>& words = arguments.positionals();
  const JobArgument argument = take_job(words.empty() ? std::string() : words.front(), context);
  if (argument.job == nullptr) return argument.exit_code;
  const OpenedJob& job = *argument.job;
  const auto selector = take_selector(arguments, job.spec, context);
  if (!selector) return kExitUsage;
  const std::string& id = job.view.id();
  const auto failed = [&](const Error& error) {
    return refuse(context, {.id = "E0908", .message = text("hold of ", id, ": ", error.message), .help = ""},
                  kExitInternal);
  };
  const auto verdict = job.view.verdict();
  if (verdict.ok() && *verdict) {
    return refuse(context, {.id = "E0923",
                            .message = text(id, " has ended: there is nothing to hold"),
                            .help = "monarch ps lists the jobs that live"});
  }
  const auto endpoint = job.view.endpoint();
  if (!endpoint.ok()) return failed(endpoint.error());
  const auto status = ask_status(endpoint->socket);
  if (!status.ok()) return failed(status.error());
  const std::vector<RankId> ranks = meant_ranks(*status, *selector);
  if (ranks.empty()) return refuse(context, nothing_selected(id));
  const auto done =
      ask_hold(endpoint->socket,
               {.ranks = ranks, .release = arguments.has(kRelease), .who = text("monarch hold, pid ", ::getpid())});
  if (!done.ok()) return failed(done.error());
  write_out(text(id, ": ", printable(done->message), "\n"));
  return kExitOk;
}

std::vector<Flag> hold_flags() {
  std::vector<Flag> flags = selector_flags();
  flags.push_back({.name = kRelease, .help = "watch them again"});
  return flags;
}

}  // namespace

Command hold_command() {
  return where_the_job_lives(
      {.name = "hold",
       .summary = "leave ranks alone that are stopped on purpose",
       .description =
           "A gang of which a rank is held is not watched for hangs: attach a debugger, or stop a rank, as long\n"
           "as you like. Its ranks go on running, and their ends count as ever. It lasts until --release, over\n"
           "restarts of the gang and of the supervisor.",
       .flags = hold_flags(),
       .positionals = {{.name = "JOB", .help = "which job"}},
       .run = run_hold});
}

}  // namespace monarch
