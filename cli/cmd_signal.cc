#include <algorithm>
#include <cctype>

#include "cli/commands.h"
#include "cli/elsewhere.h"
#include "cli/meant_ranks.h"
#include "cli/say.h"
#include "cli/session_flags.h"
#include "supervisor/client/supervisor_client.h"
#include "supervisor/spec/suggest.h"
#include "transport/base/exit_code.h"
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

int run_signal(const Arguments& arguments, Context& context) {
  const std::vector<std::string>& words = arguments.positionals();
  const std::string& written = words.back();
  const auto number = signal_number(upper(written));
  if (!number.ok()) return refuse(context, unknown_signal(written, number.error()), kExitUsage);
  const MeantRanks meant = take_ranks(words.size() > 1 ? words.front() : std::string(), arguments, context,
                                      {.doing = "signal to", .verb = "signal", .counts = runs});
  if (meant.job == nullptr) return meant.exit_code;
  const auto sent = ask_signal(meant.supervisor, {.ranks = meant.ranks, .number = *number});
  if (!sent.ok()) return refuse_call(context, "signal to", meant.job->view, sent.error());
  write_out(context.terminal, text(printable(sent->message), " of ", meant.id(), "\n"));
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
