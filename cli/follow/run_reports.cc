#include "cli/follow/run_reports.h"

#include <utility>

#include "cli/args/say.h"
#include "cli/follow/artifacts.h"
#include "cli/show/junit.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

void say_failed(const Context& context, std::string_view flag, const Error& error) {
  say_error(context.terminal, {.id = "E0908", .message = text(flag, ": ", error.message), .help = ""});
}

}  // namespace

Flag exit_code_flag() {
  return {.name = "exit-code",
          .value = "WHICH",
          .help = "rank (default): that of the rank that was the root cause; class: 1 for any failure of a rank"};
}

std::optional<bool> exit_code_by_class(const Arguments& arguments, const Context& context) {
  const std::string written = arguments.value("exit-code").value_or("rank");
  if (written == "rank" || written == "class") return written == "class";
  return refuse_value(context, text("--exit-code ", printable(written), ": is not rank or class"));
}

int class_of(const Verdict& verdict) {
  const bool of_a_rank = verdict.outcome == Outcome::kFailed && verdict.cause.kind == CauseKind::kRank;
  return of_a_rank && verdict.exit_code != kExitOk ? kExitFailed : verdict.exit_code;
}

std::vector<Flag> report_flags() {
  return {{.name = "junit", .value = "FILE", .help = "write how each rank ended as JUnit XML, at the end of the job"},
          {.name = "artifacts",
           .value = "DIR",
           .help = "copy spec, verdict, events and logs into this new or empty folder, at the end of the job"},
          exit_code_flag()};
}

std::optional<RunReports> take_reports(const Arguments& arguments, const Context& context) {
  RunReports reports;
  const auto by_class = exit_code_by_class(arguments, context);
  if (!by_class) return std::nullopt;
  reports.by_class = *by_class;
  if (arguments.has("junit")) {
    auto file = ReportFile::open(arguments.value("junit").value_or(""));
    if (!file.ok()) return refuse_value(context, text("--junit ", file.error().message));
    reports.junit = std::move(*file);
  }
  if (arguments.has("artifacts")) {
    auto folder = ArtifactFolder::open(arguments.value("artifacts").value_or(""));
    if (!folder.ok()) {
      return refuse_value(context, text("--artifacts ", folder.error().message), "name a new folder, or an empty one");
    }
    reports.artifacts = std::move(*folder);
  }
  return reports;
}

int leave_reports(const RunReports& reports, const JobView& job, const JobSpec& spec, const SessionEnd& end,
                  const Context& context) {
  if (!end.verdict) {
    const bool asked = reports.junit || reports.artifacts;
    if (asked) say_note(context.terminal, text(job.id(), " has not ended: no report of it is written"));
    return end.exit_code;
  }
  const Verdict& verdict = *end.verdict;
  int exit_code = reports.by_class ? class_of(verdict) : verdict.exit_code;
  bool failed = false;
  if (reports.junit) {
    // Without a journal that can be read there is no rank to tell of, and the verdict is told all the same.
    auto status = job.status_from_journal(spec);
    JobStatus known = status.ok() ? std::move(*status) : JobStatus();
    known.job_id = job.id();
    const Status written = write_report(reports.junit, junit_xml(known, verdict));
    if (!written.ok()) say_failed(context, "--junit", written.error());
    failed = failed || !written.ok();
  }
  if (reports.artifacts) {
    const Status copied = copy_artifacts(job, verdict, *reports.artifacts);
    if (!copied.ok()) say_failed(context, "--artifacts", copied.error());
    failed = failed || !copied.ok();
  }
  return failed && exit_code == kExitOk ? kExitInternal : exit_code;
}

}  // namespace monarch
