// Hosts that do not start: who takes their place, and what the job says when nobody can.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "supervisor/launch/local/local_spec.h"
#include "supervisor/launch/ssh/ssh_spec.h"
#include "tests/supervisor/core/fixtures.h"
#include "transport/base/limits.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::exited;
using fixtures::job_of;

JobSpec job_with(std::uint32_t need, std::uint32_t spares, std::uint32_t pool) {
  JobSpec spec = job_of(need, 1);
  spec.launch = LaunchLocal{.hosts = pool, .spares = spares};
  return spec;
}

LaunchFailure failure_of(LaunchFailureKind kind) {
  return {.kind = kind,
          .phase = "connect",
          .elapsed = Duration::milliseconds(120),
          .message = "connecting to 10.0.0.7 port 22: no",
          .words = {},
          .again = "ssh alice@10.0.0.7"};
}

std::vector<Action> fail(Driver& job, std::uint32_t host, LaunchFailureKind kind = LaunchFailureKind::kRefused) {
  return job.step(WorkerLaunchFailed{.host = HostId(host), .failure = failure_of(kind)});
}

std::vector<std::uint32_t> launched(const Driver& job) {
  std::vector<std::uint32_t> hosts;
  for (const Action& action : job.actions_of<LaunchWorker>()) {
    hosts.push_back(std::get<LaunchWorker>(action).host.value());
  }
  return hosts;
}

std::vector<JobEvent> events_of(const Driver& job, EventKind kind) {
  std::vector<JobEvent> events;
  for (const Action& action : job.actions_of<EmitEvent>()) {
    const JobEvent& event = std::get<EmitEvent>(action).event;
    if (event.kind == kind) events.push_back(event);
  }
  return events;
}

std::vector<std::uint32_t> started_on(const Driver& job) {
  std::vector<std::uint32_t> hosts;
  for (const Action& action : job.actions_of<SendStart>()) hosts.push_back(std::get<SendStart>(action).host.value());
  return hosts;
}

