// What people are told: values of flags, events, progress and results.

#include <gtest/gtest.h>

#include "cli/args/values.h"
#include "cli/follow/rank_hosts.h"
#include "cli/show/announcer.h"
#include "cli/show/result_text.h"
#include "cli/show/status_text.h"
#include "cli/term/cause_text.h"
#include "supervisor/launch/local/local_spec.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

JobSpec two_hosts() {
  JobSpec spec;
  spec.name = "hello";
  spec.launch = LaunchLocal{.hosts = 2};
  MeshSpec mesh;
  mesh.name = "trainer";
  mesh.dims = {{"host", 2}, {"gpu", 1}};
  mesh.per_host_dims = 1;
  spec.meshes = {mesh};
  return spec;
}

JobEvent event(EventKind kind, std::string message, Severity severity = Severity::kInfo, std::string host = "") {
  JobEvent made;
  made.time = {1'700'000'000'120'000'000};
  made.kind = kind;
  made.message = std::move(message);
  made.severity = severity;
  made.host = std::move(host);
  return made;
}

Verdict failed_rank() {
  Verdict verdict;
  verdict.outcome = Outcome::kFailed;
  verdict.exit_code = 7;
  verdict.started = {1'000'000'000};
  verdict.ended = {5'100'000'000};
  verdict.cause.kind = CauseKind::kRank;
  verdict.cause.mesh = "trainer";
  verdict.cause.rank = 11;
  verdict.cause.host = "v2";
  verdict.cause.pid = 4711;
  verdict.cause.generation = 1;
  verdict.cause.summary = "exit code 7";
  verdict.cause.rule = "restart.max 0: fail";
  verdict.cause.stderr_tail = "Traceback\nValueError: \x1b[31mboom\n";
  verdict.cause.secondary = 3;
  return verdict;
}

}  // namespace

TEST(Moment, IsATimeAgoATimeOfDayOrADate) {
  const WallTime now{1'700'000'000'120'000'000};  // 2023-11-14T22:13:20.120Z
  const auto moment = [&](std::string_view written) {
    const auto parsed = parse_moment(written, now);
    return parsed.ok() ? to_text(*parsed) : "wrong";
  };
  EXPECT_EQ(moment("10m"), "2023-11-14T22:03:20.120Z");
  EXPECT_EQ(moment("500ms"), "2023-11-14T22:13:19.620Z");
  EXPECT_EQ(moment("22:13"), "2023-11-14T22:13:00.000Z");
  EXPECT_EQ(moment("22:14:00"), "2023-11-13T22:14:00.000Z");  // the last one
  EXPECT_EQ(moment("2023-11-14T12:04:41.5Z"), "2023-11-14T12:04:41.500Z");
  EXPECT_EQ(moment("2023-11-14 12:04"), "2023-11-14T12:04:00.000Z");
  EXPECT_EQ(moment("2023-11-14"), "2023-11-14T00:00:00.000Z");
  for (const char* wrong : {"", "10", "yesterday", "2023-02-30", "24:00", "12:61", "2023-11-14T", "12:04x", "none"}) {
    EXPECT_EQ(moment(wrong), "wrong") << wrong;
  }
}

TEST(Announcer, NamesTheMeshesWhoseRanksAreWaitedFor) {
  JobSpec spec = two_hosts();
  spec.meshes.push_back(spec.meshes.front());
  spec.meshes.back().name = "loader";
  spec.launch = LaunchLocal{.hosts = 4};
  Announcer announcer(spec, {.err_live = true});
  const Duration second = Duration::seconds(1);
  for (const char* host : {"v1", "v2", "v3", "v4"}) {
    (void)announcer.on_event(event(EventKind::kHostReady, "", Severity::kInfo, host),
                             Instant());  // what it says is not looked at here
  }
  EXPECT_NE(announcer.progress(second).find("waiting for the ranks of trainer, loader (1s)"), std::string::npos)
      << announcer.progress(second);
  JobEvent running = event(EventKind::kGangRunning, "");
  running.mesh = "trainer";
  (void)announcer.on_event(running, Instant());
  EXPECT_NE(announcer.progress(second).find("waiting for the ranks of loader (1s)"), std::string::npos);
  running.mesh = "loader";
  (void)announcer.on_event(running, Instant());
  EXPECT_NE(announcer.progress(second).find("waiting until every mesh is ready (1s)"), std::string::npos);
}

TEST(RankList, TakesNumbersAndRanges) {
  const auto list = RankList::parse("3,7-9");
  ASSERT_TRUE(list.ok());
  for (const std::uint32_t rank : {3U, 7U, 8U, 9U}) EXPECT_TRUE(list->contains(rank));
  for (const std::uint32_t rank : {0U, 4U, 6U, 10U}) EXPECT_FALSE(list->contains(rank));
}

TEST(RankList, RefusesEverythingElse) {
  for (const char* wrong : {"", ",", "3,", "a", "9-7", "3-", "-3", "3 4", "99999999999", "0x3", "3,,4"}) {
    EXPECT_EQ(RankList::parse(wrong).error().code, ErrorCode::kInvalid) << wrong;
  }
}

TEST(DurationFlag, RefusesABareNumberAndSaysWhatWasMeant) {
  Arguments arguments;
  arguments.set("timeout", {"30s"});
  EXPECT_EQ(**duration_flag(arguments, "timeout"), Duration::seconds(30));
  arguments.set("timeout", {"30"});
  const auto wrong = duration_flag(arguments, "timeout");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("30s"), std::string::npos) << wrong.error().message;
  EXPECT_FALSE(duration_flag(arguments, "other")->has_value());
}

