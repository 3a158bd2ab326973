#include "supervisor/journal/journal_thread.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <deque>

#include "tests/supervisor/journal/fake_journal_files.h"
#include "tests/supervisor/journal/journal_story.h"

namespace monarch {
namespace {

using testing::Call;
using testing::FakeJournalFiles;

constexpr int kDeadlineMilliseconds = 10'000;
constexpr Term kTerm{1};

class JournalThreadTest : public ::testing::Test {
 protected:
  void start(std::size_t capacity = 100, const JournalWriterOptions& writer_options = {},
             Duration patience = Duration::milliseconds(5)) {
    auto files = std::make_unique<FakeJournalFiles>();
    files_ = files.get();
    files_->fault = [this](Call call, const std::string&) -> Errno {
      if (call == Call::kWrite) return write_fault_;
      return call == Call::kSync ? sync_fault_.load() : 0;
    };
    auto writer = JournalWriter::create(*files, JournalContents{}, writer_options);
    ASSERT_TRUE(writer.ok());
    auto reports = Inbox<JournalReport>::create(10'000);
    ASSERT_TRUE(reports.ok());
    reports_ = std::move(*reports);
    auto thread = JournalThread::start({.files = std::move(files),
                                        .writer = std::move(*writer),
                                        .reports = reports_.get(),
                                        .capacity = capacity,
                                        .retry_every = Duration::milliseconds(5),
                                        .look_every = Duration::milliseconds(5),
                                        .patience = patience});
    ASSERT_TRUE(thread.ok());
    thread_ = std::move(*thread);
  }

  AppendRequest append(std::uint64_t ticket, std::uint64_t first_lsn, int count) {
    AppendRequest request{ticket, {}};
    for (int i = 0; i < count; ++i)
      request.records.push_back(testing::input(kTerm, first_lsn + static_cast<unsigned>(i)));
    return request;
  }

  // The next report; fails the test if none comes in time.
  JournalReport next() {
    while (seen_.empty()) {
      pollfd ready{reports_->descriptor(), POLLIN, 0};
      if (::poll(&ready, 1, kDeadlineMilliseconds) <= 0) {
        ADD_FAILURE() << "no report in time";
        return JournalStopped{};
      }
      for (JournalReport& report : reports_->take_all()) seen_.push_back(std::move(report));
    }
    JournalReport report = std::move(seen_.front());
    seen_.pop_front();
    return report;
  }
  template <class Report>
  Report expect_next() {
    const JournalReport report = next();
    const auto* found = std::get_if<Report>(&report);
    EXPECT_NE(found, nullptr) << "got report " << report.index();
    return found == nullptr ? Report{} : *found;
  }

  // Used by the thread: they outlive it.
  std::atomic<Errno> write_fault_ = 0;
  std::atomic<Errno> sync_fault_ = 0;
  std::unique_ptr<Inbox<JournalReport>> reports_;
  std::unique_ptr<JournalThread> thread_;
  FakeJournalFiles* files_ = nullptr;  // the thread's
  std::deque<JournalReport> seen_;
};

TEST_F(JournalThreadTest, ReportsWhatIsDurableInOrder) {
  start();
  ASSERT_TRUE(thread_->submit(append(1, 1, 2)));
  ASSERT_TRUE(thread_->submit(append(2, 3, 1)));
  ASSERT_TRUE(thread_->submit(WriteFileRequest{3, "endpoint.json", "{}\n"}));
  ASSERT_TRUE(thread_->submit(append(4, 4, 1)));
  const auto first = expect_next<RecordsDurable>();
  EXPECT_EQ(first.ticket, 1U);
  EXPECT_GE(first.durable_lsn, 2U);
  EXPECT_EQ(expect_next<RecordsDurable>().ticket, 2U);
  EXPECT_EQ(expect_next<FileWritten>().ticket, 3U);
  const auto last = expect_next<RecordsDurable>();
  EXPECT_EQ(last.ticket, 4U);
  EXPECT_EQ(last.durable_lsn, 4U);
  EXPECT_EQ(files_->read("endpoint.json", 0, 100).value(), "{}\n");
  const auto left = files_->after_crash(testing::DataLeft::kSyncedOnly, testing::NamesLeft::kSyncedOnly);
  EXPECT_EQ(read_journal(*left)->last_lsn, 4U);
  EXPECT_EQ(left->read("endpoint.json", 0, 100).value(), "{}\n");
}

TEST_F(JournalThreadTest, ASlowSyncHoldsUpNobodyButTheAnswer) {
  start(4);
  files_->hold_syncs(true);
  ASSERT_TRUE(thread_->submit(append(1, 1, 1)));
  // The thread is in its sync or about to be; at most five more are taken, then the answer is no.
  std::uint64_t taken = 1;
  while (thread_->submit(append(taken + 1, taken + 1, 1))) ASSERT_LT(++taken, 100U);
  EXPECT_TRUE(reports_->take_all().empty());
  files_->hold_syncs(false);
  for (std::uint64_t ticket = 1; ticket <= taken; ++ticket) EXPECT_EQ(expect_next<RecordsDurable>().ticket, ticket);
}

TEST_F(JournalThreadTest, WithoutSpaceSaysSoOnceAndGoesOnWhenThereIsSome) {
  start();
  write_fault_ = ENOSPC;
  ASSERT_TRUE(thread_->submit(append(1, 1, 1)));
  const auto stuck = expect_next<JournalStuck>();
  EXPECT_EQ(stuck.why.code, ErrorCode::kBusy);
  ASSERT_TRUE(thread_->submit(append(2, 2, 1)));
  ASSERT_TRUE(thread_->submit(WriteFileRequest{3, "verdict.json", "{}"}));
  const std::size_t calls = files_->calls();
  // It tries again by itself.
  pollfd none{reports_->descriptor(), POLLIN, 0};
  while (files_->calls() < calls + 4) ASSERT_EQ(::poll(&none, 1, 1), 0) << "a report while stuck";
  write_fault_ = 0;
  expect_next<JournalUnstuck>();
  EXPECT_EQ(expect_next<RecordsDurable>().ticket, 1U);
  EXPECT_EQ(expect_next<RecordsDurable>().ticket, 2U);
  EXPECT_EQ(expect_next<FileWritten>().ticket, 3U);
  testing::expect_only_truth(*read_journal(*files_));
}

TEST_F(JournalThreadTest, FailedStorageIsSaidAndEverythingRefused) {
  start();
  sync_fault_ = EIO;
  ASSERT_TRUE(thread_->submit(append(1, 1, 1)));
  EXPECT_EQ(expect_next<JournalFailed>().why.code, ErrorCode::kInternal);
  EXPECT_EQ(expect_next<RequestRefused>().ticket, 1U);
  sync_fault_ = 0;
  ASSERT_TRUE(thread_->submit(append(2, 2, 1)));
  ASSERT_TRUE(thread_->submit(WriteFileRequest{3, "verdict.json", "{}"}));
  ASSERT_TRUE(thread_->submit(SnapshotRequest{4, "state", {.term = kTerm}}));
  for (const std::uint64_t ticket : {2U, 3U, 4U}) EXPECT_EQ(expect_next<RequestRefused>().ticket, ticket);
  EXPECT_EQ(read_journal(*files_)->last_lsn, 0U);
}

TEST_F(JournalThreadTest, ARemovedDirectoryIsNoticedWithoutARequest) {
  start();
  files_->set_deleted();
  EXPECT_EQ(expect_next<JournalFailed>().why.code, ErrorCode::kGone);
}

TEST_F(JournalThreadTest, SnapshotsWhenAskedAndSaysWhenOneIsDue) {
  start(100, {.snapshot_every = 3});
  ASSERT_TRUE(thread_->submit(append(1, 1, 2)));
  EXPECT_FALSE(expect_next<RecordsDurable>().snapshot_due);
  ASSERT_TRUE(thread_->submit(append(2, 3, 1)));
  EXPECT_TRUE(expect_next<RecordsDurable>().snapshot_due);
  ASSERT_TRUE(thread_->submit(SnapshotRequest{3, "the state", {.term = kTerm}}));
  EXPECT_EQ(expect_next<SnapshotTaken>().ticket, 3U);
  const auto contents = read_journal(*files_);
  ASSERT_TRUE(contents->snapshot.has_value());
  EXPECT_EQ(contents->snapshot->bytes, "the state");
  EXPECT_EQ(contents->snapshot->lsn, 3U);
}

TEST_F(JournalThreadTest, RefusesOneRequestAndGoesOn) {
  start();
  AppendRequest large = append(1, 1, 1);
  large.records.push_back(large.records.front());
  large.records.back().payload.assign(limits::kJournalPayloadBytes + 1, 'x');
  ASSERT_TRUE(thread_->submit(std::move(large)));
  EXPECT_EQ(expect_next<RequestRefused>().ticket, 1U);
  std::uint64_t ticket = 2;
  for (const char* name : {"", ".", "..", "a/b", "snap", "snap.tmp", "journal.0001", "../x", ".hidden"}) {
    ASSERT_TRUE(thread_->submit(WriteFileRequest{ticket, name, "x"}));
    EXPECT_EQ(expect_next<RequestRefused>().ticket, ticket++) << name;
  }
  ASSERT_TRUE(thread_->submit(append(ticket, 1, 1)));
  const auto durable = expect_next<RecordsDurable>();
  EXPECT_EQ(durable.ticket, ticket);
  EXPECT_EQ(durable.durable_lsn, 1U) << "nothing of a refused request is kept";
}

TEST_F(JournalThreadTest, SyncsWhatNobodyWaitsForWithTheNextThatIsWaitedFor) {
  start(100, {}, Duration::seconds(3600));
  AppendRequest patient = append(1, 1, 1);
  patient.patient = true;
  ASSERT_TRUE(thread_->submit(patient));
  patient = append(2, 2, 1);
  patient.patient = true;
  ASSERT_TRUE(thread_->submit(patient));
  // Several looks later nothing is written.
  pollfd none{reports_->descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&none, 1, 50), 0);
  EXPECT_EQ(files_->calls(), 0U);
  ASSERT_TRUE(thread_->submit(append(3, 3, 1)));
  for (std::uint64_t ticket = 1; ticket <= 3; ++ticket) {
    const auto durable = expect_next<RecordsDurable>();
    EXPECT_EQ(durable.ticket, ticket);
    EXPECT_EQ(durable.durable_lsn, 3U);
    EXPECT_EQ(durable.waits, 2U) << "the first segment's bytes, and its name";
    EXPECT_EQ(durable.unwaited, 0U);
  }
}

TEST_F(JournalThreadTest, SyncsWhatNobodyWaitsForWithoutCompanyInTheEnd) {
  start();
  AppendRequest patient = append(1, 1, 1);
  patient.patient = true;
  ASSERT_TRUE(thread_->submit(patient));
  const auto durable = expect_next<RecordsDurable>();
  EXPECT_EQ(durable.waits, 0U);
  EXPECT_EQ(durable.unwaited, 2U);
}

TEST_F(JournalThreadTest, IsHurriedByARequestWithoutRecords) {
  start(100, {}, Duration::seconds(3600));
  AppendRequest patient = append(1, 1, 1);
  patient.patient = true;
  ASSERT_TRUE(thread_->submit(patient));
  ASSERT_TRUE(thread_->submit(append(2, 2, 0)));
  EXPECT_EQ(expect_next<RecordsDurable>().ticket, 1U);
  EXPECT_EQ(expect_next<RecordsDurable>().ticket, 2U);
}

TEST_F(JournalThreadTest, MakesFilesDurableInTheRoundOfTheRecordsThatNeedThem) {
  start();
  ASSERT_EQ(write_file_atomically(*files_, "key", "k", Durability::kLater), 0);
  AppendRequest request = append(1, 1, 1);
  request.beside = {{.name = "key"}};
  ASSERT_TRUE(thread_->submit(std::move(request)));
  EXPECT_EQ(expect_next<RecordsDurable>().waits, 2U);
  const auto left = files_->after_crash(testing::DataLeft::kSyncedOnly, testing::NamesLeft::kSyncedOnly);
  EXPECT_EQ(left->read("key", 0, 100).value(), "k");
}

TEST_F(JournalThreadTest, RefusesRecordsWhoseFileCannotBeMadeDurable) {
  start();
  AppendRequest request = append(1, 1, 1);
  request.beside = {{.name = "key"}};
  ASSERT_TRUE(thread_->submit(std::move(request)));
  EXPECT_NE(expect_next<JournalFailed>().why.message.find("write key"), std::string::npos);
  EXPECT_EQ(expect_next<RequestRefused>().ticket, 1U);
}

TEST_F(JournalThreadTest, AnswersARefusedFileBehindTheRecordsBeforeIt) {
  start(100, {}, Duration::seconds(3600));
  AppendRequest patient = append(1, 1, 1);
  patient.patient = true;
  ASSERT_TRUE(thread_->submit(patient));
  ASSERT_TRUE(thread_->submit(WriteFileRequest{2, "a/b", "x"}));
  EXPECT_EQ(expect_next<RecordsDurable>().ticket, 1U);
  EXPECT_EQ(expect_next<RequestRefused>().ticket, 2U);
}

TEST_F(JournalThreadTest, StopsAfterDoingWhatWasSubmitted) {
  start(1000);
  for (std::uint64_t i = 1; i <= 500; ++i) ASSERT_TRUE(thread_->submit(append(i, i, 1)));
  thread_->begin_stop();
  for (std::uint64_t i = 1; i <= 500; ++i) EXPECT_EQ(expect_next<RecordsDurable>().ticket, i);
  EXPECT_TRUE(expect_next<JournalStopped>().drained);
}

TEST_F(JournalThreadTest, StopsWhileStuckAndSaysWhatWasNotDone) {
  start();
  write_fault_ = ENOSPC;
  ASSERT_TRUE(thread_->submit(append(1, 1, 1)));
  expect_next<JournalStuck>();
  ASSERT_TRUE(thread_->submit(append(2, 2, 1)));
  thread_->begin_stop();
  for (const std::uint64_t ticket : {1U, 2U}) {
    const auto refused = expect_next<RequestRefused>();
    EXPECT_EQ(refused.ticket, ticket);
    EXPECT_EQ(refused.why.code, ErrorCode::kBusy);
  }
  EXPECT_FALSE(expect_next<JournalStopped>().drained);
}

}  // namespace
}  // namespace monarch
