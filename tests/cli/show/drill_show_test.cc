// A drill as a table for people, and as JUnit XML for CI systems.

#include <gtest/gtest.h>

#include "cli/show/drill_junit.h"
#include "cli/show/drill_text.h"
#include "tests/supervisor/drill/page/sample_drill.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

using drill::SampleDrill;

// One of each: not met, without evidence, broken, wrong, inert, skipped, not taken back.
SampleDrill all_that_can_be_wrong() {
  SampleDrill sample = drill::five_faults();
  sample.report.verdict = drill::DrillVerdict::kBroken;
  sample.report.bounds[1].met = false;
  sample.report.bounds[1].value = 2.1;
  sample.report.bounds[1].why = "ours_p95.process 2.1 s, at most 1.0 s (n 2)";
  sample.report.bounds[2].met = false;
  sample.report.bounds[2].value.reset();
  sample.report.bounds[2].n = 0;
  sample.report.bounds[2].why = "ttr_p95.host: there is no evidence";
  sample.report.invariants[1].broken = {"trainer/0: step 40 after 60"};
  sample.report.invariants.push_back(
      {.label = "I16", .words = "nothing is left on any host", .checks = 0, .broken = {}});
  sample.report.faults[0].note = "no event tells of it";
  sample.record.blows[1].end = drill::BlowEnd::kInert;
  sample.report.faults[1].note = "inert: it was in effect, and was never felt";
  sample.record.blows[3].end = drill::BlowEnd::kSkipped;
  sample.record.blows[3].why = "no spare is connected";
  sample.record.blows[4].taken_back = false;
  sample.report.faults[4].note = "not taken back: SIGCONT: no such process";
  return sample;
}

// Whether each element of it ends where it has to, and nothing in it is more than text. It knows what JUnit files have.
std::string what_is_wrong_with(std::string_view xml) {
  std::vector<std::string> open;
  for (std::size_t i = 0; i < xml.size(); ++i) {
    const auto byte = static_cast<unsigned char>(xml[i]);
    if (byte < 0x20 && byte != '\n' && byte != '\t') return text("byte ", static_cast<int>(byte));
    if (byte != '<') continue;
    const std::size_t end = xml.find('>', i);
    if (end == std::string_view::npos) return "a tag without an end";
    const std::string_view tag = xml.substr(i + 1, end - i - 1);
    const std::string name(tag.substr(0, tag.find_first_of(" /", 1)));
    if (name == "?xml") continue;
    if (name.starts_with('/')) {
      if (open.empty() || "/" + open.back() != name) return text("<", name, "> closes nothing");
      open.pop_back();
      continue;
    }
    const bool known =
        name == "testsuites" || name == "testsuite" || name == "testcase" || name == "failure" || name == "skipped";
    if (!known) return text("an element ", name);
    if (!tag.ends_with('/')) open.push_back(name);
  }
  return open.empty() ? "" : text("<", open.back(), "> is not closed");
}

}  // namespace

TEST(DrillJunit, HasACaseForEachExpectationInvariantAndFault) {
  const SampleDrill sample = all_that_can_be_wrong();
  EXPECT_EQ(drill_junit(sample.record, sample.report),
            R"xml(<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="drill five-faults" tests="12" failures="5" errors="0" skipped="3" time="82.000">
  <testsuite name="drill five-faults" tests="12" failures="5" errors="0" skipped="3" time="82.000" timestamp="2023-11-14T22:13:00.000Z">
    <testcase classname="expect" name="seen ≥ 1"/>
    <testcase classname="expect" name="ours_p95.process ≤ 1s"><failure type="not met" message="ours_p95.process 2.1 s, at most 1.0 s (n 2)">2.1s, n 2</failure></testcase>
    <testcase classname="expect" name="ttr_p95.host ≤ 8s"><failure type="no evidence" message="ttr_p95.host: there is no evidence">no evidence, n 0</failure></testcase>
    <testcase classname="expect" name="false_positives ≤ 0"/>
    <testcase classname="invariant" name="I4 generations of a rank only grow"/>
    <testcase classname="invariant" name="I20 the committed step never goes back"><failure type="broken" message="trainer/0: step 40 after 60">trainer/0: step 40 after 60&#10;</failure></testcase>
    <testcase classname="invariant" name="I16 nothing is left on any host"><skipped message="not checked"/></testcase>
    <testcase classname="fault" name="1 segv of trainer/1 on v1"><failure type="fault" message="wrong: no event tells of it"/></testcase>
    <testcase classname="fault" name="2 kill of trainer/9 on v3"><skipped message="inert: it was in effect, and was never felt"/></testcase>
    <testcase classname="fault" name="3 hang of trainer/5 on v2"/>
    <testcase classname="fault" name="4 power-loss of v5"><skipped message="skipped: no spare is connected"/></testcase>
    <testcase classname="fault" name="5 supervisor-kill of the supervisor"><failure type="fault" message="wrong: not taken back: SIGCONT: no such process"/></testcase>
  </testsuite>
</testsuites>
)xml");
}

