#include "supervisor/loop/decider.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "tests/supervisor/core/fixtures.h"
#include "tests/supervisor/journal/fake_journal_files.h"
#include "transport/base/clock.h"

namespace monarch {
namespace {

using testing::Call;
using testing::FakeJournalFiles;

constexpr int kDeadlineMilliseconds = 10'000;
constexpr Term kTerm{1};

JobSpec job() {
  JobSpec spec = fixtures::job_of(1, 1);
  spec.start_timeout = Duration::milliseconds(1);
  return spec;
}

class DeciderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto files = std::make_unique<FakeJournalFiles>();
    files->fault = [this](Call call, const std::string&) -> Errno { return call == Call::kWrite ? fault_.load() : 0; };
    auto writer = JournalWriter::create(*files, JournalContents{}, {});
    auto loop = EventLoop::create();
    auto reports = Inbox<JournalReport>::create(1'000);
    ASSERT_TRUE(writer.ok() && loop.ok() && reports.ok());
    loop_ = std::move(*loop);
    reports_ = std::move(*reports);
    auto thread = JournalThread::start({.files = std::move(files),
                                        .writer = std::move(*writer),
                                        .reports = reports_.get(),
                                        .capacity = 100,
                                        .patience = Duration::seconds(3600)});
    ASSERT_TRUE(thread.ok());
    journal_ = std::move(*thread);
    decider_ = std::make_unique<Decider>(
        *loop_, core_, *journal_, kTerm, [this](const Action& action) { performed_.push_back(action); },
        [this] { ++due_; });
  }

  // The reports that have come, at least one.
  std::vector<JournalReport> reports() {
    pollfd ready{reports_->descriptor(), POLLIN, 0};
    EXPECT_EQ(::poll(&ready, 1, kDeadlineMilliseconds), 1) << "no report in time";
    return reports_->take_all();
  }