TEST(Announcer, SaysEachChangeOnAPipe) {
  Announcer announcer(two_hosts(), {});
  EXPECT_EQ(
      announcer.on_event(event(EventKind::kHostReady, "v1: worker is connected", Severity::kInfo, "v1"), Instant()),
      "2023-11-14T22:13:20.120Z host.ready v1: worker is connected\n");
  EXPECT_EQ(announcer.on_event(event(EventKind::kHostLost, "v2: gone", Severity::kError, "v2"), Instant()),
            "2023-11-14T22:13:20.120Z error host.lost v2: gone\n");
}

TEST(Announcer, SaysOnceWhatGangsOfOneRankDoAlike) {
  JobSpec spec = two_hosts();
  spec.meshes.front().dims = {{"host", 2}, {"gpu", 4}};
  spec.meshes.front().gang.scope = GangScope::kEach;
  const std::uint32_t gangs = spec.meshes.front().gangs();
  ASSERT_GT(gangs, 2U);
  Announcer announcer(spec, {});
  const auto gang = [&](EventKind kind, std::uint32_t number, const std::string& change,
                        std::int64_t milliseconds = 0) {
    JobEvent one = event(kind, text("trainer: gang ", number, ' ', change));
    one.mesh = "trainer";
    one.time.nanoseconds_since_epoch += milliseconds * 1'000'000;
    return one;
  };
  for (std::uint32_t g = 0; g < gangs; ++g) {
    EXPECT_EQ(announcer.on_event(gang(EventKind::kGangStarting, g, "is starting, generation 1"), Instant()), "");
  }
  EXPECT_EQ(announcer.on_event(gang(EventKind::kGangRunning, 1, "is running"), Instant()), "");
  EXPECT_EQ(announcer.due(), Instant() + EventFolder::kWindow);
  EXPECT_EQ(announcer.take_due(Instant()), "");
  EXPECT_EQ(announcer.take_due(announcer.due()),
            text("2023-11-14T22:13:20.120Z gang.starting trainer: all ", gangs, " gangs are starting, generation 1\n",
                 "2023-11-14T22:13:20.120Z gang.running trainer: gang 1 is running\n"));
  EXPECT_EQ(announcer.due(), Instant::never());
  // Too late for the first of them; and a failure is said at once, behind all that was before it.
  for (const std::uint32_t g : {0U, 2U}) {
    EXPECT_EQ(announcer.on_event(gang(EventKind::kGangRunning, g, "is running"), Instant()), "");
  }
  EXPECT_EQ(announcer.on_event(gang(EventKind::kGangRunning, 1, "is running", 101), Instant()),
            "2023-11-14T22:13:20.120Z gang.running trainer: 2 gangs are running\n");
  JobEvent failed = gang(EventKind::kGangFailed, 0, "failed", 102);
  failed.severity = Severity::kWarning;
  EXPECT_EQ(announcer.on_event(failed, Instant()),
            "2023-11-14T22:13:20.221Z gang.running trainer: gang 1 is running\n"
            "2023-11-14T22:13:20.222Z warning gang.failed trainer: gang 0 failed\n");
}

