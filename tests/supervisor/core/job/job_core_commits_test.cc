// Checkpoints as the job's core takes them: from whom, what is answered, and what the next generation is told.

#include <gtest/gtest.h>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/job/status.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

RankId rank_of(std::uint32_t rank) { return {MeshId(0), Rank(rank)}; }

class Job : public fixtures::Driver {
 public:
  explicit Job(const JobSpec& spec = fixtures::job_of(2, 1)) : Driver(spec) { run_all(); }

  Generation generation() const { return crew(0).generation; }
  CommitRequest asks(std::uint64_t step) const { return {.number = 7, .step = step, .what = "ckpt"}; }
  std::vector<Action> commit(std::uint32_t rank, std::uint64_t step) {
    return this->step(CheckpointCommitted{.host = core.placement().host_of(rank_of(rank)),
                                          .process = {rank_of(rank), generation()},
                                          .commit = asks(step)});
  }
  std::string why(std::uint32_t host, std::uint32_t rank, Generation of) const {
    const CommitDecision decision = rule_on(core.facts(), HostId(host), {rank_of(rank), of}, asks(10));
    return decision.ruling == CommitRuling::kRefuse ? decision.why : std::string();
  }
};

TEST(JobCoreCommits, AreAnsweredToTheHostAndToldOnceTheGangHasThem) {
  Job job;
  const auto first = job.commit(1, 10);
  ASSERT_EQ(first.size(), 1U);
  const auto& answer = std::get<SendCommitAnswer>(first[0]);
  EXPECT_EQ(answer.host, HostId(1));
  EXPECT_EQ(answer.message.process, (Incarnation{rank_of(1), job.generation()}));
  EXPECT_EQ(answer.message.number, 7U);
  EXPECT_TRUE(answer.message.committed);
  const auto second = job.commit(0, 10);
  ASSERT_EQ(second.size(), 2U);
  const JobEvent& event = std::get<EmitEvent>(second[1]).event;
  EXPECT_EQ(event.kind, EventKind::kCheckpointCommitted);
  EXPECT_EQ(event.message, "trainer: gang 0 has committed step 10, generation 1");
  EXPECT_FALSE(job.gang(0).commits.resumed) << "what this generation was told stays";
  const JobStatus status = status_of(job.core, "test-0001", job.now);
  ASSERT_EQ(status.meshes[0].committed.size(), 1U);
  EXPECT_EQ(status.meshes[0].committed[0].step, 10U);
}

TEST(JobCoreCommits, AreWhatTheNextGenerationIsSaidToGoOnFrom) {
  Job job(fixtures::job_that_recovers(1, 2, 2));
  (void)job.commit(0, 10);
  (void)job.commit(1, 10);
  job.fail_gang(rank_of(0), fixtures::exited(1), 14);
  job.start_again(0);
  EXPECT_EQ(job.told(EventKind::kGangStarting).back(),
            "trainer: gang 0 is starting, generation 2, from step 10: 4 steps are done again");
}

TEST(JobCoreCommits, OfAnotherGenerationOrHostAreRefused) {
  Job job;
  EXPECT_EQ(job.why(0, 0, job.generation()), "");
  Generation other = job.generation();
  other.counter += 1;
  EXPECT_EQ(job.why(0, 0, other), "generation 2 of this gang is over, 1 has its place: what it writes does not count");
  EXPECT_EQ(job.why(1, 0, job.generation()), "the supervisor has given this rank up: what it writes does not count");
}

TEST(JobCoreCommits, OfARankWhoseEndIsKnownAreRefused) {
  Job job;
  job.ended(0, fixtures::exited(0));
  EXPECT_NE(job.why(0, 0, job.generation()), "");
  EXPECT_EQ(job.why(1, 1, job.generation()), "");
}

TEST(JobCoreCommits, SaidAgainAreAnsweredAgainAndChangeNothing) {
  Job job;
  job.commit(0, 10);
  job.commit(1, 10);
  const std::uint64_t events = job.core.state().next_event;
  const auto again = job.commit(0, 10);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_TRUE(std::get<SendCommitAnswer>(again[0]).message.committed);
  EXPECT_EQ(job.core.state().next_event, events);
}

}  // namespace
}  // namespace monarch
