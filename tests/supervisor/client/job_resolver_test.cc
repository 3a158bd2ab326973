#include "supervisor/client/job_resolver.h"

#include <gtest/gtest.h>

#include "supervisor/client/job_view.h"
#include "supervisor/client/new_job.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/journal/job_lock.h"
#include "supervisor/journal/journal_writer.h"
#include "tests/supervisor/client/scratch.h"
#include "transport/base/clock.h"
#include "transport/messages/viewer.h"
#include "transport/wire/codec.h"

namespace monarch {

namespace {

std::vector<KnownJob> some_jobs() {
  return {{.id = "hello-0001", .life = JobLife::kEnded, .created = {1}},
          {.id = "hello-0002", .life = JobLife::kLive, .created = {2}},
          {.id = "train-00ab", .life = JobLife::kEnded, .created = {3}},
          {.id = "train-00ac", .life = JobLife::kEnded, .created = {4}}};
}

}  // namespace

TEST(JobResolver, TakesAnIdAUniqueBeginningAndLast) {
  const auto jobs = some_jobs();
  EXPECT_EQ(*resolve_job(jobs, "train-00ab"), "train-00ab");
  EXPECT_EQ(*resolve_job(jobs, "hello-0001"), "hello-0001");
  EXPECT_EQ(*resolve_job({jobs[0], jobs[2]}, "tr"), "train-00ab");
  EXPECT_EQ(*resolve_job(jobs, "last"), "train-00ac");
}

TEST(JobResolver, TakesANameIfOneSuchJobIsLive) {
  const auto jobs = some_jobs();
  EXPECT_EQ(*resolve_job(jobs, "hello"), "hello-0002");
  EXPECT_EQ(resolve_job(jobs, "train").error().message,
            "no job called `train` is live, name one by its id (`last` is the newest): train-00ac (ended), train-00ab "
            "(ended)");
  EXPECT_EQ(resolve_job({jobs[2], jobs[3], jobs[0]}, "train").error().message,
            "no job called `train` is live, name one by its id: train-00ac (ended), train-00ab (ended)");
}

TEST(JobResolver, SaysWhichOfSeveralWaitsInAQueue) {
  auto jobs = some_jobs();
  jobs[2].life = JobLife::kLive;
  jobs[2].queued = true;
  EXPECT_EQ(resolve_job(jobs, "").error().message,
            "more than one job is live, name one: train-00ab (queued), hello-0002 (live)");
}

TEST(JobResolver, TakesTheOnlyLiveJobIfNoneIsNamed) {
  auto jobs = some_jobs();
  EXPECT_EQ(*resolve_job(jobs, ""), "hello-0002");
  jobs[2].life = JobLife::kLive;
  EXPECT_EQ(resolve_job(jobs, "").error().message,
            "more than one job is live, name one: train-00ab (live), hello-0002 (live)");
  EXPECT_EQ(resolve_job({jobs[0]}, "").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(resolve_job({}, "").error().message, "there is no job");
}

TEST(JobResolver, TakesAnAbandonedJobOnlyIfNothingSurelyLives) {
  auto jobs = some_jobs();
  jobs[0].life = JobLife::kAbandoned;
  EXPECT_EQ(*resolve_job(jobs, ""), "hello-0002");
  jobs[1].life = JobLife::kEnded;
  EXPECT_EQ(*resolve_job(jobs, ""), "hello-0001");
}

TEST(JobResolver, ListsTheCandidatesOfAnAmbiguousBeginning) {
  EXPECT_EQ(resolve_job(some_jobs(), "train-00").error().message,
            "more than one job begins with `train-00`: train-00ac (ended), train-00ab (ended)");
  EXPECT_EQ(resolve_job(some_jobs(), "zebra").error().message,
            "there is no job `zebra`; there are: train-00ac (ended), train-00ab (ended), hello-0002 (live), hello-0001 "
            "(ended)");
}

TEST(JobResolver, ShowsAtMostTenCandidates) {
  std::vector<KnownJob> jobs;
  for (int i = 10; i < 25; ++i)
    jobs.push_back({.id = "a-00" + std::to_string(i), .life = JobLife::kLive, .created = {i}});
  const std::string message = resolve_job(jobs, "").error().message;
  EXPECT_TRUE(message.ends_with("a-0015 (live) and 5 older")) << message;
}

TEST(ListJobs, TellsLiveEndedAndAbandonedJobsApart) {
  const Scratch scratch;
  auto state = StateDir::open_for_writing(scratch.path() + "/state");
  ASSERT_TRUE(state.ok()) << state.error().message;
  std::map<std::string, JobLife> expected;
  std::unique_ptr<JobLock> lock;
  for (const JobLife life : {JobLife::kLive, JobLife::kEnded, JobLife::kAbandoned}) {
    const auto job = state->create_job("mix");
    ASSERT_TRUE(job.ok()) << job.error().message;
    ASSERT_TRUE(write_job_files(*job, {.spec = "version: 1", .spec_directory = "/"}).ok());
    if (life == JobLife::kEnded) {
      ASSERT_TRUE(job->directory.write_file(kVerdictFile, "{}").ok());
    }
    if (life == JobLife::kLive) lock = *JobLock::take(job->directory, this_process_as_holder({}));
    expected[job->id] = life;
  }
  const auto jobs = list_jobs(*state);
  ASSERT_TRUE(jobs.ok());
  std::map<std::string, JobLife> found;
  for (const KnownJob& job : *jobs) found[job.id] = job.life;
  EXPECT_EQ(found, expected);
}

TEST(ListJobs, TakesTheJournalsWordWhereTheVerdictsFileWasNotWritten) {
  const Scratch scratch;
  auto state = StateDir::open_for_writing(scratch.path() + "/state");
  ASSERT_TRUE(state.ok()) << state.error().message;
  const auto job = state->create_job("crash");
  ASSERT_TRUE(job.ok()) << job.error().message;
  ASSERT_TRUE(write_job_files(*job, {.spec = "version: 1", .spec_directory = "/"}).ok());
  const auto life = [&] { return list_jobs(*state)->front().life; };
  const auto files = posix_journal_files(*job->directory.duplicate());
  const auto writer = JournalWriter::create(*files, JournalContents{});
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  EXPECT_EQ(life(), JobLife::kAbandoned);
  AppendRecord record{.type = RecordType::kVerdict, .term = Term(1), .wall = {}, .now = boot_now(), .payload = {}};
  record.payload = encode_payload(Verdict{.exit_code = 3});
  ASSERT_TRUE((*writer)->append(record).ok());
  ASSERT_EQ((*writer)->flush(), JournalHealth::kGood);
  EXPECT_EQ(life(), JobLife::kEnded);
}

TEST(JobView, TakesTheJournalsWordOnceNobodyIsLeftToWriteTheFile) {
  const Scratch scratch;
  const auto state = *StateDir::open_for_writing(scratch.path() + "/state");
  const auto job = *state.create_job("ending");
  const auto files = posix_journal_files(*job.directory.duplicate());
  const auto writer = *JournalWriter::create(*files, JournalContents{});
  AppendRecord record{.type = RecordType::kVerdict, .term = Term(1), .wall = {}, .now = boot_now(), .payload = {}};
  record.payload = encode_payload(Verdict{.exit_code = 3});
  ASSERT_TRUE(writer->append(record).ok());
  ASSERT_EQ(writer->flush(), JournalHealth::kGood);
  const auto view = *JobView::open(state, job.id);
  auto lock = *JobLock::take(job.directory, this_process_as_holder({}));
  EXPECT_FALSE(*view.verdict()) << "its supervisor is about to write verdict.json, and tells then";
  lock.reset();
  ASSERT_TRUE(*view.verdict());
  EXPECT_EQ((*view.verdict())->exit_code, 3);
}

}  // namespace monarch
