#include "supervisor/core/job/roster.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/supervisor/core/fixtures.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

using fixtures::Driver;

// A gang of two ranks on each of two hosts, which may be started again; posts listen at 8000 and the host's number.
class Job : public Driver {
 public:
  Job() : Driver(fixtures::job_that_recovers(2, 2, 1)), posts(2) {
    for (std::uint32_t i = 0; i < 2; ++i) posts[i].port = static_cast<std::uint16_t>(8000 + i);
  }
  Roster roster() const {
    return make_roster({.spec = core.spec(),
                        .state = core.state(),
                        .placement = core.placement(),
                        .pool = core.hosts(),
                        .posts = posts,
                        .failures = {}});
  }
  // "0+2@0.1 up": which ranks, on which host, as which generation.
  std::vector<std::string> runs() const {
    const auto name = [](RosterState state) {
      switch (state) {
        case RosterState::kUp: return "up";
        case RosterState::kStarting: return "starting";
        case RosterState::kDown: return "down";
        case RosterState::kGivenUp: return "given up";
        case RosterState::kEnded: return "ended";
        case RosterState::kIdle: return "idle";
      }
      return "?";
    };
    std::vector<std::string> named;
    for (const RosterRun& run : roster().runs) {
      named.push_back(text(run.first.value(), '+', run.count, '@', run.host.value(), '.', run.generation.counter, ' ',
                           name(run.state)));
    }
    return named;
  }

  std::vector<PostPlace> posts;
};

using Runs = std::vector<std::string>;

TEST(Roster, NamesHostsMeshesAndRanksInRuns) {
  Job job;
  job.run_all();
  const Roster roster = job.roster();
  EXPECT_EQ(roster.term, Term(1));
  EXPECT_EQ(roster.number, 0U);
  EXPECT_EQ(roster.meshes,
            (std::vector<RosterMesh>{{.name = "trainer", .dims = {{"host", 2}, {"gpu", 2}}, .gang = 2}}));
  ASSERT_EQ(roster.hosts.size(), 2U);
  EXPECT_EQ(roster.hosts[1].peer,
            (PeerAddress{.host = HostId(1), .name = "v2", .address = "127.0.1.2", .port = 8001, .public_key = "key"}));
  EXPECT_EQ(job.runs(), (Runs{"0+2@0.1 up", "2+2@1.1 up"}));
}

TEST(Roster, SaysOfARankThatItIsBeingStartedForTheFirstTime) {
  Job job;
  job.begin();
  EXPECT_EQ(job.runs(), (Runs{"0+2@0.0 starting", "2+2@1.0 starting"}));
  EXPECT_TRUE(job.roster().hosts.empty());
  job.join(0);
  job.join(1);
  job.give_ports();
  job.report({MeshId(0), Rank(3)}, RankPhase::kRunning);
  EXPECT_EQ(job.runs(), (Runs{"0+2@0.1 starting", "2+1@1.1 starting", "3+1@1.1 up"}));
}

TEST(Roster, FollowsAGangThroughItsFailuresUntilItIsGivenUp) {
  Job job;
  job.run_all();
  job.report({MeshId(0), Rank(0)}, RankPhase::kEnded, fixtures::exited(1));
  EXPECT_EQ(job.runs(), (Runs{"0+2@0.1 down", "2+2@1.1 up"})) << "its gang is being stopped";
  job.report({MeshId(0), Rank(1)}, RankPhase::kEnded, fixtures::killed_by_us(9));
  while (job.gang(0).phase != GangPhase::kStarting && job.gang(0).phase != GangPhase::kReserving) job.pass_deadline();
  job.start_again(0);
  EXPECT_EQ(job.runs(), (Runs{"0+2@0.2 up", "2+2@1.1 up"}));
}

TEST(Roster, SaysWhichRanksAreDone) {
  Job job;
  job.run_all();
  job.report({MeshId(0), Rank(2)}, RankPhase::kEnded, fixtures::exited(0));
  EXPECT_EQ(job.runs(), (Runs{"0+2@0.1 up", "2+1@1.1 ended", "3+1@1.1 up"}));
  job.report({MeshId(0), Rank(3)}, RankPhase::kEnded, fixtures::exited(0));
  EXPECT_EQ(job.runs(), (Runs{"0+2@0.1 up", "2+2@1.1 ended"}));
}

TEST(Roster, NamesOnlyHostsThatAreConnectedAndWhyOneHasNoPost) {
  Job job;
  job.run_all();
  job.posts[0] = {.port = 0, .without = "none comes up"};
  EXPECT_EQ(job.roster().hosts[0].without_post, "none comes up");
  job.step(WorkerEnded{.host = HostId(1), .how = "exit code 1", .orderly = false});
  ASSERT_EQ(job.roster().hosts.size(), 1U);
  EXPECT_EQ(job.roster().hosts[0].peer.host, HostId(0));
  EXPECT_EQ(job.runs()[1], "2+2@1.1 given up") << "no host is left for it";
}

}  // namespace
}  // namespace monarch
