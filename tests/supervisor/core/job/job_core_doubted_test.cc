// A host that is suspected takes nobody's place: what would go there waits until it is heard again or lost, where no
// other is left.

#include <gtest/gtest.h>

#include <csignal>

#include "supervisor/launch/local/local_spec.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::job_of;
using fixtures::killed_by_us;

constexpr RankId kFirst{MeshId(0), Rank(0)};
constexpr RankId kSecond{MeshId(0), Rank(1)};
constexpr HostId kV2{1};
constexpr HostId kV3{2};
constexpr HostId kV4{3};

// One gang on two hosts; so many hosts more, of which so many are spares.
JobSpec one_gang(std::uint32_t hosts, std::uint32_t spares) {
  JobSpec spec = job_of(2, 1);
  spec.meshes[0].supervision.restart = {.max = 4};
  spec.meshes[0].supervision.reallocate = {.max = 4};
  spec.supervision = spec.meshes[0].supervision;
  spec.launch = LaunchLocal{.hosts = hosts, .spares = spares};
  return spec;
}

void doubt(Driver& driver, HostId host) { driver.step(HostDoubted{.host = host, .silence = Duration::seconds(3)}); }
void hear(Driver& driver, HostId host) { driver.step(HostDoubted{.host = host, .heard_again = true, .silence = {}}); }
// The gang's other rank is ended by us, and nothing of it lives.
void end_the_gang(Driver& driver) {
  driver.pass_deadline();
  driver.report(kFirst, RankPhase::kEnded, killed_by_us(SIGKILL));
}
// Its end is proven.
void lose(Driver& driver, HostId host) {
  driver.step(WorkerEnded{.host = host, .how = "killed by SIGKILL"});
  end_the_gang(driver);
}
void fall_silent(Driver& driver, HostId host) {
  driver.step(HostSilent{.host = host, .silence = Duration::seconds(5), .grants_until = driver.now});
}

TEST(DoubtedHost, TakesNoPlaceWhereAnotherSpareIsHeard) {
  Driver driver(one_gang(4, 2));
  driver.run_all();
  driver.join(2);
  driver.join(3);
  doubt(driver, kV3);
  lose(driver, kV2);
  EXPECT_EQ(driver.core.placement().host_of(kSecond), kV4);
}

TEST(DoubtedHost, ComesAfterOneThatHasYetToBeLaunched) {
  Driver driver(one_gang(4, 1));
  driver.run_all();
  driver.join(2);
  doubt(driver, kV3);
  fall_silent(driver, kV2);
  end_the_gang(driver);
  EXPECT_EQ(driver.core.placement().host_of(kSecond), kV4);
}

TEST(DoubtedHost, IsWaitedForWhereNoOtherIsLeftAndTakesThePlaceOnceItIsHeard) {
  Driver driver(one_gang(3, 1));
  driver.run_all();
  driver.join(2);
  doubt(driver, kV3);
  fall_silent(driver, kV2);
  end_the_gang(driver);
  EXPECT_EQ(driver.core.placement().host_of(kSecond), kV2);
  EXPECT_EQ(driver.core.state().phase, JobPhase::kRunning);
  EXPECT_TRUE(driver.core.state().reallocations.empty()) << "nothing is spent on it";
  hear(driver, kV3);
  EXPECT_EQ(driver.core.placement().host_of(kSecond), kV3);
  EXPECT_EQ(driver.core.state().reallocations.size(), 1U);
}

TEST(DoubtedHost, ThatIsLostInItsTurnLeavesWhatWaitedForItToTheNextStage) {
  Driver driver(one_gang(3, 1));
  driver.run_all();
  driver.join(2);
  doubt(driver, kV3);
  fall_silent(driver, kV2);
  end_the_gang(driver);
  fall_silent(driver, kV3);
  EXPECT_TRUE(driver.core.placement().host_of(kSecond) == kV2);
  EXPECT_TRUE(driver.told(EventKind::kHostReplaced).empty());
}

TEST(DoubtedHost, WhoseSupervisorCameBackIsDoubtedNoMore) {
  Driver driver(one_gang(3, 1));
  driver.run_all();
  driver.join(2);
  doubt(driver, kV3);
  driver.step(SupervisorReturned{.term = Term(2)});
  EXPECT_FALSE(driver.host(2).doubted);
}

}  // namespace
}  // namespace monarch
