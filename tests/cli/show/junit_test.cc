#include "cli/show/junit.h"

#include <gtest/gtest.h>

#include "cli/follow/run_reports.h"

namespace monarch {

namespace {

JobStatus three_ranks() {
  JobStatus status;
  status.job_id = "demo-1234";
  status.meshes = {{.name = "m", .dims = {{"host", 3}}, .phase = "failed", .ranks = {}}};
  status.meshes[0].ranks = {{.rank = 0, .phase = "done", .host = "v1", .end = "exit code 0"},
                            {.rank = 1, .phase = "failed", .host = "v2", .end = "exit code 7"},
                            {.rank = 2, .phase = "stopped", .host = "v3", .end = "killed by SIGTERM"}};
  return status;
}

Verdict failed(CauseKind kind = CauseKind::kRank) {
  Verdict verdict;
  verdict.outcome = Outcome::kFailed;
  verdict.exit_code = 7;
  verdict.reason = "it did not work";
  verdict.started = {1'700'000'000'000'000'000};
  verdict.ended = {1'700'000'002'500'000'000};
  verdict.cause.kind = kind;
  if (kind != CauseKind::kRank) return verdict;
  verdict.cause.mesh = "m";
  verdict.cause.rank = 1;
  verdict.cause.host = "v2";
  verdict.cause.summary = "exit code 7";
  verdict.cause.stderr_tail = "a < b && \"c\"\nboom\n";
  return verdict;
}

}  // namespace

TEST(Junit, HasACaseForEachRank) {
  EXPECT_EQ(junit_xml(three_ranks(), failed()),
            R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="demo-1234" tests="4" failures="1" errors="0" skipped="1" time="2.500">
  <testsuite name="m" tests="3" failures="1" errors="0" skipped="1" time="2.500" timestamp="2023-11-14T22:13:20.000Z">
    <testcase classname="m" name="rank 0 on v1"/>
    <testcase classname="m" name="rank 1 on v2"><failure type="root cause" message="exit code 7">m/1 on v2: exit code 7&#10;a &lt; b &amp;&amp; &quot;c&quot;&#10;boom&#10;</failure></testcase>
    <testcase classname="m" name="rank 2 on v3"><skipped message="killed by SIGTERM"/></testcase>
  </testsuite>
  <testsuite name="job" tests="1" failures="0" errors="0" skipped="0" time="2.500" timestamp="2023-11-14T22:13:20.000Z">
    <testcase classname="job" name="demo-1234"/>
  </testsuite>
</testsuites>
)");
}

TEST(Junit, TellsOfAnEndThatIsNoRanksFault) {
  const std::string xml = junit_xml(three_ranks(), failed(CauseKind::kHost));
  EXPECT_NE(
      xml.find("<testcase classname=\"job\" name=\"demo-1234\"><error type=\"failed\" message=\"it did not work\">"),
      std::string::npos);
  // Its ranks are not known: the job's case tells it.
  EXPECT_NE(junit_xml({.job_id = "demo-1234"}, failed()).find("<error type=\"failed\""), std::string::npos);
}

TEST(RunReports, ClassesTheFailuresOfRanksAlone) {
  EXPECT_EQ(class_of(failed()), 1);
  EXPECT_EQ(class_of(failed(CauseKind::kHost)), 7);
  Verdict good;
  good.outcome = Outcome::kSucceeded;
  good.exit_code = 0;
  EXPECT_EQ(class_of(good), 0);
}

}  // namespace monarch
