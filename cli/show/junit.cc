#include "cli/show/junit.h"

#include <vector>

#include "cli/show/junit_suite.h"
#include "cli/term/cause_text.h"
#include "supervisor/client/link/viewer_json.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

bool is_cause(const FirstCause& cause, const MeshStatus& mesh, const RankStatus& rank) {
  return cause.kind == CauseKind::kRank && cause.mesh == mesh.name && cause.rank == rank.rank;
}

// Lines of a rank, each made printable; the newlines between them stay.
std::string printable_lines(std::string_view raw) {
  std::string out;
  while (!raw.empty()) {
    const std::size_t newline = raw.find('\n');
    out += text(printable(raw.substr(0, newline)), "\n");
    raw.remove_prefix(newline == std::string_view::npos ? raw.size() : newline + 1);
  }
  return out;
}

std::string cause_body(const FirstCause& cause) {
  std::string body = cause_text(cause) + "\n";
  if (!cause.rule.empty()) body += text("rule: ", printable(cause.rule), "\n");
  return body + printable_lines(cause.stderr_tail);
}

void add_rank(JunitSuite& suite, const MeshStatus& mesh, const RankStatus& rank, const Verdict& verdict) {
  const std::string name = text("rank ", rank.rank, rank.host.empty() ? "" : " on ", rank.host);
  if (is_cause(verdict.cause, mesh, rank)) {
    return suite.failed(mesh.name, name,
                        {.type = "root cause", .message = verdict.cause.summary, .body = cause_body(verdict.cause)});
  }
  if (rank.phase == "done") return suite.passed(mesh.name, name);
  const std::string how = rank.end.empty() ? rank.phase : rank.end;
  if (rank.phase == "failed" || rank.phase == "lost") {
    return suite.failed(mesh.name, name, {.type = rank.phase, .message = how, .body = {}});
  }
  suite.skipped(mesh.name, name, how);
}

// What no rank's case tells.
JunitSuite job_suite(const std::string& job, const Verdict& verdict, bool ranks_are_known) {
  const bool told = verdict.cause.kind == CauseKind::kRank && ranks_are_known;
  JunitSuite suite("job");
  if (verdict.outcome == Outcome::kSucceeded || told) {
    suite.passed("job", job);
  } else {
    suite.erred("job", job,
                {.type = std::string(outcome_name(verdict.outcome)),
                 .message = verdict.reason,
                 .body = cause_body(verdict.cause)});
  }
  return suite;
}

}  // namespace

std::string junit_xml(const JobStatus& status, const Verdict& verdict) {
  std::vector<JunitSuite> suites;
  for (const MeshStatus& mesh : status.meshes) {
    suites.emplace_back(mesh.name);
    for (const RankStatus& rank : mesh.ranks) add_rank(suites.back(), mesh, rank, verdict);
  }
  suites.push_back(job_suite(status.job_id, verdict, !status.meshes.empty()));
  const Duration took =
      Duration::nanoseconds(verdict.ended.nanoseconds_since_epoch - verdict.started.nanoseconds_since_epoch);
  return junit_file(status.job_id, suites, took, verdict.started);
}

}  // namespace monarch