TEST(DrillJunit, IsWellFormedWhateverBytesAreSaid) {
  for (const std::string_view bytes : drill::kHostileBytes) {
    SCOPED_TRACE(printable(bytes));
    const SampleDrill sample = drill::hostile_drill(bytes);
    EXPECT_EQ(what_is_wrong_with(drill_junit(sample.record, sample.report)), "");
  }
}

TEST(DrillTable, SaysWhatWasExpectedWhatHeldAndWhatBecameOfEachFault) {
  const SampleDrill sample = all_that_can_be_wrong();
  EXPECT_EQ(drill_table(sample.record, sample.report, false), R"table(   EXPECTED          BOUND  WAS          N   ABOUT
✓  seen              ≥ 1    1            5   faults seen, of those that are to be seen
✗  ours_p95.process  ≤ 1s   2.1s         2   ours_p95.process 2.1 s, at most 1.0 s (n 2)
✗  ttr_p95.host      ≤ 8s   no evidence  0   ttr_p95.host: there is no evidence
✓  false_positives   ≤ 0    0            12  blame that no fault explains

   INVARIANT                               CHECKS  BROKEN
✗  I20 the committed step never goes back  57      trainer/0: step 40 after 60
✓  I4                                      24      -
○  I16                                     0       not checked

#  FAULT            TARGET           SEEN AFTER  OURS  RECOVERED AFTER  GANGS   RESULT
1  segv             trainer/1 on v1  5ms         50ms  1.3s             1 of 1  wrong: no event tells of it
2  kill             trainer/9 on v3  7ms         60ms  1.4s             1 of 1  inert: it was in effect, and was never felt
3  hang             trainer/5 on v2  3.2s        3.3s  6.7s             1 of 1  as expected
4  power-loss       v5               4.1s        6.1s  7.6s             1 of 1  skipped: no spare is connected
5  supervisor-kill  the supervisor   400ms       –     –                0 of 0  wrong: not taken back: SIGCONT: no such process

CLASS       SEEN: P50 / P95 / MAX (N)  OURS                    RECOVERED
process     7ms / 7ms / 7ms (2)        60ms / 60ms / 60ms (2)  1.4s / 1.4s / 1.4s (2)
hang        3.2s / 3.2s / 3.2s (1)     3.3s / 3.3s / 3.3s (1)  6.7s / 6.7s / 6.7s (1)
host        4.1s / 4.1s / 4.1s (1)     6.1s / 6.1s / 6.1s (1)  7.6s / 7.6s / 7.6s (1)
supervisor  400ms / 400ms / 400ms (1)  –                       –
)table");
}

TEST(DrillTable, IsPrintableWhateverBytesAreSaid) {
  for (const std::string_view bytes : drill::kHostileBytes) {
    const SampleDrill sample = drill::hostile_drill(bytes);
    for (const char c : drill_table(sample.record, sample.report, false)) {
      ASSERT_TRUE(c == '\n' || c == '\t' || (c & 0xE0) != 0) << static_cast<int>(c);
    }
  }
}

}  // namespace monarch
