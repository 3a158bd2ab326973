// Virtual hosts that are given up while their worker may still live: its place is free once its end is proven.

#include <gtest/gtest.h>

#include "supervisor/launch/local/local_spec.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::job_that_recovers;

// Two gangs, each on a host of its own, with a spare; the first host was given up, and nobody knows what became of its
// worker.
struct GivenUp : Driver {
  explicit GivenUp(std::uint32_t reallocations = 4) : Driver(spec(reallocations)) {
    begin();
    for (std::uint32_t i = 0; i < 3; ++i) join(i);
    give_ports();
    for (std::uint32_t r = 0; r < 2; ++r) report({MeshId(0), Rank(r)}, RankPhase::kRunning);
    step(HostSilent{.host = HostId(0), .silence = Duration::seconds(5), .grants_until = now + Duration::seconds(2)});
    while (first().phase == HostPhase::kDestroying) pass_deadline();
    start_again(0);
    EXPECT_EQ(first().phase, HostPhase::kLost);
  }
  static JobSpec spec(std::uint32_t reallocations) {
    JobSpec spec = job_that_recovers(2, 1, 4, reallocations);
    spec.launch = LaunchLocal{.hosts = 3, .spares = 1};
    return spec;
  }
  const HostState& first() const { return host(0); }
  void pass_all_deadlines() {
    while (core.next_deadline() != Instant::never() && first().phase != HostPhase::kLaunching) pass_deadline();
  }
};

TEST(OccupiedHost, IsNotLaunchedUntilTheEndOfItsWorkerIsProven) {
  GivenUp job;
  job.pass_all_deadlines();
  EXPECT_EQ(job.first().phase, HostPhase::kLost);
  EXPECT_EQ(job.actions_of<LaunchWorker>().size(), 3U);
  job.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  EXPECT_EQ(job.first().phase, HostPhase::kEnded);
  job.pass_all_deadlines();
  EXPECT_EQ(job.first().phase, HostPhase::kLaunching) << "it is a spare again";
  EXPECT_EQ(job.actions_of<LaunchWorker>().size(), 4U);
}

TEST(OccupiedHost, IsNotFreedByAnOperatorEither) {
  GivenUp job;
  const auto ask = [&](OperatorWish wish) {
    job.step(OperatorAsked{.wish = wish, .hosts = {HostId(0)}, .who = "test"});
  };
  ask(OperatorWish::kDrain);
  ask(OperatorWish::kUndrain);
  ask(OperatorWish::kRetry);
  job.pass_all_deadlines();
  EXPECT_EQ(job.first().phase, HostPhase::kLost);
  job.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  job.pass_all_deadlines();
  EXPECT_EQ(job.first().phase, HostPhase::kLaunching);
}

TEST(OccupiedHost, ThatIsUndrainedReturnsWithItsProofWhateverTheBudget) {
  GivenUp job(1);  // which is spent
  const auto ask = [&](OperatorWish wish) {
    return job.step(OperatorAsked{.wish = wish, .hosts = {HostId(0)}, .who = "test"});
  };
  ask(OperatorWish::kDrain);
  EXPECT_EQ(Driver::count<DestroyWorker>(ask(OperatorWish::kUndrain)), 1U) << "its end is looked for once more";
  EXPECT_EQ(job.told(EventKind::kHostUndrained),
            std::vector<std::string>{
                "v1: may be used again, once its worker of before is known to have ended, asked by test"});
  job.pass_all_deadlines();
  EXPECT_EQ(job.first().phase, HostPhase::kLost);
  job.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  EXPECT_EQ(job.first().phase, HostPhase::kCold) << "it may be launched again";
  EXPECT_FALSE(job.first().unproven);
}

TEST(OccupiedHost, ThatIsDrainedAgainBeforeItsProofStaysOut) {
  GivenUp job(1);
  for (const OperatorWish wish : {OperatorWish::kDrain, OperatorWish::kUndrain, OperatorWish::kDrain}) {
    job.step(OperatorAsked{.wish = wish, .hosts = {HostId(0)}, .who = "test"});
  }
  job.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  job.pass_all_deadlines();
  EXPECT_EQ(job.first().phase, HostPhase::kEnded);
}

}  // namespace
}  // namespace monarch
