#include "cli/show/junit.h"

#include <array>
#include <cstdio>

#include "cli/term/cause_text.h"
#include "supervisor/client/link/viewer_json.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

struct CaseCounts {
  std::size_t tests = 0;
  std::size_t failures = 0;
  std::size_t errors = 0;
  std::size_t skipped = 0;
  CaseCounts& operator+=(const CaseCounts& other) {
    tests += other.tests;
    failures += other.failures;
    errors += other.errors;
    skipped += other.skipped;
    return *this;
  }
};

std::string attributes(const CaseCounts& counts) {
  return text(" tests=\"", counts.tests, "\" failures=\"", counts.failures, "\" errors=\"", counts.errors,
              "\" skipped=\"", counts.skipped, "\"");
}

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

std::string rank_case(const MeshStatus& mesh, const RankStatus& rank, const Verdict& verdict, CaseCounts& counts) {
  ++counts.tests;
  std::string out = text("    <testcase classname=\"", xml_text(mesh.name), "\" name=\"rank ", rank.rank,
                         rank.host.empty() ? "" : text(" on ", xml_text(rank.host)), "\"");
  if (is_cause(verdict.cause, mesh, rank)) {
    ++counts.failures;
    return out + text("><failure type=\"root cause\" message=\"", xml_text(verdict.cause.summary), "\">",
                      xml_text(cause_body(verdict.cause)), "</failure></testcase>\n");
  }
  if (rank.phase == "done") return out + "/>\n";
  const std::string how = rank.end.empty() ? rank.phase : rank.end;
  if (rank.phase == "failed" || rank.phase == "lost") {
    ++counts.failures;
    return out + text("><failure type=\"", xml_text(rank.phase), "\" message=\"", xml_text(how), "\"/></testcase>\n");
  }
  ++counts.skipped;
  return out + text("><skipped message=\"", xml_text(how), "\"/></testcase>\n");
}

// What no rank's case tells.
std::string job_case(const std::string& job, const Verdict& verdict, bool ranks_are_known, CaseCounts& counts) {
  const bool told = verdict.cause.kind == CauseKind::kRank && ranks_are_known;
  ++counts.tests;
  std::string out = text("    <testcase classname=\"job\" name=\"", xml_text(job), "\"");
  if (verdict.outcome == Outcome::kSucceeded || told) return out + "/>\n";
  ++counts.errors;
  return out + text("><error type=\"", outcome_name(verdict.outcome), "\" message=\"", xml_text(verdict.reason), "\">",
                    xml_text(cause_body(verdict.cause)), "</error></testcase>\n");
}

std::string seconds_of(const Verdict& verdict) {
  const double seconds =
      static_cast<double>(verdict.ended.nanoseconds_since_epoch - verdict.started.nanoseconds_since_epoch) / 1e9;
  std::array<char, 32> shown{};
  (void)std::snprintf(shown.data(), shown.size(), "%.3f", seconds > 0 ? seconds : 0.0);  // it fits
  return shown.data();
}

}  // namespace

std::string xml_text(std::string_view raw) {
  std::string out;
  while (!raw.empty()) {
    const std::size_t newline = raw.find('\n');
    for (const char c : printable(raw.substr(0, newline))) {
      switch (c) {
        case '&': out += "&amp;"; break;
        case '<': out += "&lt;"; break;
        case '>': out += "&gt;"; break;
        case '"': out += "&quot;"; break;
        case '\'': out += "&apos;"; break;
        default: out.push_back(c);
      }
    }
    if (newline == std::string_view::npos) break;
    out += "&#10;";
    raw.remove_prefix(newline + 1);
  }
  // The two characters of the first plane that XML does not have and a terminal does not mind.
  for (const std::string_view none : {std::string_view("\xef\xbf\xbe"), std::string_view("\xef\xbf\xbf")}) {
    for (std::size_t at = out.find(none); at != std::string::npos; at = out.find(none)) out.replace(at, 3, "\\uffff");
  }
  return out;
}

std::string junit_xml(const JobStatus& status, const Verdict& verdict) {
  CaseCounts all;
  std::string suites;
  for (const MeshStatus& mesh : status.meshes) {
    CaseCounts counts;
    std::string cases;
    for (const RankStatus& rank : mesh.ranks) cases += rank_case(mesh, rank, verdict, counts);
    suites +=
        text("  <testsuite name=\"", xml_text(mesh.name), "\"", attributes(counts), " time=\"", seconds_of(verdict),
             "\" timestamp=\"", to_text(verdict.started), "\">\n", cases, "  </testsuite>\n");
    all += counts;
  }
  CaseCounts counts;
  const std::string job = job_case(status.job_id, verdict, !status.meshes.empty(), counts);
  suites += text("  <testsuite name=\"job\"", attributes(counts), " time=\"", seconds_of(verdict), "\" timestamp=\"",
                 to_text(verdict.started), "\">\n", job, "  </testsuite>\n");
  all += counts;
  return text("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"", xml_text(status.job_id), "\"",
              attributes(all), " time=\"", seconds_of(verdict), "\">\n", suites, "</testsuites>\n");
}

}  // namespace monarch