TEST(Announcer, SaysOnceWhatManyHostsDoAlike) {
  JobSpec spec = two_hosts();
  for (const std::uint32_t hosts : {32U, 1'000U}) {
    spec.meshes.front().dims = {{"host", hosts}, {"gpu", 4}};
    const bool many = hosts > EventFolder::kManyHosts;
    for (const bool live : {false, true}) {
      Announcer announcer(spec, {.err_live = live});
      std::string said;
      for (std::uint32_t host = 0; host < hosts; ++host) {
        const std::string name = text('v', host + 1);
        said += announcer.on_event(event(EventKind::kHostReady, name + ": ready", Severity::kInfo, name), Instant());
        said += announcer.on_event(event(EventKind::kHostSuspect, name + ": silent", Severity::kWarning, name), {});
      }
      if (many) {
        EXPECT_EQ(said, "");
        EXPECT_EQ(announcer.due(), Instant() + EventFolder::kHostsWindow);
        const std::string ready = live ? "" : "2023-11-14T22:13:20.120Z host.ready 1000 hosts are ready\n";
        const std::string silent = live ? "22:13:20 ! " : "2023-11-14T22:13:20.120Z warning host.suspect ";
        EXPECT_EQ(announcer.take_due(announcer.due()), ready + silent + "1000 hosts are silent; nothing is stopped\n");
      } else {
        EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), live ? hosts : 2 * hosts) << "each has its line";
      }
    }
  }
}

TEST(Announcer, OnATerminalSaysWhatMattersAndKeepsProgress) {
  Announcer announcer(two_hosts(), {.err_live = true});
  EXPECT_EQ(announcer.progress(Duration::seconds(2)), " starting  hosts 0/2  waiting for v1, v2 (2s)");
  EXPECT_EQ(
      announcer.on_event(event(EventKind::kHostReady, "v1: worker is connected", Severity::kInfo, "v1"), Instant()),
      "");
  EXPECT_EQ(announcer.progress(Duration::seconds(3)), " starting  hosts 1/2  waiting for v2 (3s)");
  EXPECT_EQ(announcer.on_event(event(EventKind::kHostLost, "v2: gone", Severity::kError, "v2"), Instant()),
            "22:13:20 ✗ v2: gone\n");
  EXPECT_EQ(announcer.progress(Duration::seconds(4)).rfind(" starting  hosts 1/2  waiting for the ranks of ", 0), 0U)
      << "nobody waits for v2, and it is wanted all the same";
  EXPECT_EQ(announcer.on_event(event(EventKind::kJobRunning, "hello-0001: every mesh is ready"), Instant()),
            "22:13:20 ✓ hello-0001: every mesh is ready\n");
  EXPECT_EQ(announcer.progress(Duration::seconds(9)), "");
}

TEST(Announcer, QuietSaysErrorsOnly) {
  Announcer announcer(two_hosts(), {.quiet = true});
  EXPECT_EQ(announcer.on_event(event(EventKind::kHostReady, "x"), Instant()), "");
  EXPECT_EQ(announcer.on_event(event(EventKind::kJobStopping, "x", Severity::kWarning), Instant()), "");
  EXPECT_NE(announcer.on_event(event(EventKind::kHostLost, "x", Severity::kError), Instant()), "");
}

