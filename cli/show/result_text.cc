#include "cli/show/result_text.h"

#include <set>
#include <string>

#include "cli/term/cause_text.h"
#include "cli/term/table.h"
#include "cli/term/terminal.h"
#include "supervisor/client/link/viewer_json.h"
#include "supervisor/client/output/output_follower.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kMostTailLines = 20;

std::string row(std::string_view title, Colour colour, bool enabled, std::string_view words) {
  constexpr std::size_t kTitleWidth = 11;
  const std::string padded = text(title, std::string(title.size() < kTitleWidth ? kTitleWidth - title.size() : 1, ' '));
  return text(" ", paint(colour, padded, enabled), words, "\n");
}

std::string tail_text(const std::string& raw) {
  std::vector<std::string_view> lines;
  std::string_view rest = raw;
  while (!rest.empty()) {
    const std::size_t newline = rest.find('\n');
    lines.push_back(rest.substr(0, newline));
    rest.remove_prefix(newline == std::string_view::npos ? rest.size() : newline + 1);
  }
  std::string out;
  const std::size_t first = lines.size() > kMostTailLines ? lines.size() - kMostTailLines : 0;
  for (std::size_t i = first; i < lines.size(); ++i) out += text("   │ ", printable(lines[i]), "\n");
  return out;
}

// One line for each, and for each kind of failure a command that shows it again.
std::string failed_hosts_text(const Verdict& verdict, bool colour) {
  const std::size_t failed = verdict.failed_hosts.size() + verdict.failed_hosts_untold;
  Table table({"   │ HOST", "WHAT", "WHILE", "AFTER", "SAYS"});
  std::string again;
  std::set<std::string> kinds;
  for (const HostFailure& host : verdict.failed_hosts) {
    table.add({{"   │ " + host.host},
               {host.kind},
               {host.phase},
               {to_text(Duration::milliseconds(host.elapsed_milliseconds))},
               {host.message}});
    if (!host.again.empty() && kinds.insert(host.kind).second) {
      again += row("to see", Colour::kNone, false, printable(host.again));
    }
  }
  const std::string more = verdict.failed_hosts_untold > 0
                               ? text("   │ and ", verdict.failed_hosts_untold, " more: monarch events tells of each\n")
                               : std::string();
  return text(row("hosts", Colour::kRed, colour, text(failed, failed == 1 ? " has" : " have", " failed to start:")),
              table.render(colour, 0), more, again);
}

std::string log_path(const FirstCause& cause, const ResultPlace& place) {
  if (!cause.rank || cause.mesh.empty() || cause.generation == 0) return place.log_directory;
  return text(
      place.log_directory, "/", cause.mesh, "/",
      output_file_name({.rank = Rank(*cause.rank), .generation = cause.generation, .stream = OutputStream::kStderr}));
}

std::string next_command(const Verdict& verdict, const ResultPlace& place) {
  if (verdict.cause.kind == CauseKind::kRank && verdict.cause.rank) {
    return text("monarch logs ", place.job_id, " --mesh ", verdict.cause.mesh, " --rank ", *verdict.cause.rank);
  }
  if (verdict.cause.kind == CauseKind::kInternal) return text("monarch events ", place.job_id);
  return text("monarch events ", place.job_id, "   |   monarch status ", place.job_id);
}

}  // namespace

std::string result_text(const Verdict& verdict, const ResultPlace& place) {
  const bool good = verdict.outcome == Outcome::kSucceeded;
  if (good && place.quiet && verdict.left_behind.empty() && verdict.lost_output.empty()) return "";
  std::string out;
  const Duration took =
      Duration::nanoseconds(verdict.ended.nanoseconds_since_epoch - verdict.started.nanoseconds_since_epoch);
  out += row("result", good ? Colour::kGreen : Colour::kRed, place.colour,
             text(outcome_name(verdict.outcome), " (exit ", verdict.exit_code, ")   ",
                  verdict.started.nanoseconds_since_epoch == 0 ? "" : to_text(took)));
  const FirstCause& cause = verdict.cause;
  // An ordered stop is no cause to look for: its reason says it.
  const bool has_cause = cause.kind != CauseKind::kNone && cause.kind != CauseKind::kRequest && !cause.summary.empty();
  if (has_cause) {
    out += row("root cause", Colour::kBold, place.colour, cause_text(cause));
    if (!cause.rule.empty()) out += row("rule", Colour::kNone, false, printable(cause.rule));
    out += tail_text(cause.stderr_tail);
    const bool at_start = cause.kind == CauseKind::kStart || cause.kind == CauseKind::kHost;
    if (at_start && !verdict.failed_hosts.empty()) out += failed_hosts_text(verdict, place.colour);
    if (cause.secondary > 0) {
      out += row("", Colour::kNone, false,
                 text("the first of ", cause.secondary + 1, ": ", cause.secondary,
                      cause.secondary == 1 ? " later end of the same gang follows from it"
                                           : " later ends of the same gang follow from it"));
    }
  } else if (!good && !verdict.reason.empty()) {
    out += row("reason", Colour::kBold, place.colour, printable(verdict.reason));
  }
  if (!verdict.left_behind.empty()) {
    out += row("left", Colour::kYellow, place.colour,
               text("not proven that nothing of the job lives on: ", printable(join(verdict.left_behind, ", ")),
                    "; `monarch doctor` run there, or `monarch doctor SPEC` over SSH, looks for it"));
  }
  for (const std::string& line : verdict.lost_output) {
    out += row("output", Colour::kYellow, place.colour, text("incomplete: in no file of ", printable(line)));
  }
  if (has_cause) {
    out += row("log", Colour::kNone, false, log_path(cause, place));
    out += row("try", Colour::kNone, false, next_command(verdict, place));
  }
  return out;
}

}  // namespace monarch
