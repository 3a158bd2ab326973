#include <algorithm>
#include <cctype>

#include "cli/args/say.h"
#include "cli/away/away.h"
#include "cli/cmd/meant_ranks.h"
#include "cli/commands.h"
#include "cli/follow/session_flags.h"
#include "supervisor/client/link/supervisor_client.h"
#include "transport/base/exit_code.h"
#include "transport/base/nearest.h"
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

// Nothing of what is no such word.
std::optional<SignalTo> written_target(const std::string& written, Context& context) {
  const auto to = signal_to(written);
  if (to) return to;
  const std::vector<std::string> known{"auto", "rank", "group"};
  const auto near = nearest(written, known);
  say_error(context.terminal, {.id = "E0904",
                               .message = text("--to takes auto, rank or group, not `", printable(written), "`"),
                               .help = near ? text("did you mean ", *near, "?") : ""});
  return std::nullopt;
}

bool runs(const RankStatus& rank) {
  return rank.phase == "running" || rank.phase == "suspended" || rank.phase == "stopping";
}

int run_signal(const Arguments& arguments, Context& context) {
  const std::vector<std::string>& words = arguments.positionals();
  const std::string& written = words.back();
  const auto number = signal_number(upper(written));
  if (!number.ok()) return refuse(context, unknown_signal(written, number.error()), kExitUsage);
  std::optional<SignalTo> to;
  if (const auto written_to = arguments.value("to")) {
    to = written_target(*written_to, context);
    if (!to) return kExitUsage;
  }
  const MeantRanks meant = take_ranks(words.size() > 1 ? words.front() : std::string(), arguments, context,
                                      {.doing = "signal to", .verb = "signal", .counts = runs});
  if (meant.job == nullptr) return meant.exit_code;
  const auto sent = ask(meant.supervisor, SignalRequest{.ranks = meant.ranks, .number = *number, .to = to});
  if (!sent.ok()) return refuse_call(context, "signal to", meant.job->view, sent.error());
  write_out(context.terminal, text(printable(sent->message), " of ", meant.id(), "\n"));
  return kExitOk;
}

}  // namespace

Command signal_command() {
  std::vector<Flag> flags = selector_flags();
  flags.push_back({.name = "to",
                   .value = "WHOM",
                   .help = "rank (its own process), group (its process group) or auto; else as its mesh's `stop.to`"});
  return where_the_job_lives(
      {.name = "signal",
       .summary = "send a signal to the ranks of a live job",
       .description =
           "It goes to each rank that is meant and runs: to its own process, or, where that is a shell that\n"
           "waits for a child, to its process group. A rank that KILL ends has failed; one that STOP suspends\n"
           "keeps its place until CONT, and status shows it as suspended.",
       .flags = std::move(flags),
       .positionals = {{.name = "JOB", .help = "which job"},
                       {.name = "SIGNAL", .help = "a name, such as USR1, or a number", .required = true}},
       .run = run_signal});
}

}  // namespace monarch
