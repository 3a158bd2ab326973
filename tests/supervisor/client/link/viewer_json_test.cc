#include "supervisor/client/link/viewer_json.h"

#include <gtest/gtest.h>

namespace monarch {

namespace {

Verdict some_verdict() {
  Verdict verdict;
  verdict.outcome = Outcome::kFailed;
  verdict.exit_code = 7;
  verdict.reason = "trainer/3 failed";
  verdict.started = {1'700'000'000'120'000'000};
  verdict.ended = {1'700'000'004'000'000'000};
  verdict.left_behind = {"v2"};
  verdict.failed_hosts = {{.host = "v3",
                           .kind = "refused",
                           .phase = "connect",
                           .elapsed_milliseconds = 120,
                           .message = "connecting to 10.0.0.3 port 22: Connection refused",
                           .again = "ssh -v 10.0.0.3"},
                          {.host = "v4", .kind = "failed", .message = "no worker"}};
  verdict.failed_hosts_untold = 3;
  verdict.cause.kind = CauseKind::kRank;
  verdict.cause.host = "v1";
  verdict.cause.mesh = "trainer";
  verdict.cause.rank = 3;
  verdict.cause.gang = 1;
  verdict.cause.gang_rank = 1;
  verdict.cause.generation = 2;
  verdict.cause.pid = 4711;
  verdict.cause.end = {.kind = EndKind::kExited, .value = 7, .detail = "", .core_dumped = true};
  verdict.cause.summary = "exit code 7";
  verdict.cause.rule = "restart.max 0: fail";
  verdict.cause.stderr_tail = "Traceback\n\tboom \"quoted\"\n";
  verdict.cause.secondary = 2;
  return verdict;
}

}  // namespace

TEST(VerdictJson, ComesBackAsItWas) {
  const Verdict written = some_verdict();
  const auto read = parse_verdict(to_json(verdict_json(written)));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->outcome, written.outcome);
  EXPECT_EQ(read->started, written.started);
  EXPECT_EQ(read->cause.end.value, 7);
  // The rest is compared as what is written of it.
  EXPECT_EQ(to_json(verdict_json(*read)), to_json(verdict_json(written)));
}

TEST(VerdictJson, RefusesWhatIsNoVerdict) {
  for (const char* json : {"", "{", "[]", "{}", R"({"outcome":"failed"})", R"({"outcome":"odd","exit_code":1})",
                           R"({"outcome":"failed","exit_code":256})", R"({"outcome":"failed","exit_code":-1})"}) {
    EXPECT_EQ(parse_verdict(json).error().code, ErrorCode::kInvalid) << json;
  }
}

TEST(EventJson, IsOneLineWithItsVersionAndType) {
  JobEvent event;
  event.number = 4;
  event.time = {1'700'000'000'120'000'000};
  event.kind = EventKind::kHostReady;
  event.host = "v1";
  event.message = "v1: worker is connected";
  event.details = {{"rounds", "2"}};
  EXPECT_EQ(
      to_json(event_json(event)),
      R"({"v":1,"type":"event","number":4,"time":"2023-11-14T22:13:20.120Z","severity":"info","event":"host.ready",)"
      R"("host":"v1","mesh":null,"rank":null,"generation":0,"pid":0,"message":"v1: worker is connected",)"
      R"("details":{"rounds":"2"}})");
}

TEST(StatusJson, NamesMeshesRanksAndHosts) {
  JobStatus status;
  status.job_id = "hello-0001";
  status.phase = "running";
  status.term = Term(2);
  status.meshes.push_back({.name = "m",
                           .dims = {{"host", 1}},
                           .phase = "running",
                           .ranks = {{.rank = 0, .phase = "running", .host = "v1", .pid = 5}}});
  status.hosts.push_back(
      {.name = "v1", .phase = "ready", .role = "rank", .talk_drops = {.bad_values = 2, .foreign = 1}});
  const auto json = parse_json(to_json(status_json(status)));
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->get_uint64("v"), 1U);
  EXPECT_EQ(json->get_string("type"), "status");
  EXPECT_EQ(json->find("meshes")->items()[0].find("ranks")->items()[0].get_int64("pid"), 5);
  EXPECT_EQ(json->find("hosts")->items()[0].get_string("name"), "v1");
  EXPECT_EQ(to_json(*json->find("hosts")->items()[0].find("talk_drops")),
            R"({"bad_values":2,"too_long":0,"foreign":1,"connections":0,"slow_readers":0})");
  EXPECT_TRUE(json->find("verdict")->is_null());
}