TEST(Slots, AreFilledAtFirstAndColdHostsStayCold) {
  Driver job(job_with(2, 1, 5));
  job.begin();
  EXPECT_EQ(launched(job), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(events_of(job, EventKind::kJobStarting).at(0).message, "test-0001: starting on 3 of 5 hosts");
}

TEST(Slots, GoToAConnectedSpareWhenTheirHostDoesNotStart) {
  Driver job(job_with(2, 1, 3));
  job.begin();
  job.join(0);
  job.join(2);
  const auto actions = fail(job, 1);
  EXPECT_EQ(Driver::count<DestroyWorker>(actions), 1U) << "something of it may run all the same";
  const auto failed = events_of(job, EventKind::kHostFailed);
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0].message, "v2: refused (connect, after 120ms): connecting to 10.0.0.7 port 22: no");
  EXPECT_EQ(failed[0].severity, Severity::kWarning);
  const auto replaced = events_of(job, EventKind::kHostReplaced);
  ASSERT_EQ(replaced.size(), 1U);
  EXPECT_EQ(replaced[0].message, "v3 takes the place of v2");
  job.give_ports();
  EXPECT_EQ(started_on(job), (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(job.variable(1, "NODE_RANK"), "1");
  EXPECT_EQ(job.variable(1, "MONARCH_HOST"), "v3");
  EXPECT_EQ(job.variable(0, "GROUP_WORLD_SIZE"), "2");
}

TEST(Slots, GoToAColdHostWhenThereIsNoSpareAndNothingStartsBeforeItHasJoined) {
  JobSpec spec = job_with(2, 0, 3);
  spec.meshes[0].env["FIRST"] = "$(mesh.trainer.host)";
  Driver job(spec);
  job.begin();
  job.join(1);
  fail(job, 0);
  EXPECT_EQ(launched(job), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(events_of(job, EventKind::kHostReplaced).at(0).message,
            "v3 takes the place of v1; its worker is launched now");
  EXPECT_TRUE(job.actions_of<SendReserve>().empty());
  job.join(2);
  job.give_ports();
  EXPECT_EQ(started_on(job), (std::vector<std::uint32_t>{2, 1}));
  for (const char* name : {"MASTER_ADDR", "FIRST"}) EXPECT_EQ(job.variable(1, name), "127.0.1.3") << name;
  EXPECT_EQ(job.core.placement().host_of({MeshId(0), Rank(0)}), HostId(2));
  EXPECT_FALSE(job.core.placement().holds_ranks(HostId(0)));
}

TEST(Slots, GoToASpareThatIsOnItsWayBeforeAColdHostAndSparesAreReplacedToo) {
  Driver job(job_with(1, 1, 4));
  job.begin();
  fail(job, 0);
  EXPECT_EQ(job.core.state().slots[0], HostId(1));
  EXPECT_EQ(launched(job), (std::vector<std::uint32_t>{0, 1, 2})) << "v3 is the spare now";
  fail(job, 2);
  EXPECT_EQ(launched(job), (std::vector<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(job.core.state().slots[0], HostId(1));
  EXPECT_FALSE(job.core.state().verdict.has_value());
}

TEST(Slots, MoveAgainWhenTheReplacementFails) {
  Driver job(job_with(1, 0, 3));
  job.begin();
  fail(job, 0);
  fail(job, 1);
  job.join(2);
  job.give_ports();
  EXPECT_EQ(started_on(job), (std::vector<std::uint32_t>{2}));
}

TEST(Slots, WhatAllHostsFailedOfAlikeIsSaidOnce) {
  Driver job(job_with(2, 0, 2));
  job.begin();
  fail(job, 0, LaunchFailureKind::kOther);
  fail(job, 1, LaunchFailureKind::kOther);
  job.end_hosts();
  ASSERT_NE(job.verdict(), nullptr);
  EXPECT_EQ(job.verdict()->reason, "2 hosts did not start (v1, v2): connecting to 10.0.0.7 port 22: no");
}

TEST(Slots, WithNoHostLeftTheJobFailsOnceEveryHostIsKnownAndNamesAllThatFailed) {
  Driver job(job_with(3, 1, 4));
  job.begin();
  fail(job, 3, LaunchFailureKind::kName);
  fail(job, 0, LaunchFailureKind::kTimeout);
  EXPECT_EQ(events_of(job, EventKind::kHostFailed).at(1).severity, Severity::kError);
  EXPECT_FALSE(job.core.state().verdict.has_value()) << "of v2 and v3 it is not known whether they start";
  fail(job, 2);
  job.join(1);
  EXPECT_TRUE(job.actions_of<SendReserve>().empty());
  job.end_hosts();
  ASSERT_NE(job.verdict(), nullptr);
  EXPECT_EQ(job.verdict()->exit_code, 69);
  EXPECT_EQ(job.verdict()->cause.kind, CauseKind::kStart);
  EXPECT_EQ(job.verdict()->reason, "3 hosts did not start: v1 (timeout), v3 (refused), v4 (name not known)");
  ASSERT_EQ(job.verdict()->failed_hosts.size(), 3U);
  const HostFailure& first = job.verdict()->failed_hosts[0];
  EXPECT_EQ(first.host, "v1");
  EXPECT_EQ(first.kind, "timeout");
  EXPECT_EQ(first.phase, "connect");
  EXPECT_EQ(first.elapsed_milliseconds, 120);
  EXPECT_EQ(first.again, "ssh alice@10.0.0.7");
  EXPECT_EQ(job.verdict()->failed_hosts[2].kind, "name not known");
}

TEST(Slots, TheExitCodeIs3IfNothingButHostKeysWasRefused) {
  for (const bool only : {true, false}) {
    Driver job(job_with(2, 0, 2));
    job.begin();
    fail(job, 0, LaunchFailureKind::kHostKeyChanged);
    fail(job, 1, only ? LaunchFailureKind::kHostKeyUnknown : LaunchFailureKind::kRefused);
    EXPECT_EQ(job.core.state().verdict->exit_code, only ? 3 : 69);
  }
}

TEST(Slots, AHostOnWhichNoWorkerStartsIsReplacedWhileAnotherCanBeInTime) {
  Driver job(job_with(1, 0, 2));
  job.begin();
  EXPECT_EQ(job.core.next_deadline(), job.now + Duration::seconds(100)) << "of two minutes";
  const auto actions = job.pass_deadline();
  EXPECT_EQ(Driver::count<DestroyWorker>(actions), 1U);
  EXPECT_EQ(Driver::count<LaunchWorker>(actions), 1U);
  EXPECT_EQ(job.core.state().slots[0], HostId(1));
  EXPECT_EQ(events_of(job, EventKind::kHostFailed).at(0).message,
            "v1: timeout (launch, after 1m 40s): no worker has started there, and another host can be had");
  job.join(1);
  EXPECT_FALSE(job.core.state().verdict.has_value());
}

TEST(Slots, OfHostsThatAreAllLateNoMoreAreGivenUpThanThereAreOthers) {
  for (const bool joined : {true, false}) {
    Driver job(job_with(4, 1, 5));
    job.begin();
    if (joined) job.join(4);
    const auto actions = job.pass_deadline();
    EXPECT_EQ(Driver::count<DestroyWorker>(actions), joined ? 1U : 0U) << "a spare that is late itself is none";
    for (const std::uint32_t host : {1U, 2U, 3U}) job.join(host);
    if (!joined) job.join(0);
    EXPECT_FALSE(job.core.state().verdict.has_value());
    EXPECT_FALSE(job.actions_of<SendReserve>().empty()) << "they all came";
  }
}

TEST(Slots, AHostInWhosePlaceNoneCanComeHasAllOfTheStartTimeout) {
  Driver job(job_with(1, 0, 1));
  job.begin();
  EXPECT_EQ(Driver::count<DestroyWorker>(job.pass_deadline()), 0U);
  EXPECT_TRUE(events_of(job, EventKind::kHostFailed).empty());
  EXPECT_EQ(job.core.next_deadline(), job.now + Duration::seconds(20));
  job.join(0);
  EXPECT_FALSE(job.core.state().verdict.has_value());
}

// While the job runs there is time: it has all of start_timeout, and is given up for one that has to be launched itself
// only then.
TEST(Slots, ALateSpareIsGivenUpOnceItHasHadItsTimeAndThereIsAnother) {
  for (const std::uint32_t pool : {2U, 3U}) {
    Driver job(job_with(1, 1, pool));
    job.run_all();
    EXPECT_EQ(Driver::count<DestroyWorker>(job.pass_deadline()), 0U);
    const auto actions = job.pass_deadline();
    EXPECT_EQ(Driver::count<DestroyWorker>(actions), pool - 2);
  }
}

TEST(Slots, AWorkerThatDoesNotCallBackIsAHostThatDoesNotStart) {
  Driver job(job_with(1, 0, 2));
  job.begin();
  job.step(WorkerLaunched{.host = HostId(0),
                          .worker = {.reply = {.public_key = "key", .keeper_pid = 100},
                                     .control_endpoint = "tcp://10.0.0.1:4711",
                                     .again = "ssh v1 nc -z 10.0.0.1 4711"}});
  EXPECT_EQ(job.core.next_deadline(), job.now + Duration::seconds(20));
  job.step(HostSilent{.host = HostId(0), .silence = Duration::seconds(5)});
  EXPECT_TRUE(events_of(job, EventKind::kHostLost).empty());
  const auto actions = job.pass_deadline();
  EXPECT_EQ(Driver::count<DestroyWorker>(actions), 1U);
  EXPECT_EQ(events_of(job, EventKind::kHostFailed).at(0).message,
            "v1: call-back blocked (call back, after 20s): its worker runs, and has not reached "
            "tcp://10.0.0.1:4711 within 20s");
  EXPECT_EQ(job.core.state().slots[0], HostId(1));
  job.step(WorkerJoined{.host = HostId(0), .incarnation = 1});
  EXPECT_EQ(job.host(0).phase, HostPhase::kDestroying) << "too late";
}

TEST(Slots, AWorkerThatDoesNotCallBackIsToldOfWithHowLateTheSupervisorWas) {
  Driver job(job_with(1, 0, 1));
  job.begin();
  job.step(WorkerLaunched{
      .host = HostId(0),
      .worker = {.reply = {.public_key = "key", .keeper_pid = 100}, .control_endpoint = "tcp://10.0.0.1:4711"}});
  job.step(StoodStill{Duration::milliseconds(7'300)}, Duration::milliseconds(7'300));
  EXPECT_EQ(job.core.next_deadline(), job.now + Duration::seconds(20)) << "it has all of its time still";
  job.pass_deadline();
  EXPECT_EQ(events_of(job, EventKind::kHostFailed).at(0).message,
            "v1: call-back blocked (call back, after 27.3s): its worker runs, and has not reached "
            "tcp://10.0.0.1:4711 within 20s (this machine was late by 7.3s meanwhile, which does not count)");
}

TEST(Slots, AHostThatDialsInVainIsToldOfTheWayThroughSsh) {
  for (const ControlVia via : {ControlVia::kDirect, ControlVia::kSsh}) {
    JobSpec spec = job_with(1, 0, 1);
    spec.launch = LaunchSsh{.hosts = {{.name = "a"}}};
    spec.control.via = via;
    Driver job(spec);
    job.begin();
    job.step(WorkerLaunched{
        .host = HostId(0),
        .worker = {.reply = {.public_key = "key", .keeper_pid = 100}, .control_endpoint = "tcp://10.0.0.1:4711"}});
    job.pass_deadline();
    const bool told =
        events_of(job, EventKind::kHostFailed).at(0).message.find("`control: {via: ssh}`") != std::string::npos;
    EXPECT_EQ(told, via == ControlVia::kDirect);
  }
}

TEST(Slots, AShortStartTimeoutIsTheDeadlineOfTheCallBack) {
  JobSpec spec = job_with(1, 0, 1);
  spec.start_timeout = Duration::seconds(7);
  Driver job(spec);
  job.begin();
  job.step(WorkerLaunched{.host = HostId(0), .worker = {.reply = {.public_key = "key", .keeper_pid = 100}}});
  EXPECT_LE(job.core.next_deadline(), job.now + Duration::seconds(7));
}

TEST(Slots, AHostThatIsLostBeforeItsGangStartsIsReplacedAndItsReservationsAreVoid) {
  Driver job(job_with(2, 1, 3));
  job.begin();
  for (std::uint32_t host = 0; host < 3; ++host) job.join(host);
  const auto reserve = job.actions_of<SendReserve>();
  ASSERT_EQ(reserve.size(), 1U);
  const Generation before = std::get<SendReserve>(reserve[0]).message.generation;
  job.step(WorkerEnded{.host = HostId(1), .how = "killed by SIGKILL", .orderly = false});
  Reserved late{.mesh = MeshId(0), .gang = GangId(0), .generation = before};
  late.ports = {29'500};
  EXPECT_TRUE(job.step(PortsReserved{.host = HostId(0), .reserved = late}).empty());
  EXPECT_EQ(job.gang(0).phase, GangPhase::kReserving);
  EXPECT_GT(job.crew(0).generation, before);
  late.generation = job.crew(0).generation;
  job.step(PortsReserved{.host = HostId(0), .reserved = late});
  EXPECT_EQ(started_on(job), (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(job.variable(0, "MONARCH_GENERATION"), "2");
  EXPECT_EQ(job.variable(0, "TORCHELASTIC_RESTART_COUNT"), "0") << "nothing of it had run";
  EXPECT_EQ(job.variable(0, "MONARCH_RESTART_CAUSE"), "unset");
}

TEST(Slots, OfAGangThatHasStartedStayWhereTheyAre) {
  JobSpec spec = job_with(1, 1, 3);
  spec.meshes[0].ready.kind = ReadyKind::kNotify;
  Driver job(spec);
  job.run_all();
  job.join(1);
  ASSERT_EQ(job.core.state().phase, JobPhase::kStarting);
  job.step(HostSilent{.host = HostId(0), .silence = Duration::seconds(5)});
  EXPECT_TRUE(events_of(job, EventKind::kHostReplaced).empty());
  EXPECT_EQ(job.core.state().slots[0], HostId(0));
  job.end_hosts();
  ASSERT_NE(job.verdict(), nullptr);
  EXPECT_EQ(job.verdict()->exit_code, 92);
}

TEST(Slots, ASpareThatDidNotStartIsToldOfAJobThatSucceeds) {
  Driver job(job_with(1, 1, 2));
  job.begin();
  fail(job, 1);
  job.join(0);
  job.give_ports();
  job.report({MeshId(0), Rank(0)}, RankPhase::kRunning);
  job.ended(0, exited(0));
  job.end_hosts();
  ASSERT_NE(job.verdict(), nullptr);
  EXPECT_EQ(job.verdict()->exit_code, 0);
  ASSERT_EQ(job.verdict()->failed_hosts.size(), 1U);
  EXPECT_EQ(job.verdict()->failed_hosts[0].host, "v2");
}

TEST(Slots, FailuresBeyondARecordAreCounted) {
  Driver job(job_with(120, 0, 120));
  job.begin();
  for (std::uint32_t host = 0; host < 120; ++host) {
    LaunchFailure failure = failure_of(LaunchFailureKind::kTimeout);
    failure.message = std::string(1'000, 'x');
    job.step(WorkerLaunchFailed{.host = HostId(host), .failure = failure});
  }
  job.end_hosts();
  ASSERT_NE(job.verdict(), nullptr);
  EXPECT_GT(job.verdict()->failed_hosts.size(), 8U);
  EXPECT_EQ(job.verdict()->failed_hosts.size() + job.verdict()->failed_hosts_untold, 120U);
  std::size_t bytes = 0;
  for (const HostFailure& told : job.verdict()->failed_hosts) bytes += told.message.size() + told.again.size();
  EXPECT_LT(bytes, limits::kJournalPayloadBytes / 2);
}

TEST(Slots, OfHostsWithoutAnAddressHaveWhatTheirWorkerTells) {
  JobSpec spec = job_of(2, 1);
  LaunchSsh ssh;
  for (const char* name : {"n1", "n2"}) {
    ssh.hosts.emplace_back();
    ssh.hosts.back().name = name;
  }
  spec.launch = ssh;
  Driver job(spec);
  job.begin();
  for (std::uint32_t host = 0; host < 2; ++host) {
    job.step(WorkerLaunched{.host = HostId(host),
                            .worker = {.reply = {.public_key = "key", .keeper_pid = 100, .host_address = "10.0.0.7"}}});
    job.step(WorkerJoined{.host = HostId(host), .incarnation = 1});
  }
  Driver other(spec);
  other.core.restore(job.core.state());
  EXPECT_EQ(other.core.hosts()[1].address, "10.0.0.7");
  job.give_ports();
  EXPECT_EQ(job.variable(1, "MASTER_ADDR"), "10.0.0.7");
}

TEST(Slots, OnADrainedHostThatNobodyReplacesFailTheJobInItsWords) {
  Driver job(job_with(3, 0, 3));
  job.begin();
  job.join(0);
  job.join(1);
  job.step(OperatorAsked{.wish = OperatorWish::kDrain, .hosts = {HostId(2)}, .who = "alice"});
  EXPECT_FALSE(job.core.state().verdict.has_value());
  job.join(2);
  ASSERT_TRUE(job.core.state().verdict.has_value());
  EXPECT_EQ(job.core.state().verdict->exit_code, 69);
  EXPECT_EQ(job.core.state().verdict->cause.host, "v3");
  EXPECT_EQ(job.core.state().verdict->reason, "host v3 is drained, asked by alice, and no other host is left");
}

TEST(Slots, GoBackToTheirOwnHostThatEndedWhileItWasDrained) {
  Driver job(job_with(2, 0, 2));
  job.begin();
  job.join(1);
  job.step(OperatorAsked{.wish = OperatorWish::kDrain, .hosts = {HostId(1)}, .who = "alice"});
  job.step(WorkerEnded{.host = HostId(1), .how = "killed by SIGKILL"});
  job.step(OperatorAsked{.wish = OperatorWish::kUndrain, .hosts = {HostId(1)}, .who = "alice"});
  EXPECT_EQ(launched(job), (std::vector<std::uint32_t>{0, 1, 1}));
  job.join(0);
  job.join(1);
  job.give_ports();
  EXPECT_EQ(started_on(job), (std::vector<std::uint32_t>{0, 1}));
}

TEST(Slots, AreRestoredFromASnapshot) {
  Driver job(job_with(2, 1, 3));
  job.begin();
  job.join(0);
  job.join(2);
  fail(job, 1);
  Driver other(job_with(2, 1, 3));
  other.core.restore(job.core.state());
  EXPECT_EQ(other.core.placement().host_of({MeshId(0), Rank(1)}), HostId(2));
  other.now = job.now;
  const Reserved held{.mesh = MeshId(0), .gang = GangId(0), .generation = job.crew(0).generation, .ports = {1}};
  other.step(PortsReserved{.host = HostId(0), .reserved = held});
  EXPECT_EQ(started_on(other), (std::vector<std::uint32_t>{0, 2}));
}

}  // namespace
}  // namespace monarch
