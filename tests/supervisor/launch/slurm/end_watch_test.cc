#include "supervisor/launch/slurm/end_watch.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/supervisor/launch/slurm/guarded_calls.h"
#include "tests/transport/base/patience.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

namespace fs = std::filesystem;

// A scontrol of this test's own is in PATH: it writes what stands in a file of the folder, and fails where there is
// none.
class EndOfAJob : public GuardedCallsTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    std::string pattern = (fs::temp_directory_path() / "end-watch-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    std::ofstream(folder_ + "/scontrol") << "#!/bin/sh\necho x >> " << folder_ << "/calls\n"
                                         << "case \"$*\" in *config) cat " << folder_ << "/config;; *) cat " << folder_
                                         << "/job;; esac\n";
    ASSERT_EQ(::chmod((folder_ + "/scontrol").c_str(), 0755), 0);
    std::ofstream(folder_ + "/config") << "KillWait                = 6 sec\n";
    open_calls();
  }
  void TearDown() override {
    watch_.reset();
    calls_.reset();
    fs::remove_all(folder_);
  }

  void watch(Duration warn, Duration again = Duration::seconds(300)) {
    watch_ = std::make_unique<EndWatch>(
        loop(), *calls_,
        EndWatchOptions{
            .job = 7, .environment = {text("PATH=", folder_, ":/usr/bin:/bin")}, .warn = warn, .again = again},
        EndWatchHandlers{.on_foreseen = [this](EndForeseen event) { seen_.push_back(std::move(event)); },
                         .on_ending = [this] { ++endings_; },
                         .on_short = [this](std::string words) { short_.push_back(std::move(words)); }});
    watch_->begin();
  }

  // Whole at once: who reads it meanwhile gets the one before.
  void job(const std::string& state, Duration left, Duration limit, const std::string& rest = "PreemptTime=None") {
    const std::int64_t now = wall_now().nanoseconds_since_epoch / 1'000'000'000;
    const std::int64_t end = now + left.count_milliseconds() / 1'000;
    std::ofstream(folder_ + "/new") << "JobId=7 JobName=a JobState=" << state
                                    << " Reason=None StartTime=" << end - limit.count_milliseconds() / 1'000
                                    << " EndTime=" << end << " " << rest << " Command=x\n";
    fs::rename(folder_ + "/new", folder_ + "/job");
  }

  bool sees(std::size_t count) {
    return run_until([&] { return seen_.size() >= count; });
  }
  bool asked(std::size_t count) {
    return run_until([&] {
      std::ifstream calls(folder_ + "/calls");
      const std::string all{std::istreambuf_iterator<char>(calls), {}};
      return all.size() >= 2 * count && calls_->running() == 0;
    });
  }
  Duration left(std::size_t i) const { return seen_[i].by - boot_now(); }

  std::string folder_;
  std::unique_ptr<EndWatch> watch_;
  std::vector<EndForeseen> seen_;
  std::vector<std::string> short_;
  int endings_ = 0;
};

