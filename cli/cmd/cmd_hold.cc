#include <unistd.h>

#include "cli/args/say.h"
#include "cli/away/away.h"
#include "cli/cmd/meant_ranks.h"
#include "cli/commands.h"
#include "cli/follow/session_flags.h"
#include "supervisor/client/link/supervisor_client.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr const char* kRelease = "release";

// Of ranks that have ended, too: what is held is their place, over restarts.
int run_hold(const Arguments& arguments, Context& context) {
  const MeantRanks meant =
      take_ranks(arguments.positional(0), arguments, context, {.doing = "hold of", .verb = "hold"});
  if (meant.job == nullptr) return meant.exit_code;
  const auto done = ask(meant.supervisor, HoldRequest{.ranks = meant.ranks,
                                                      .release = arguments.has(kRelease),
                                                      .who = text("monarch hold, pid ", ::getpid())});
  if (!done.ok()) return refuse_call(context, "hold of", meant.job->view, done.error());
  write_out(context.terminal, text(meant.id(), ": ", printable(done->message), "\n"));
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