TEST(Announcer, SaysOneCheckpointOfAGangInTenSeconds) {
  Announcer announcer(two_hosts(), {});
  JobEvent committed = event(EventKind::kCheckpointCommitted, "trainer: gang 0 has committed step 7");
  committed.mesh = "trainer";
  committed.details = {{"gang", "0"}, {"step", "7"}};
  const auto after = [&](std::int64_t seconds) {
    JobEvent later = committed;
    later.time.nanoseconds_since_epoch += seconds * 1'000'000'000;
    return announcer.on_event(later, Instant());
  };
  EXPECT_NE(announcer.on_event(committed, Instant()), "");
  EXPECT_EQ(after(0), "");
  EXPECT_EQ(after(9), "");
  EXPECT_NE(after(10), "");
  EXPECT_EQ(after(19), "") << "counted from what was said last";
  EXPECT_NE(after(-1), "") << "the clock was set back";
  EXPECT_EQ(after(0), "");
  committed.details = {{"gang", "1"}, {"step", "7"}};
  EXPECT_NE(announcer.on_event(committed, Instant()), "") << "of another gang";
  JobEvent other = event(EventKind::kGangFailed, "it failed");
  other.mesh = "trainer";
  EXPECT_NE(announcer.on_event(other, Instant()), "");
  EXPECT_NE(announcer.on_event(other, Instant()), "");
}

TEST(Announcer, LetsNoEscapeThrough) {
  EXPECT_EQ(plain_event_line(event(EventKind::kHostLost, "\x1b[2J")), "2023-11-14T22:13:20.120Z host.lost \\x1b[2J\n");
}

TEST(ResultText, NamesTheRootCauseAndWhatToTypeNext) {
  EXPECT_EQ(
      result_text(failed_rank(), {.job_id = "hello-0001", .log_directory = "/s/jobs/hello-0001/logs", .spec = ""}),
      " result     failed (exit 7)   4.1s\n"
      " root cause trainer/11 on v2, pid 4711: exit code 7\n"
      " rule       restart.max 0: fail\n"
      "   │ Traceback\n"
      "   │ ValueError: \\x1b[31mboom\n"
      "            the first of 4: 3 later ends of the same gang follow from it\n"
      " log        /s/jobs/hello-0001/logs/trainer/11.1.err\n"
      " try        monarch logs hello-0001 --mesh trainer --rank 11\n");
}

TEST(ResultText, GivesBothFormsWhereThereAreGangs) {
  Verdict verdict = failed_rank();
  verdict.cause.gang = 1;
  verdict.cause.gang_rank = 3;
  verdict.cause.generation = 2;
  EXPECT_EQ(cause_text(verdict.cause), "trainer/11 (gang 1, RANK 3) on v2, pid 4711: exit code 7");
}