// Ends are whole seconds: a second that turns between what is written and what is read of it takes one away, and one
// that is a second off is told at once.
TEST_F(EndOfAJob, IsForeseenBeforeItsTimeIsOver) {
  job("RUNNING", Duration::seconds(60) + test_patience(Duration::seconds(3)), Duration::seconds(1'000));
  watch(Duration::seconds(60));
  ASSERT_TRUE(asked(2));
  EXPECT_TRUE(seen_.empty());
  ASSERT_TRUE(sees(1));
  EXPECT_EQ(seen_[0].kind, ForeseenKind::kTimeLimit);
  EXPECT_EQ(seen_[0].why, "the time of Slurm's job 7 is nearly over");
  EXPECT_LE(left(0), Duration::seconds(61));
  EXPECT_GT(left(0), Duration::seconds(50));
}

TEST_F(EndOfAJob, IsLaterOfOneThatWasGivenMoreTime) {
  job("RUNNING", Duration::seconds(60) + test_patience(Duration::seconds(3)), Duration::seconds(1'000));
  watch(Duration::seconds(60));
  ASSERT_TRUE(asked(2));
  job("RUNNING", Duration::seconds(1'000), Duration::seconds(2'000));
  ASSERT_TRUE(asked(3)) << "once more before it speaks";
  EXPECT_TRUE(seen_.empty());
}

TEST_F(EndOfAJob, IsWhatWasSaidLastWhereNobodyAnswersAnyMore) {
  job("RUNNING", Duration::seconds(60) + test_patience(Duration::seconds(2)), Duration::seconds(1'000));
  watch(Duration::seconds(60));
  ASSERT_TRUE(asked(2));
  fs::remove(folder_ + "/job");
  ASSERT_TRUE(sees(1));
  EXPECT_EQ(seen_[0].kind, ForeseenKind::kTimeLimit);
}

TEST_F(EndOfAJob, IsToldATenthBeforeItWhereItIsShortAndSaysSoOnce) {
  job("RUNNING", Duration::seconds(60), Duration::seconds(60));
  watch(Duration::seconds(120), Duration::milliseconds(100));
  ASSERT_TRUE(asked(4));
  EXPECT_TRUE(seen_.empty());
  ASSERT_EQ(short_.size(), 1U);
  EXPECT_EQ(short_[0], "launch.slurm.warn is 2m, and Slurm's job 7 may run for 1m: ranks are told 6s before its end");
}

TEST_F(EndOfAJob, FreezesItAtASignalAndSaysThatItIsPreempted) {
  job("RUNNING", Duration::seconds(30), Duration::seconds(1'000), "PreemptTime=1795408703");
  watch(Duration::zero());
  ASSERT_TRUE(asked(1));
  watch_->on_warned("h2");
  watch_->on_warned("h1");
  ASSERT_EQ(seen_.size(), 1U);
  EXPECT_EQ(seen_[0].by, Instant::never());
  ASSERT_TRUE(sees(2));
  EXPECT_EQ(seen_[1].why, "Slurm preempts its job 7");
  EXPECT_GT(left(1), Duration::seconds(20));
}

TEST_F(EndOfAJob, IsAsFarAsKillAfterASignalOfAnOperators) {
  job("RUNNING", Duration::seconds(5'000), Duration::seconds(10'000));
  watch(Duration::zero());
  ASSERT_TRUE(asked(1));
  watch_->on_warned("h1");
  ASSERT_TRUE(sees(2));
  EXPECT_EQ(seen_[1].why, "Slurm has signalled its job 7");
  EXPECT_LE(left(1), Duration::seconds(6));
}

TEST_F(EndOfAJob, IsAsFarAsKillWhereNobodyAnswers) {
  watch(Duration::zero());
  ASSERT_TRUE(asked(1));
  watch_->on_warned("h1");
  ASSERT_TRUE(sees(2));
  EXPECT_LE(left(1), Duration::seconds(6));
}

TEST_F(EndOfAJob, IsForOthersToFindOutWhereItIsCancelled) {
  job("COMPLETING", Duration::zero(), Duration::seconds(1'000));
  watch(Duration::zero());
  ASSERT_TRUE(asked(1));
  watch_->on_warned("h1");
  ASSERT_TRUE(run_until([&] { return endings_ == 1; }));
  EXPECT_EQ(seen_.size(), 1U);
}

TEST_F(EndOfAJob, IsAsFarAsKillWhereNobodyFindsOutWhy) {
  std::ofstream(folder_ + "/config") << "KillWait                = 1 sec\n";
  job("COMPLETING", Duration::zero(), Duration::seconds(1'000));
  watch(Duration::zero());
  ASSERT_TRUE(asked(1));
  watch_->on_warned("h1");
  ASSERT_TRUE(sees(2));
  EXPECT_EQ(endings_, 1);
  EXPECT_EQ(seen_[1].why, "Slurm has signalled its job 7");
}

}  // namespace
}  // namespace monarch