  std::atomic<Errno> fault_ = 0;
  JobCore core_{job(), virtual_hosts(1), {.job_id = "test-0001", .log_directory = "/logs"}};
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<Inbox<JournalReport>> reports_;
  std::unique_ptr<JournalThread> journal_;
  std::unique_ptr<Decider> decider_;
  std::vector<Action> performed_;
  int due_ = 0;
};

TEST_F(DeciderTest, ActsOnceTheRecordIsDurable) {
  const std::uint64_t ticket = decider_->decide(JobBegun{.term = kTerm, .job = {}});
  EXPECT_TRUE(performed_.empty());
  while (!decider_->all_durable()) {
    for (const JournalReport& report : reports()) decider_->on_durable(std::get<RecordsDurable>(report));
  }
  EXPECT_EQ(decider_->durable_ticket(), ticket);
  EXPECT_FALSE(performed_.empty());
}

TEST_F(DeciderTest, DoesInTurnsWhatItOrdersOfManyHosts) {
  constexpr std::uint32_t kHosts = 500;
  JobCore many(fixtures::job_of(kHosts, 1), virtual_hosts(kHosts), {.job_id = "test-0001", .log_directory = "/logs"});
  std::vector<HostId> launched;
  Decider decider(
      *loop_, many, *journal_, kTerm,
      [&](const Action& action) {
        if (const auto* launch = std::get_if<LaunchWorker>(&action)) launched.push_back(launch->host);
      },
      [] {});
  (void)decider.decide(JobBegun{.term = kTerm, .job = {}});
  bool then = false;
  decider.when_durable([&] {
    EXPECT_EQ(launched.size(), kHosts) << "what was decided before is done before";
    then = true;
  });
  while (decider.durable_ticket() == 0) {
    for (const JournalReport& report : reports()) decider.on_durable(std::get<RecordsDurable>(report));
  }
  EXPECT_GT(launched.size(), 0U);
  EXPECT_LT(launched.size(), kHosts / 4) << "the loop hears in between";
  EXPECT_FALSE(decider.all_durable());
  int turns = 0;
  for (; !then && turns < 100; ++turns) loop_->turn();
  EXPECT_GE(turns, 4);
  EXPECT_TRUE(decider.all_durable());
  EXPECT_TRUE(std::is_sorted(launched.begin(), launched.end()));
}

TEST_F(DeciderTest, DoesNothingMoreOfItOnceItIsAbandoned) {
  constexpr std::uint32_t kHosts = 500;
  JobCore many(fixtures::job_of(kHosts, 1), virtual_hosts(kHosts), {.job_id = "test-0001", .log_directory = "/logs"});
  std::size_t done = 0;
  Decider decider(
      *loop_, many, *journal_, kTerm, [&](const Action&) { ++done; }, [] {});
  (void)decider.decide(JobBegun{.term = kTerm, .job = {}});
  while (decider.durable_ticket() == 0) {
    for (const JournalReport& report : reports()) decider.on_durable(std::get<RecordsDurable>(report));
  }
  const std::size_t before = done;
  EXPECT_GT(before, 0U);
  decider.abandon();
  for (int turn = 0; turn < 5; ++turn) loop_->turn();
  EXPECT_EQ(done, before);
}

TEST_F(DeciderTest, TellsOnceWhatWasDecidedIsDurableInTheOrderOfAsking) {
  std::vector<int> told;
  decider_->when_durable([&] { told.push_back(1); });
  EXPECT_EQ(told, (std::vector{1})) << "nothing is on its way";
  (void)decider_->decide(JobBegun{.term = kTerm, .job = {}});
  decider_->when_durable([&] { told.push_back(2); });
  decider_->when_durable([&] {
    EXPECT_FALSE(performed_.empty()) << "what was decided before is done before";
    told.push_back(3);
  });
  EXPECT_EQ(told, (std::vector{1}));
  while (!decider_->all_durable()) {
    for (const JournalReport& report : reports()) decider_->on_durable(std::get<RecordsDurable>(report));
  }
  EXPECT_EQ(told, (std::vector{1, 2, 3}));
}

// It is decided like everything else: others look at what has changed then.
TEST_F(DeciderTest, LeavesItToItsOwnerToDecideWhatADeadlineChanges) {
  (void)decider_->decide(JobBegun{.term = kTerm, .job = {}});
  // That of a host's launch may come before that of the start.
  for (int told = 0; core_.state().phase == JobPhase::kStarting; told = due_) {
    while (due_ == told) loop_->run_once();
    EXPECT_EQ(core_.state().phase, JobPhase::kStarting);
    (void)decider_->decide(DeadlinePassed{});
  }
}

// A record that lets nothing out waits for company, and somebody who waits for it is that.
TEST_F(DeciderTest, HurriesARecordThatSomebodyWaitsFor) {
  (void)decider_->decide(JobBegun{.term = kTerm, .job = {}});
  while (!decider_->all_durable()) {
    for (const JournalReport& report : reports()) decider_->on_durable(std::get<RecordsDurable>(report));
  }
  const std::uint64_t told = decider_->decide(HostsHeld{.silent = 1, .of = 1, .until = boot_now()});
  pollfd none{reports_->descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&none, 1, 50), 0) << "nobody waits for it";
  bool heard = false;
  decider_->when_durable([&] { heard = true; });
  while (!heard) {
    for (const JournalReport& report : reports()) decider_->on_durable(std::get<RecordsDurable>(report));
  }
  EXPECT_GE(decider_->durable_ticket(), told);
  EXPECT_TRUE(decider_->all_durable());
}