TEST(ResultText, OfASuccessIsOneLineAndNothingIfQuiet) {
  Verdict verdict;
  verdict.outcome = Outcome::kSucceeded;
  verdict.exit_code = 0;
  verdict.started = {1'000'000'000};
  verdict.ended = {2'000'000'000};
  ResultPlace place{.job_id = "a-0001", .log_directory = "/l", .spec = ""};
  EXPECT_EQ(result_text(verdict, place), " result     succeeded (exit 0)   1s\n");
  place.quiet = true;
  EXPECT_EQ(result_text(verdict, place), "");
  verdict.left_behind = {"v2"};
  EXPECT_NE(result_text(verdict, place), "") << "what may be left behind is never kept quiet";
}

TEST(ResultText, HasALineForEachHostThatDidNotStartAndACommandForEachKindOfFailure) {
  Verdict verdict;
  verdict.exit_code = 69;
  verdict.cause.kind = CauseKind::kStart;
  verdict.cause.host = "n1";
  verdict.cause.summary = "2 hosts did not start: n1 (timeout), n22 (refused)";
  verdict.cause.rule = "host does not start: a spare or a cold host; none is left: fail";
  const auto refused = [](std::string host) {
    return HostFailure{.host = std::move(host),
                       .kind = "refused",
                       .phase = "connect",
                       .elapsed_milliseconds = 120,
                       .message = "connecting to 10.0.0.7 port 22: \x1b[31mno",
                       .again = "ssh -v 10.0.0.7"};
  };
  verdict.failed_hosts = {{.host = "n1",
                           .kind = "timeout",
                           .phase = "connect",
                           .elapsed_milliseconds = 10'000,
                           .message = "no answer",
                           .again = ""},
                          refused("n22"),
                          refused("n23")};
  verdict.failed_hosts_untold = 4;
  EXPECT_EQ(result_text(verdict, {.job_id = "a-0001", .log_directory = "/l", .spec = ""}),
            " result     failed (exit 69)   \n"
            " root cause 2 hosts did not start: n1 (timeout), n22 (refused)\n"
            " rule       host does not start: a spare or a cold host; none is left: fail\n"
            " hosts      7 have failed to start:\n"
            "   │ HOST  WHAT     WHILE    AFTER  SAYS\n"
            "   │ n1    timeout  connect  10s    no answer\n"
            "   │ n22   refused  connect  120ms  connecting to 10.0.0.7 port 22: \\x1b[31mno\n"
            "   │ n23   refused  connect  120ms  connecting to 10.0.0.7 port 22: \\x1b[31mno\n"
            "   │ and 4 more: monarch events tells of each\n"
            " to see     ssh -v 10.0.0.7\n"
            " log        /l\n"
            " try        monarch events a-0001   |   monarch status a-0001\n");
  verdict.cause.kind = CauseKind::kRank;
  EXPECT_EQ(result_text(verdict, {.job_id = "a-0001", .log_directory = "/l", .spec = ""}).find(" hosts  "),
            std::string::npos)
      << "another cause is not theirs";
}

TEST(RankHosts, FollowWhatEventsSayOfReplacedHosts) {
  JobSpec spec;
  spec.launch = LaunchLocal{.hosts = 4};
  spec.meshes.emplace_back();
  spec.meshes[0].name = "m";
  spec.meshes[0].dims = {{"host", 2}, {"gpu", 2}};
  spec.meshes[0].per_host_dims = 1;
  RankHosts hosts(spec);
  EXPECT_EQ(hosts.host_of({MeshId(0), Rank(3)}), "v2");
  JobEvent first = event(EventKind::kHostReplaced, "v3 takes the place of v2", Severity::kWarning, "v3");
  first.details = {{"replaces", "v2"}, {"slot", "1"}};
  JobEvent second = event(EventKind::kHostReplaced, "v4 takes the place of v3", Severity::kWarning, "v4");
  second.details = {{"replaces", "v3"}, {"slot", "1"}};
  for (int twice = 0; twice < 2; ++twice) hosts.on_events({first, second});
  EXPECT_EQ(hosts.host_of({MeshId(0), Rank(2)}), "v4");
  EXPECT_EQ(hosts.host_of({MeshId(0), Rank(1)}), "v1");
  EXPECT_EQ(hosts.host_of({MeshId(0), Rank(9)}), "?");
}

TEST(StatusText, SaysWhereItsFactsComeFrom) {
  JobStatus status;
  status.job_id = "hello-0001";
  status.phase = "running";
  status.term = Term(1);
  status.meshes.push_back(
      {.name = "m",
       .dims = {{"host", 1}, {"gpu", 2}},
       .phase = "running",
       .ranks = {{.rank = 0, .phase = "running", .host = "v1", .generation = 1, .pid = 5, .end = ""}}});
  status.hosts.push_back({.name = "v1", .phase = "ready", .role = "rank"});
  EXPECT_EQ(status_text(status, false),
            "job hello-0001   running   term 1   no supervisor answers; this is what its journal says\n"
            "\nmesh m   host=1 × gpu=2   running\n"
            "  RANK  HOST  PHASE    PID  GENERATION  END\n"
            "  0     v1    running  5    1           -\n"
            "\n  HOST  PHASE  ROLE  KEEPER  DAEMON STARTS  SILENT  ROUND TRIP\n"
            "  v1    ready  rank  -       -              -       -\n");
}

TEST(StatusText, CountsIdleSlotsAndNamesWhoHasTheOthers) {
  JobStatus status;
  MeshStatus mesh{.name = "procs", .dims = {{"slot", 5}}, .phase = "ready"};
  mesh.ranks = {{.rank = 0, .phase = "running", .host = "v1", .generation = 1, .pid = 5}};
  for (std::uint32_t i = 1; i < 5; ++i) mesh.ranks.push_back({.rank = i, .phase = "idle", .host = "v1"});
  EXPECT_EQ(status_text({.meshes = {mesh}}, false).find("trust"), std::string::npos);
  mesh.trusts_job = true;
  EXPECT_NE(status_text({.meshes = {mesh}}, false).find("\nmesh procs   slot=5   ready   trust: job\n"),
            std::string::npos);
  mesh.claims = {{.claim = 7, .name = "workers", .host = "v1", .ranks = {0}}};
  status.meshes = {mesh};
  EXPECT_NE(status_text(status, false)
                .find("  RANK  HOST  PHASE    PID  GENERATION  END\n"
                      "  0     v1    running  5    1           -\n"
                      "  claim 7, workers, of v1: 0\n"
                      "  4 idle: 1-4\n"),
            std::string::npos)
      << status_text(status, false);
}

TEST(StatusText, SaysWhichDrillHasTheJob) {
  JobStatus status;
  status.drill = DrillStatus{.name = "smoke", .since_milliseconds = 12'900, .open = {3}};
  EXPECT_NE(status_text(status, false).find("\ndrill smoke since 12s, fault 3 open\n"), std::string::npos);
  status.drill->open = {3, 4};
  status.drill->stopped = true;
  EXPECT_NE(status_text(status, false).find("\ndrill smoke since 12s, faults 3, 4 open, told to end\n"),
            std::string::npos);
  status.drill->open.clear();
  EXPECT_NE(status_text(status, false).find("\ndrill smoke since 12s, told to end\n"), std::string::npos);
}

TEST(StatusText, CountsWhatAnHonestJobDoesNot) {
  JobStatus status;
  status.counters = {{"control.accepted", 2}, {"control.messages", 90}, {"bulk.handshaken", 2}};
  EXPECT_EQ(status_text(status, false).find("counters"), std::string::npos);
  status.counters.insert(status.counters.end(), {{"control.junk", 3}, {"control.silent", 0}, {"viewers.refused", 1}});
  EXPECT_NE(status_text(status, false).find("\ncounters  control.junk 3   viewers.refused 1\n"), std::string::npos);
}

TEST(StatusText, ShowsWhatRanksSayWhereAnyDoes) {
  JobStatus status;
  status.job_id = "hello-0001";
  status.phase = "running";
  status.term = Term(1);
  status.meshes.push_back({.name = "m",
                           .dims = {{"host", 1}, {"gpu", 3}},
                           .phase = "running",
                           .ranks = {{.rank = 0, .phase = "running", .host = "v1", .generation = 1, .pid = 5},
                                     {.rank = 1, .phase = "running", .host = "v1", .generation = 1, .pid = 6},
                                     {.rank = 2, .phase = "done", .host = "v1", .generation = 1}}});
  RankStatus& speaks = status.meshes[0].ranks[0];
  speaks.ready = true;
  speaks.progress.step = 17;
  speaks.progress.phase = "checkpoint";
  speaks.progress.status = "to /ckpt\x1b[31m";
  speaks.progress.metrics = {{"loss", "2.3"}, {"lr", "1e-4"}};
  speaks.progress_age_milliseconds = 2'134;
  EXPECT_EQ(status_text(status, false),
            "job hello-0001   running   term 1   no supervisor answers; this is what its journal says\n"
            "\nmesh m   host=1 × gpu=3   running\n"
            "  RANK  HOST  PHASE    PID  GENERATION  READY  STEP  IN          METRICS            STATUS            SAID"
            "      END\n"
            "  0     v1    running  5    1           yes    17    checkpoint  loss 2.3, lr 1e-4  to /ckpt\\x1b[31m  "
            "2.1s ago  -\n"
            "  1     v1    running  6    1           no     -     -           -                  -                 -   "
            "      -\n"
            "  2     v1    done     -    1           -      -     -           -                  -                 -   "
            "      -\n"
            "\n  HOST  PHASE  ROLE  KEEPER  DAEMON STARTS  SILENT  ROUND TRIP\n");
  speaks = {.rank = 0, .phase = "running", .host = "v1", .generation = 1, .pid = 5, .ready = true};
  EXPECT_NE(status_text(status, false).find("GENERATION  READY  END"), std::string::npos) << "they differ";
}

TEST(StatusText, NamesGangsThatWereStartedAgainAndHostsThatAreNotUsed) {
  JobStatus status;
  status.meshes.push_back({.name = "m",
                           .phase = "running",
                           .gangs = {{.phase = "running", .generation = 1},
                                     {.phase = "restarting", .generation = 3, .restarts = 3, .failures = 2}},
                           .restart = {.max = 4, .window_milliseconds = 600'000}});
  status.hosts.push_back({.name = "v1", .phase = "ready", .role = "rank"});
  status.hosts.push_back({.name = "v2",
                          .phase = "ready",
                          .role = "rank",
                          .standing = "drained",
                          .standing_because = "drained, asked by monarch drain, pid 7"});
  status.hosts.push_back({.name = "v3", .phase = "ended", .role = "spare", .returns_milliseconds = 29'001});
  status.hosts.push_back({.name = "v4", .phase = "ready", .role = "spare", .standing = "quarantined"});
  status.hosts.push_back({.name = "v5", .phase = "suspect", .role = "rank", .held_milliseconds = 4'000});
  status.hosts.push_back({.name = "v6", .phase = "ready", .role = "spare", .preparation = "unprepared"});
  status.hosts.push_back({.name = "v7", .phase = "ready", .role = "rank", .preparation = "prepared"});
  const std::string shown = status_text(status, false);
  EXPECT_NE(shown.find("\n  gang 1 (restarting) was started again 3 times; restarts that count: 2 of 4 in 10m\n"),
            std::string::npos)
      << shown;
  EXPECT_EQ(shown.find("gang 0"), std::string::npos);
  for (const char* note : {"NOTE\n", "v1    ready    rank   -       -              -       -           -\n",
                           "  drained, asked by monarch drain, pid 7\n", "  may be launched again in 30s\n",
                           "  quarantined\n", "  silent with many others: not given up within 4s\n", "  not prepared\n",
                           "v7    ready    rank   -       -              -       -           -\n"}) {
    EXPECT_NE(shown.find(note), std::string::npos) << note << "\n" << shown;
  }
  status.meshes[0].restart.max.reset();
  EXPECT_NE(status_text(status, false).find("again 3 times; restarts that count: 2, unlimited, in 10m\n"),
            std::string::npos);
}

TEST(StatusText, NamesTheNewestCheckpointOfAMeshsGangs) {
  JobStatus status;
  status.meshes.push_back(
      {.name = "m", .phase = "running", .committed = {{.gang = 0, .step = 1'200, .generation = 2}}});
  EXPECT_NE(status_text(status, false).find("\n  committed step 1200 (generation 2)\n"), std::string::npos);
  status.meshes[0].committed.push_back({.gang = 1, .step = 900, .generation = 1});
  EXPECT_NE(status_text(status, false)
                .find("\n  committed gang 0 step 1200 (generation 2), gang 1 step 900 (generation 1)\n"),
            std::string::npos);
}

}  // namespace monarch
