// What a job has of one that it continues: which generations, which checkpoints, and what of it nobody goes on from.

#include "supervisor/core/state/inheritance.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/supervisor/core/fixtures.h"
#include "transport/base/limits.h"

namespace monarch {
namespace {

using fixtures::Driver;
using fixtures::job_of;
using fixtures::job_that_recovers;

class Before : public Driver {
 public:
  explicit Before(const JobSpec& spec) : Driver(spec) { run_all(); }

  void commit(std::uint64_t step, const std::string& what) {
    for (std::uint32_t rank = 0; rank < core.spec().meshes[0].size(); ++rank) {
      const RankId id{MeshId(0), Rank(rank)};
      this->step(CheckpointCommitted{.host = core.placement().host_of(id),
                                     .process = {id, core.facts().crew_with(id).generation},
                                     .commit = {.number = 1, .step = step, .what = what}});
    }
  }
  Inheritance inherited_by(const JobSpec& spec) const {
    Inheritance inherited = inherit(spec, core.spec(), core.state());
    inherited.job = "before-0001";
    return inherited;
  }
};

// A job that goes on from that, begun.
class Next : public Driver {
 public:
  Next(const JobSpec& spec, const Inheritance& continued) : Driver(spec) {
    for (std::vector<InheritedGang>& part : in_parts(continued.gangs)) step(GangsInherited{std::move(part)});
    step(JobBegun{.term = Term(1), .job = JobUuid{}, .continues = continued.job, .lost = continued.lost});
  }
};

TEST(Inheritance, CountsGenerationsOnAndGoesOnFromTheNewestCheckpoint) {
  const JobSpec spec = job_that_recovers(2, 2, 4);
  Before before(spec);
  before.commit(10, "ckpt-10");
  before.fail_gang({MeshId(0), Rank(0)}, fixtures::exited(1), 14);
  before.start_again(0);
  const Inheritance all = before.inherited_by(spec);
  ASSERT_EQ(all.gangs.size(), 2U);
  EXPECT_EQ(all.gangs[0].generation, 2U);
  EXPECT_EQ(all.gangs[1].generation, 1U);
  EXPECT_TRUE(all.lost.empty());

  Next next(spec, all);
  for (std::uint32_t host = 0; host < 2; ++host) next.join(host);
  next.give_ports();
  EXPECT_EQ(next.told(EventKind::kJobContinues).at(0), "test-0001 goes on from before-0001");
  EXPECT_EQ(next.told(EventKind::kGangStarting).at(0),
            "trainer: gang 0 is starting, generation 3, from step 10: 4 steps are done again");
  EXPECT_EQ(next.told(EventKind::kGangStarting).at(1), "trainer: gang 1 is starting, generation 2, from step 10");
  EXPECT_EQ(next.gang(0).commits.resumed->what.at(1), "ckpt-10");
  EXPECT_EQ(next.gang(0).restarts, 0U) << "its budgets are its own";
}

TEST(Inheritance, RefusesStepsThatTheJobBeforeHasCommitted) {
  const JobSpec spec = job_of(1, 1);
  Before before(spec);
  before.commit(10, "ckpt-10");
  Next next(spec, before.inherited_by(spec));
  next.join(0);
  next.give_ports();
  next.report({MeshId(0), Rank(0)}, RankPhase::kRunning);
  const auto ruling = [&](std::uint64_t step) {
    return rule_on(next.core.facts(), HostId(0), {{MeshId(0), Rank(0)}, next.crew(0).generation},
                   {.number = 1, .step = step, .what = ""})
        .ruling;
  };
  EXPECT_EQ(ruling(9), CommitRuling::kRefuse);
  EXPECT_EQ(ruling(11), CommitRuling::kTake);
}

TEST(Inheritance, HasNoCheckpointThatOnlyHostsHadInTheirMemory) {
  const JobSpec spec = job_of(1, 2);
  Before before(spec);
  before.commit(20, "vault:3:0,1:9f86");
  const Inheritance all = before.inherited_by(spec);
  ASSERT_EQ(all.gangs.size(), 1U);
  EXPECT_FALSE(all.gangs[0].checkpoint);
  EXPECT_EQ(all.gangs[0].generation, 1U);
  ASSERT_EQ(all.lost.size(), 1U);
  EXPECT_EQ(all.lost[0],
            "trainer: gang 0 does not go on from step 20, which only hosts of that job had in their memory");
}

TEST(Inheritance, BeginsAMeshOfAnotherShapeAnew) {
  Before before(job_of(2, 1));
  before.commit(10, "ckpt-10");
  const Inheritance wider = before.inherited_by(job_of(2, 2));
  ASSERT_EQ(wider.gangs.size(), 1U);
  EXPECT_EQ(wider.gangs[0].generation, 1U) << "what wrote under that is none of its own";
  EXPECT_FALSE(wider.gangs[0].checkpoint);
  ASSERT_EQ(wider.lost.size(), 1U);
  EXPECT_EQ(
      wider.lost[0],
      "mesh trainer begins anew: it had 2 ranks (host 2, gpu 1) in 1 gang, and has 4 ranks (host 2, gpu 2) in 1 gang");
  EXPECT_EQ(before.inherited_by(job_of(1, 2)).lost.size(), 1U) << "as many ranks, elsewhere";
  const Inheritance parted = before.inherited_by(job_that_recovers(2, 1, 4));
  ASSERT_EQ(parted.lost.size(), 1U);
  EXPECT_EQ(
      parted.lost[0],
      "mesh trainer begins anew: it had 2 ranks (host 2, gpu 1) in 1 gang, and has 2 ranks (host 2, gpu 1) in 2 gangs");
  JobSpec renamed = job_of(2, 1);
  renamed.meshes[0].name = "other";
  EXPECT_EQ(before.inherited_by(renamed).lost.at(0), "mesh trainer is none of this job's");
  Next next(job_of(2, 2), wider);
  EXPECT_EQ(next.told(EventKind::kJobContinues).at(0), "test-0001 goes on from before-0001; " + wider.lost[0]);
}

TEST(Inheritance, OfLargeGangsIsInPartsThatFitIntoRecords) {
  Inheritance all;
  all.job = "before-0001";
  const std::uint32_t hosts = 16;
  const std::uint32_t per_host = 64;
  InheritedGang gang{.mesh = MeshId(0), .gang = GangId(0), .generation = 3};
  gang.checkpoint = GangCheckpoint{.step = 7, .generation = {Term(1), 3}, .what = {}};
  for (std::uint32_t rank = 0; rank < hosts * per_host; ++rank) {
    gang.checkpoint->what.push_back(std::to_string(rank) + std::string(120, 'x'));
  }
  all.gangs.push_back(gang);
  const auto parts = in_parts(all.gangs);
  EXPECT_GT(parts.size(), 4U);
  for (const auto& part : parts) {
    std::size_t bytes = 0;
    for (const InheritedGang& one : part) {
      for (const std::string& what : one.checkpoint->what) bytes += what.size() + 3;
    }
    EXPECT_LT(bytes, limits::kJournalPayloadBytes / 2);
  }
  const Next next(job_of(hosts, per_host), all);
  ASSERT_TRUE(next.gang(0).commits.newest);
  EXPECT_EQ(next.gang(0).commits.newest->what, gang.checkpoint->what);
  EXPECT_EQ(in_parts({}).size(), 0U);
}

TEST(Inheritance, OfManyGangsIsInPartsThatFitIntoRecords) {
  std::vector<InheritedGang> gangs;
  for (std::uint32_t g = 0; g < 4096; ++g) gangs.push_back({.mesh = MeshId(0), .gang = GangId(g), .generation = 1});
  std::size_t count = 0;
  for (const auto& part : in_parts(gangs)) {
    EXPECT_LT(part.size(), 300U);
    count += part.size();
  }
  EXPECT_EQ(count, gangs.size());
}

TEST(Inheritance, SaidAgainByTheNextSupervisorIsTheSame) {
  const JobSpec spec = job_of(1, 2);
  Before before(spec);
  before.commit(10, "ckpt-10");
  const Inheritance all = before.inherited_by(spec);
  Driver next(spec);
  for (int again = 0; again < 2; ++again) next.step(GangsInherited{all.gangs});
  next.step(JobBegun{.term = Term(2), .job = JobUuid{}, .continues = all.job});
  EXPECT_EQ(next.gang(0).commits.newest->what.size(), 2U);
}

TEST(Inheritance, ThatIsNotWholeIsNone) {
  const JobSpec spec = job_of(1, 2);
  Before before(spec);
  before.commit(10, "ckpt-10");
  Inheritance half = before.inherited_by(spec);
  half.gangs[0].checkpoint->what.pop_back();
  const Next next(spec, half);
  EXPECT_FALSE(next.gang(0).commits.newest);
  EXPECT_EQ(next.crew(0).generation.counter, 1U);
}

TEST(Inheritance, NamesTheFirstOfWhatIsLost) {
  JobSpec spec = job_that_recovers(16, 1, 4);
  Before before(spec);
  before.commit(10, "vault:3:0,1:9f86");
  const Inheritance all = before.inherited_by(spec);
  ASSERT_EQ(all.lost.size(), 9U);
  EXPECT_EQ(all.lost.back(), "and 8 more");
}

TEST(Inheritance, OfAJobThatStartedNothingIsNothing) {
  Driver before(job_of(1, 1));
  before.begin();
  const Inheritance all = inherit(before.core.spec(), before.core.spec(), before.core.state());
  EXPECT_TRUE(all.gangs.empty());
  EXPECT_TRUE(all.lost.empty());
}

}  // namespace
}  // namespace monarch