// Its records go with that of what ended it, and it is told when they are durable.
TEST_F(DeciderTest, WritesTheEndOfTheJobDownAtOnce) {
  (void)decider_->decide(JobBegun{.term = kTerm, .job = {}});
  const auto finishes = [&] {
    return std::count_if(performed_.begin(), performed_.end(),
                         [](const Action& action) { return std::holds_alternative<FinishJob>(action); });
  };
  (void)decider_->decide(StopOrdered{.request = {.how = StopHow::kKill, .who = "a test"}});
  (void)decider_->decide(WorkerEnded{.host = HostId(0), .how = "it ended", .orderly = true});
  EXPECT_EQ(core_.state().phase, JobPhase::kEnded);
  EXPECT_EQ(finishes(), 1) << "before anything is durable";
  EXPECT_EQ(performed_.size(), 1U) << "and nothing else";
  while (!decider_->all_durable()) {
    for (const JournalReport& report : reports()) decider_->on_durable(std::get<RecordsDurable>(report));
  }
  EXPECT_EQ(finishes(), 1);
}

TEST_F(DeciderTest, MakesFilesDurableWithTheNextDecision) {
  decider_->with_next({{.name = "key"}});
  (void)decider_->decide(JobBegun{.term = kTerm, .job = {}});
  bool refused = false;
  while (!refused) {
    for (const JournalReport& report : reports()) refused = refused || std::holds_alternative<RequestRefused>(report);
  }
  EXPECT_TRUE(performed_.empty()) << "there is no such file";
}

TEST_F(DeciderTest, NeverTellsOfWhatTheJournalRefused) {
  bool told = false;
  fault_ = EIO;
  (void)decider_->decide(JobBegun{.term = kTerm, .job = {}});
  decider_->when_durable([&] { told = true; });
  bool refused = false;
  while (!refused) {
    for (const JournalReport& report : reports()) {
      const auto* bad = std::get_if<RequestRefused>(&report);
      if (bad != nullptr) refused = !decider_->on_refused(bad->ticket);
    }
  }
  decider_->when_durable([&] { told = true; });
  EXPECT_FALSE(told);
}

TEST_F(DeciderTest, DoesNothingThatTheJournalRefused) {
  fault_ = EIO;
  const std::uint64_t ticket = decider_->decide(JobBegun{.term = kTerm, .job = {}});
  bool refused = false;
  while (!refused) {
    for (const JournalReport& report : reports()) {
      const auto* answer = std::get_if<RequestRefused>(&report);
      refused = refused || (answer != nullptr && answer->ticket == ticket);
    }
  }
  EXPECT_FALSE(decider_->on_refused(ticket));
  EXPECT_TRUE(performed_.empty());
  // Nor anything after it.
  const JobState before = core_.state();
  const std::uint64_t later = decider_->decide(StopOrdered{.request = {.who = "a test"}});
  decider_->on_durable({.ticket = later, .durable_lsn = 9, .snapshot_due = false});
  EXPECT_TRUE(performed_.empty());
  EXPECT_EQ(core_.state().phase, before.phase);
  EXPECT_FALSE(decider_->all_durable());
}

TEST_F(DeciderTest, GoesOnWithoutAFileThatCouldNotBeWritten) {
  bool called = false;
  const std::uint64_t ticket =
      decider_->write_file({.name = "verdict.json", .bytes = "{}\n"}, [&called] { called = true; });
  EXPECT_TRUE(decider_->on_refused(ticket));
  EXPECT_TRUE(called);
}

TEST_F(DeciderTest, AsksForOneSnapshotThoughEveryRecordOfAFlushSaysThatItIsDue) {
  const std::uint64_t first = decider_->decide(JobBegun{.term = kTerm, .job = {}});
  const std::uint64_t second = decider_->decide(StopOrdered{.request = {.who = "a test"}});
  decider_->on_durable({.ticket = first, .durable_lsn = 1, .snapshot_due = true});
  decider_->on_durable({.ticket = second, .durable_lsn = 2, .snapshot_due = true});
  journal_->begin_stop();
  int snapshots = 0;
  for (bool stopped = false; !stopped;) {
    for (const JournalReport& report : reports()) {
      snapshots += std::holds_alternative<SnapshotTaken>(report) ? 1 : 0;
      stopped = stopped || std::holds_alternative<JournalStopped>(report);
    }
  }
  EXPECT_EQ(snapshots, 1);
}

}  // namespace
}  // namespace monarch
