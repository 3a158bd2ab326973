#include "supervisor/drill/report/report_json.h"

#include <string>

#include <gtest/gtest.h>

#include "supervisor/drill/core/measure.h"
#include "tests/supervisor/drill/core/drill_run.h"
#include "transport/base/assert.h"
#include "transport/base/json.h"

namespace monarch {

namespace {

using namespace monarch::drill;

// One of everything.
DrillRecord full_record() {
  DrillRun run;
  add_kill(run, 30);
  Blow& hang = run.blow("hang", 40, run.rank(2), 1);
  hang.clock_error = Duration::microseconds(150);
  run.rank_event(40.1, EventKind::kRankStopped, 2).pid = 4711;
  run.blow("power-loss", 50, run.host("h2")).end = BlowEnd::kSkipped;
  run.record().blows.back().why = "no spare is connected";
  JobEvent& commit = run.gang_event(45, EventKind::kCheckpointCommitted, 1);
  commit.details.emplace_back("step", "120");
  commit.message = text("trainer: gang 1 has committed step 120, generation ", commit.generation);
  run.event(46, EventKind::kJobLimit).number = 0;
  DrillRecord& record = run.record();
  Scenario& scenario = record.scenario;
  scenario.job = "/home/alice/train.yaml";
  scenario.seed = 42;
  scenario.duration = Duration::seconds(60);
  scenario.overlap = true;
  FaultEntry entry;
  entry.fault = "hang";
  entry.target.mesh = "trainer";
  entry.trigger = TriggerKind::kOnEvent;
  entry.event = EventKind::kCheckpointCommitted;
  entry.lasts = Duration::seconds(1);
  entry.place = {.line = 7, .column = 5};
  scenario.faults = {entry};
  scenario.budgets = Budgets::kReal;
  scenario.compare = Compare::kFullRestart;
  scenario.expect = {{.measure = Measure::kOursP95, .of = FaultClass::kProcess, .value = 1.5, .place = {3, 4}}};
  record.incarnations = {{.at = at_second(32), .host = "h1", .ranks = 2, .doubled = {}}};
  record.leftovers = {{.host = "h2", .what = "a process"}};
  record.here = {.lost_rank_milliseconds = 3000, .rank_milliseconds = 160'000};
  record.peer = {.lost_rank_milliseconds = 40'000, .rank_milliseconds = 200'000};
  record.cut_short = "guard: goodput";
  record.left_out = {"cut: nft is not there"};
  record.verdict->left_behind = {"h1"};
  DrillRecord done = run.done();
  done.samples[3].meshes[0].steps[1].reset();
  done.samples[5].meshes[0].phases[0] = "starting";
  return done;
}

std::string error_of(const std::string& json) {
  const auto read = read_record(json);
  return read.ok() ? "" : read.error().message;
}

TEST(ReportJson, SaysWhatTheReportSays) {
  const DrillRecord record = full_record();
  const DrillReport report = measure(record);
  const auto json = parse_json(report_json(record, report));
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->get_string("type"), "drill");
  EXPECT_EQ(json->get_string("verdict"), "broken");
  EXPECT_EQ(json->get_int64("exit_code"), 4);
  EXPECT_EQ(json->get_string("sentence"), report.sentence);
  EXPECT_EQ(json->find("ledger")->get_int64("redone"), 1000);
  const Json& kill = json->find("faults")->items()[0];
  EXPECT_EQ(kill.get_double("struck"), 30.0);
  EXPECT_EQ(kill.get_double("ttr"), 1.5);
  EXPECT_EQ(kill.get_string("end"), "effective");
  EXPECT_EQ(json->find("compare")->get_double("ratio"), 0.075);
}

TEST(ReportJson, IsReadAsItWasWritten) {
  const DrillRecord record = full_record();
  const std::string written = report_json(record, measure(record));
  const auto read = read_record(written);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(report_json(*read, measure(*read)), written);
  EXPECT_EQ(read->events.size(), record.events.size());
  for (std::size_t i = 0; i < record.events.size() && i < read->events.size(); ++i) {
    EXPECT_EQ(read->events[i].number, record.events[i].number);
    EXPECT_EQ(read->events[i].message, record.events[i].message);
    EXPECT_EQ(read->events[i].details, record.events[i].details);
  }
  EXPECT_EQ(read->samples.size(), record.samples.size());
  EXPECT_EQ(read->samples[3].meshes[0].steps[1], std::nullopt);
  EXPECT_EQ(read->samples[5].meshes[0].phases[0], "starting");
  EXPECT_EQ(read->samples[6].meshes[0].rank_milliseconds, record.samples[6].meshes[0].rank_milliseconds);
  EXPECT_EQ(read->samples[6].hosts, record.samples[6].hosts);
  EXPECT_EQ(read->scenario.faults[0].event, EventKind::kCheckpointCommitted);
  EXPECT_EQ(read->blows[1].clock_error, Duration::microseconds(150));
  EXPECT_EQ(read->verdict->left_behind, record.verdict->left_behind);
}

TEST(ReportJson, IsSmallForManySamples) {
  DrillRun run(8, 1200);
  for (std::uint32_t i = 0; i < 60; ++i) add_kill(run, 25 + i * 19.0, i % 16);
  for (std::uint32_t i = 0; i < 9'000; ++i) {
    JobEvent& commit = run.gang_event(20 + i * 0.1251, EventKind::kCheckpointCommitted, i % 8);
    commit.details.emplace_back("step", text(i / 8 * 20));
    commit.message =
        text("trainer: gang ", i % 8, " has committed step ", i / 8 * 20, ", generation ", commit.generation);
  }
  const DrillRecord record = run.done();
  EXPECT_EQ(record.samples.size(), 4801U);
  const std::string written = report_json(record, measure(record));
  EXPECT_LT(written.size(), 300'000U);
  const auto read = read_record(written);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->events.size(), record.events.size());
  EXPECT_EQ(read->events.back().message, record.events.back().message);
  EXPECT_EQ(report_json(*read, measure(*read)), written);
}

TEST(ReportJson, ReadsAReportWithoutKeysThatCameLater) {
  DrillRecord record = full_record();
  record.meshes[0].hang = Duration::seconds(3);
  std::string written = report_json(record, measure(record));
  const std::string key = ",\"hang\":3000000000}";
  const std::size_t at = written.find(key, written.find("\"meshes\":", written.find("\"record\":")));
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(read_record(written)->meshes[0].hang, Duration::seconds(3));
  const auto read = read_record(written.replace(at, key.size(), "}"));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->meshes[0].hang, std::nullopt);
}

TEST(ReportJson, SaysWhatItCannotRead) {
  const DrillRecord record = full_record();
  const std::string good = report_json(record, measure(record));
  EXPECT_EQ(error_of("{\"v\":1,\"type\":\"event\"}"), "it is no report of a drill: it is of type event");
  EXPECT_EQ(error_of("[]"), "it is no report of a drill: it says no type");
  EXPECT_EQ(error_of("{\"v\":2,\"type\":\"drill\"}"), "it is of version 2; this monarch reads reports of version 1");
  EXPECT_EQ(error_of("{\"v\":1,\"type\":\"drill\"}"), "it has no record");
  EXPECT_NE(error_of(good.substr(0, good.size() / 2)).find("is cut short"), std::string::npos);
  const auto changed = [&good](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from, text.find("\"record\":"));
    MONARCH_ASSERT(at != std::string::npos);
    return error_of(text.replace(at, from.size(), to));
  };
  EXPECT_EQ(changed("\"draw\":0", "\"draw\":-1"), "record.blows[0].draw is no whole number from 0 on, or too large");
  EXPECT_EQ(changed("\"end\":\"skipped\"", "\"end\":\"gone\""), "record.blows[2].end is gone, which is not known");
  EXPECT_EQ(changed("\"event\":\"gang.running\"", "\"event\":\"gang.flew\""),
            "events[1].event is gang.flew, which is not known");
  EXPECT_EQ(changed("\"n\":245", "\"n\":246"), "samples: a column is missing, cut short or no column");
  EXPECT_EQ(changed("\"n\":245", "\"n\":100000000"), "samples.n is no number, or too large");
  EXPECT_EQ(changed("\"ranks_per_gang\":2", "\"ranks_per_gang\":0"),
            "record.meshes has trainer without a whole number of gangs, or with too many ranks");
}

}  // namespace

}  // namespace monarch
