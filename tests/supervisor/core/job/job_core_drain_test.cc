// The time between the last rank's end and the workers': what ranks wrote is still on its way.

#include <gtest/gtest.h>

#include <algorithm>

#include "supervisor/core/job/job_core.h"
#include "supervisor/launch/ssh/ssh_spec.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using fixtures::Driver;

// One rank each on two machines, which have ended; the output of the second one is not here yet.
struct Draining : Driver {
  static JobSpec spec() {
    JobSpec spec = fixtures::job_of(2, 1);
    spec.launch = LaunchSsh{.hosts = {{.name = "a"}, {.name = "b"}}};
    return spec;
  }
  Draining() : Driver(spec()) {
    run_all();
    ended(0, fixtures::exited(0));
    RankReport late = report_of({MeshId(0), Rank(1)}, RankPhase::kEnded, fixtures::exited(0));
    late.output_complete = false;
    step(RankChanged{.host = HostId(1), .report = late, .ended_at = now});
  }
  std::string told() const {
    for (const Action& action : actions_of<EmitEvent>()) {
      const JobEvent& event = std::get<EmitEvent>(action).event;
      if (event.kind == EventKind::kOutputIncomplete) return event.message;
    }
    return "";
  }
};

TEST(JobCoreDrain, GivesTheOutputOfOtherMachinesAMinute) {
  Draining job;
  EXPECT_GE(job.core.next_deadline() - job.now, Duration::seconds(59));
  job.step(DeadlinePassed{}, Duration::seconds(50));
  EXPECT_TRUE(job.actions_of<SendShutdown>().empty());
  job.ended(1, fixtures::exited(0));
  EXPECT_EQ(job.actions_of<SendShutdown>().size(), 2U);
  EXPECT_EQ(job.told(), "");
}

TEST(JobCoreDrain, NamesTheRankAndTheHostWhoseOutputDidNotCome) {
  Draining job;
  job.pass_deadline();
  EXPECT_EQ(job.actions_of<SendShutdown>().size(), 2U);
  EXPECT_NE(job.told().find("/1 (b)"), std::string::npos) << job.told();
  EXPECT_EQ(job.told().find("/0 (a)"), std::string::npos) << job.told();
}

TEST(JobCoreDrain, DoesNotWaitForAHostThatIsLost) {
  Draining job;
  job.step(HostSilent{.host = HostId(1), .silence = Duration::seconds(5)});
  EXPECT_EQ(job.actions_of<SendShutdown>().size(), 1U);
  EXPECT_NE(job.told(), "");
}

TEST(JobCoreDrain, WaitsNoLongerThanAKillTakesOnceItIsOrdered) {
  Draining job;
  job.step(StopOrdered{.request = {.how = StopHow::kKill, .who = "alice"}});
  EXPECT_LE(job.core.next_deadline() - job.now, Duration::seconds(2));
}

}  // namespace
}  // namespace monarch