TEST(StatusJson, TellsWhatARankSaysOfItself) {
  JobStatus status;
  status.meshes.push_back({.name = "m", .ranks = {{.rank = 0}, {.rank = 1, .ready = true}}});
  RankStatus& speaks = status.meshes[0].ranks[1];
  speaks.progress.step = 17;
  speaks.progress.status = "loading";
  speaks.progress.metrics = {{"loss", "2.5"}, {"norm", "nan"}};
  speaks.progress_age_milliseconds = 40;
  speaks.standstill = "traced";
  speaks.watched = false;
  const auto json = parse_json(to_json(status_json(status)));
  ASSERT_TRUE(json.ok());
  const Json::Array& ranks = json->find("meshes")->items()[0].find("ranks")->items();
  EXPECT_TRUE(ranks[0].find("progress")->is_null());
  EXPECT_EQ(ranks[0].get_bool("ready"), false);
  EXPECT_EQ(ranks[1].get_bool("ready"), true);
  EXPECT_TRUE(ranks[0].find("standstill")->is_null());
  EXPECT_EQ(ranks[1].get_string("standstill"), "traced");
  EXPECT_EQ(ranks[0].get_bool("watched"), true);
  EXPECT_EQ(ranks[1].get_bool("watched"), false);
  EXPECT_EQ(to_json(*ranks[1].find("progress")),
            R"({"step":17,"phase":null,"status":"loading","metrics":{"loss":2.5,"norm":"nan"},"age_milliseconds":40})");
}

TEST(StatusJson, TellsOfRestartsAndOfHostsThatAreNotUsed) {
  JobStatus status;
  status.meshes.push_back({.name = "m",
                           .gangs = {{.phase = "running", .generation = 3, .restarts = 2, .failures = 1}},
                           .restart = {.max = 4, .window_milliseconds = 600'000}});
  status.hosts.push_back({.name = "v1",
                          .standing = "drained",
                          .standing_because = "drained, asked by alice",
                          .returns_milliseconds = 1'500});
  status.hosts.push_back({.name = "v2", .preparation = "prepared"});
  const auto json = parse_json(to_json(status_json(status)));
  ASSERT_TRUE(json.ok());
  const Json& mesh = json->find("meshes")->items()[0];
  EXPECT_EQ(to_json(*mesh.find("restart")), R"({"max":4,"window_milliseconds":600000})");
  EXPECT_EQ(to_json(*mesh.find("gangs")), R"([{"phase":"running","generation":3,"restarts":2,"failures":1}])");
  const Json::Array& hosts = json->find("hosts")->items();
  EXPECT_EQ(hosts[0].get_string("standing"), "drained");
  EXPECT_EQ(hosts[0].get_string("standing_because"), "drained, asked by alice");
  EXPECT_EQ(hosts[0].get_int64("returns_milliseconds"), 1'500);
  EXPECT_TRUE(hosts[0].find("held_milliseconds")->is_null());
  EXPECT_EQ(hosts[1].get_string("standing"), "good");
  EXPECT_TRUE(hosts[0].find("preparation")->is_null());
  EXPECT_EQ(hosts[1].get_string("preparation"), "prepared");
  EXPECT_TRUE(hosts[1].find("returns_milliseconds")->is_null());
}

TEST(StatusJson, TellsWhichDrillHasTheJob) {
  JobStatus status;
  EXPECT_TRUE(parse_json(to_json(status_json(status)))->find("drill")->is_null());
  status.drill = DrillStatus{.name = "smoke", .drill = "1a2b", .who = "me", .since_milliseconds = 12'000, .open = {3}};
  EXPECT_EQ(to_json(*parse_json(to_json(status_json(status)))->find("drill")),
            R"({"name":"smoke","drill":"1a2b","who":"me","since_milliseconds":12000,"open":[3],"stopped":false})");
}

TEST(StatusJson, TellsTheNewestCheckpointOfEachGang) {
  JobStatus status;
  status.meshes.push_back({.name = "m", .committed = {{.gang = 1, .step = 1'200, .generation = 3}}});
  const auto json = parse_json(to_json(status_json(status)));
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(to_json(*json->find("meshes")->items()[0].find("committed")), R"([{"gang":1,"step":1200,"generation":3}])");
}

}  // namespace monarch
