// Hosts that have not what the ranks of their slot need: another takes the slot, and a job that nobody can serve names
// them all.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "supervisor/launch/local/local_spec.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::job_of;

JobSpec job_with(std::uint32_t need, std::uint32_t spares, std::uint32_t pool) {
  JobSpec spec = job_of(need, 1);
  spec.launch = LaunchLocal{.hosts = pool, .spares = spares};
  return spec;
}

// Each host is asked for a port that the spec fixes.
JobSpec job_with_port(std::uint32_t need, std::uint32_t spares, std::uint32_t pool) {
  JobSpec spec = job_with(need, spares, pool);
  spec.meshes[0].ports.push_back({.name = "http", .fixed = std::uint16_t{8'080}});
  return spec;
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

// What the host answers to what it was asked last.
PortsReserved refusal(const Driver& job, std::uint32_t host, const std::string& why) {
  PortsReserved refused{.host = HostId(host), .reserved = {}};
  for (const Action& action : job.actions_of<SendReserve>()) {
    const auto& sent = std::get<SendReserve>(action);
    if (sent.host != HostId(host)) continue;
    const Reserve& asked = sent.message;
    refused.reserved = {.mesh = asked.mesh, .gang = asked.gang, .generation = asked.generation, .error = why};
  }
  return refused;
}

PortsReserved grant(const Driver& job, std::uint32_t host) {
  PortsReserved granted = refusal(job, host, "");
  for (const Action& action : job.actions_of<SendReserve>()) {
    const auto& sent = std::get<SendReserve>(action);
    if (sent.host == HostId(host)) granted.reserved.ports.assign(sent.message.count + sent.message.fixed.size(), 8'080);
  }
  return granted;
}

void join_with(Driver& job, std::uint32_t host, std::size_t gpus) {
  BootstrapReply reply;
  reply.public_key = "key";
  reply.keeper_pid = 100;
  reply.inventory.gpus.resize(gpus);
  job.step(WorkerLaunched{.host = HostId(host), .worker = {.reply = reply}});
  job.step(WorkerJoined{.host = HostId(host), .incarnation = host + 1});
}

TEST(Lacks, OfAPortSendTheSlotToASpare) {
  Driver job(job_with(2, 1, 3));
  job.begin();
  for (const std::uint32_t host : {0U, 1U, 2U}) job.join(host);
  const auto actions = job.step(refusal(job, 0, "port 8080: taken"));
  EXPECT_EQ(Driver::count<DestroyWorker>(actions), 1U);
  const auto failed = events_of(job, EventKind::kHostFailed);
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0].message.rfind("v1: lacks resources (reserve, after ", 0), 0U) << failed[0].message;
  EXPECT_NE(failed[0].message.find("needs there: port 8080: taken"), std::string::npos) << failed[0].message;
  ASSERT_EQ(events_of(job, EventKind::kHostReplaced).size(), 1U);
  job.give_ports();
  EXPECT_EQ(started_on(job), (std::vector<std::uint32_t>{2, 1}));
  EXPECT_FALSE(job.core.state().verdict);
}

TEST(Lacks, OfGpusSendTheSlotFromHostToHost) {
  JobSpec spec = job_with(1, 2, 3);
  spec.meshes[0].resources.gpus = 1;
  Driver job(spec);
  job.begin();
  job.join(0);
  ASSERT_EQ(events_of(job, EventKind::kHostFailed).size(), 1U);
  EXPECT_FALSE(job.core.state().verdict) << "others are on their way";
  job.join(1);
  EXPECT_EQ(events_of(job, EventKind::kHostFailed).size(), 2U);
  job.join(2);
  ASSERT_TRUE(job.core.state().verdict);
  const Verdict& verdict = *job.core.state().verdict;
  EXPECT_EQ(verdict.exit_code, 69);
  EXPECT_EQ(verdict.reason, "3 hosts lack what they need (v1, v2, v3); v3: mesh trainer needs 1 GPU, and there are 0");
  for (const HostState& host : job.core.state().hosts) {
    ASSERT_TRUE(host.failure) << "all are named";
    EXPECT_EQ(host.failure->kind, LaunchFailureKind::kResources);
  }
}

TEST(Lacks, AreSeenBeforeTheGangIsComplete) {
  JobSpec spec = job_with(3, 0, 3);
  spec.meshes[0].resources.gpus = 1;
  Driver job(spec);
  job.begin();
  job.join(0);
  EXPECT_EQ(events_of(job, EventKind::kHostFailed).size(), 1U);
  EXPECT_FALSE(job.core.state().verdict) << "two hosts may still have something to say";
  job.step(WorkerLaunchFailed{.host = HostId(1), .failure = {.kind = LaunchFailureKind::kRefused}});
  EXPECT_FALSE(job.core.state().verdict);
  job.join(2);
  ASSERT_TRUE(job.core.state().verdict);
  EXPECT_EQ(job.core.state().verdict->reason.rfind("3 hosts did not start: v1 (lacks resources), ", 0), 0U)
      << job.core.state().verdict->reason;
  EXPECT_TRUE(job.actions_of<SendReserve>().empty());
}

TEST(Lacks, FailTheJobOnceEveryHostOfTheGangHasAnswered) {
  Driver job(job_with_port(3, 0, 3));
  job.begin();
  for (const std::uint32_t host : {0U, 1U, 2U}) job.join(host);
  job.step(refusal(job, 0, "port 8080: taken"));
  EXPECT_FALSE(job.core.state().verdict) << "two hosts have not answered";
  job.step(refusal(job, 2, "port 8080: taken by another"));
  EXPECT_FALSE(job.core.state().verdict);
  job.step(grant(job, 1));
  ASSERT_TRUE(job.core.state().verdict);
  EXPECT_EQ(job.core.state().verdict->reason.rfind("2 hosts lack what they need (v1, v3); v1: could not reserve", 0),
            0U)
      << job.core.state().verdict->reason;
  EXPECT_EQ(job.core.state().verdict->exit_code, 69);
  EXPECT_TRUE(started_on(job).empty());
}

TEST(Lacks, FailTheJobWhenWhoHasNotAnsweredIsLost) {
  Driver job(job_with_port(2, 0, 2));
  job.begin();
  for (const std::uint32_t host : {0U, 1U}) job.join(host);
  job.step(refusal(job, 0, "port 8080: taken"));
  ASSERT_FALSE(job.core.state().verdict);
  job.step(HostSilent{.host = HostId(1), .silence = Duration::seconds(5)});
  ASSERT_TRUE(job.core.state().verdict);
  EXPECT_TRUE(job.host(0).failure);
  EXPECT_TRUE(job.host(1).failure);
}

TEST(Lacks, FailTheJobWhereAGangOfTheSlotHasStarted) {
  JobSpec spec = job_with(1, 1, 2);
  spec.meshes.push_back(spec.meshes[0]);
  spec.meshes[1].name = "second";
  spec.meshes[1].like = MeshId(0);
  Driver job(spec);
  job.begin();
  for (const std::uint32_t host : {0U, 1U}) job.join(host);
  ASSERT_EQ(job.actions_of<SendReserve>().size(), 2U);
  const Reserve first = std::get<SendReserve>(job.actions_of<SendReserve>()[0]).message;
  job.step(PortsReserved{
      .host = HostId(0),
      .reserved = {.mesh = first.mesh, .gang = first.gang, .generation = first.generation, .ports = {29'500}}});
  ASSERT_EQ(started_on(job).size(), 1U);
  job.step(refusal(job, 0, "taken"));
  ASSERT_TRUE(job.core.state().verdict);
  EXPECT_EQ(job.core.state().verdict->exit_code, 69);
}

// Whose gang has run before, on a host that is lost; the first cold host has not what it needs.
TEST(Lacks, OfGpusSendASlotFromAColdHostToTheNext) {
  JobSpec spec = fixtures::job_that_recovers(1, 1, 4, 4);
  spec.launch = LaunchLocal{.hosts = 3};
  spec.meshes[0].resources.gpus = 1;
  Driver job(spec);
  job.begin();
  join_with(job, 0, 1);
  job.start_again(0);
  ASSERT_EQ(job.gang(0).phase, GangPhase::kRunning);
  job.step(HostSilent{.host = HostId(0), .silence = Duration::seconds(5), .grants_until = job.now});
  job.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  join_with(job, 1, 0);
  ASSERT_EQ(events_of(job, EventKind::kHostFailed).size(), 1U);
  EXPECT_NE(events_of(job, EventKind::kHostFailed)[0].message.find("needs 1 GPU, and there are 0"), std::string::npos);
  join_with(job, 2, 1);
  job.start_again(0);
  EXPECT_EQ(started_on(job), (std::vector<std::uint32_t>{0, 2}));
}

TEST(Lacks, OfGpusKeepAParkedGangFromReturningToAHost) {
  JobSpec spec = fixtures::job_that_recovers(2, 1, 4, 0);
  spec.launch = LaunchLocal{.hosts = 3};
  spec.meshes[0].resources.gpus = 1;
  spec.meshes[0].supervision.shrink = ShrinkPolicy{.along = "host", .min = 1, .regrow = true};
  Driver job(spec);
  job.begin();
  join_with(job, 0, 2);
  join_with(job, 1, 2);
  job.give_ports();
  for (std::uint32_t r = 0; r < 2; ++r) job.report({MeshId(0), Rank(r)}, RankPhase::kRunning);
  job.step(HostSilent{.host = HostId(0), .silence = Duration::seconds(5), .grants_until = job.now});
  job.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  ASSERT_EQ(job.gang(0).phase, GangPhase::kParked);
  ASSERT_EQ(job.host(2).phase, HostPhase::kLaunching);
  join_with(job, 2, 0);
  EXPECT_EQ(job.gang(0).phase, GangPhase::kParked);
  ASSERT_EQ(events_of(job, EventKind::kHostFailed).size(), 1U);
}

}  // namespace
}  // namespace monarch
