// Standby gangs whose ranks have GPUs: their hosts hold these for them, and what is not held is not started.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "supervisor/launch/ssh/ssh_spec.h"
#include "tests/supervisor/core/fixtures.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

using fixtures::Driver;
using Lines = std::vector<std::string>;

constexpr MeshId kStandbyMesh{2};  // of the first mesh of one

// With GPUs, which another job must not get while a standby waits.
struct StandingOnGpus : Driver {
  static JobSpec spec() {
    JobSpec spec = fixtures::job_that_recovers(2, 2, 4, 4);
    spec.meshes[0].standby_gangs = 1;
    spec.launch = LaunchSsh{.hosts = {{.name = "v1"}, {.name = "v2"}, {.name = "v3"}}, .spares = 1};
    spec.meshes[0].resources.gpus = 1;
    return spec;
  }
  explicit StandingOnGpus(std::uint32_t gpus_of_spare = 2) : Driver(spec()) {
    begin();
    for (std::uint32_t i = 0; i < 3; ++i) {
      BootstrapReply reply{.public_key = "key", .keeper_pid = 100};
      for (std::uint32_t g = 0; g < (i == 2 ? gpus_of_spare : 2); ++g) {
        reply.inventory.gpus.push_back({.index = g, .uuid = text("GPU-", i, g)});
      }
      step(WorkerLaunched{.host = HostId(i), .worker = {.reply = std::move(reply)}});
      step(WorkerJoined{.host = HostId(i), .incarnation = i + 1});
    }
  }
  std::vector<SendReserve> reserved_for_standby() const {
    std::vector<SendReserve> found;
    for (const Action& action : all) {
      const auto* reserve = std::get_if<SendReserve>(&action);
      if (reserve != nullptr && reserve->message.mesh == kStandbyMesh) found.push_back(*reserve);
    }
    return found;
  }
  void answer(const std::string& error) {
    step(PortsReserved{
        .host = HostId(2),
        .reserved = {
            .mesh = kStandbyMesh, .gang = GangId(0), .generation = standby().generation, .ports = {}, .error = error}});
  }
  std::size_t starts_of_standby() const {
    const auto starts = actions_of<SendStart>();
    return static_cast<std::size_t>(std::count_if(starts.begin(), starts.end(), [](const Action& action) {
      return std::get<SendStart>(action).message.mesh == kStandbyMesh;
    }));
  }
};

TEST(StandbyGangs, AreStartedOnceTheirHostsHoldTheirGpus) {
  StandingOnGpus driver;
  ASSERT_EQ(driver.reserved_for_standby().size(), 1U);
  EXPECT_EQ(driver.reserved_for_standby()[0].host, HostId(2));
  EXPECT_EQ(driver.reserved_for_standby()[0].message.gpus, (Lines{"GPU-20", "GPU-21"}));
  EXPECT_EQ(driver.standby().phase, CrewPhase::kReserving);
  EXPECT_EQ(driver.starts_of_standby(), 0U);
  driver.answer("");
  EXPECT_EQ(driver.standby().phase, CrewPhase::kStarting);
  EXPECT_EQ(driver.starts_of_standby(), 1U);
  driver.answer("");  // said twice
  EXPECT_EQ(driver.starts_of_standby(), 1U);
}

TEST(StandbyGangs, WhoseGpusAnotherJobHasAreTriedAgainLater) {
  StandingOnGpus driver;
  driver.answer("GPU 0 of host v3 is held by job other-0001 (pid 7)");
  ASSERT_EQ(driver.told(EventKind::kStandbyFailed).size(), 1U);
  EXPECT_EQ(driver.told(EventKind::kStandbyFailed)[0],
            "trainer: standby 0 could not reserve what it needs on v3: GPU 0 of host v3 is held by job other-0001 (pid "
            "7); it is started "
            "again in 1s at the earliest");
  EXPECT_EQ(driver.standby().phase, CrewPhase::kOver);
  EXPECT_EQ(driver.starts_of_standby(), 0U);
  // What one of its hosts may hold is let go there.
  EXPECT_TRUE(driver.reserved_for_standby().back().message.gpus.empty());
  EXPECT_GT(driver.reserved_for_standby().back().message.generation,
            driver.reserved_for_standby()[0].message.generation);
  driver.step(DeadlinePassed{}, Duration::seconds(1));
  EXPECT_EQ(driver.standby().phase, CrewPhase::kReserving);
}

TEST(StandbyGangs, GiveUpWhatIsNotYetHeldForAGangThatNeedsTheHost) {
  StandingOnGpus driver;
  driver.give_ports();  // also the standby's
  ASSERT_EQ(driver.standby().phase, CrewPhase::kStarting);
  StandingOnGpus early;
  for (const Action& action : early.actions_of<SendReserve>()) {
    const auto& sent = std::get<SendReserve>(action);
    if (sent.message.mesh == kStandbyMesh) continue;
    early.step(PortsReserved{.host = sent.host,
                             .reserved = {.mesh = sent.message.mesh,
                                          .gang = sent.message.gang,
                                          .generation = sent.message.generation,
                                          .ports = {29'500},
                                          .error = {}}});
  }
  for (std::uint32_t r = 0; r < 4; ++r) early.report({MeshId(0), Rank(r)}, RankPhase::kRunning);
  ASSERT_EQ(early.standby().phase, CrewPhase::kReserving);
  early.step(WorkerEnded{.host = HostId(1), .how = "exit code 1", .orderly = false});
  early.step(DeadlinePassed{}, Duration::seconds(1));
  EXPECT_EQ(early.core.state().slots, (std::vector<HostId>{HostId(0), HostId(2)}));
  EXPECT_EQ(early.gang(1).phase, GangPhase::kReserving) << "nothing else happens that would make it look again";
}

TEST(StandbyGangs, AreNotStartedOnASpareWithoutTheirGpus) {
  StandingOnGpus driver(1);
  EXPECT_TRUE(driver.reserved_for_standby().empty());
  EXPECT_EQ(driver.standby().phase, CrewPhase::kWaiting);
}

}  // namespace
}  // namespace monarch
