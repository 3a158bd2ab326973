#include "cli/show/drill_junit.h"

#include <algorithm>

#include "cli/show/junit_suite.h"
#include "supervisor/drill/core/drill_words.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

using drill::FaultState;

constexpr std::size_t kMostBrokenLines = 20;

void add_bound(JunitSuite& suite, const drill::BoundResult& bound) {
  const std::string name = text(bound.what, " ", bound_words(bound));
  if (bound.met) return suite.passed("expect", name);
  suite.failed("expect", name,
               {.type = bound.value ? "not met" : "no evidence",
                .message = bound.why.empty() ? value_words(bound) : bound.why,
                .body = text(value_words(bound), ", n ", bound.n)});
}

void add_invariant(JunitSuite& suite, const drill::InvariantResult& invariant) {
  const std::string name = text(invariant.label, " ", invariant.words);
  if (invariant.broken.empty() && invariant.checks == 0) return suite.skipped("invariant", name, "not checked");
  if (invariant.broken.empty()) return suite.passed("invariant", name);
  std::string body;
  for (std::size_t i = 0; i < std::min(invariant.broken.size(), kMostBrokenLines); ++i) {
    body += invariant.broken[i] + "\n";
  }
  suite.failed("invariant", name, {.type = "broken", .message = invariant.broken.front(), .body = body});
}

void add_fault(JunitSuite& suite, const drill::Blow& blow, const drill::FaultFigures& figures) {
  const std::string name = text(blow.number, " ", blow.fault, " of ", target_words(blow));
  const std::string words = result_words(blow, figures);
  switch (state_of(blow, figures)) {
    case FaultState::kFine: return suite.passed("fault", name);
    case FaultState::kWrong: return suite.failed("fault", name, {.type = "fault", .message = words, .body = {}});
    case FaultState::kInert:
    case FaultState::kSkipped: return suite.skipped("fault", name, words);
  }
}

}  // namespace

std::string drill_junit(const drill::DrillRecord& record, const drill::DrillReport& report) {
  const std::string name = text("drill ", record.scenario.name);
  JunitSuite suite(name);
  for (const drill::BoundResult& bound : report.bounds) add_bound(suite, bound);
  for (const drill::InvariantResult& invariant : report.invariants) add_invariant(suite, invariant);
  for (std::size_t i = 0; i < record.blows.size(); ++i) add_fault(suite, record.blows[i], figures_of(report, i));
  const Duration took =
      Duration::nanoseconds(record.ended.nanoseconds_since_epoch - record.started.nanoseconds_since_epoch);
  return junit_file(name, {suite}, took, record.started);
}

}  // namespace monarch
