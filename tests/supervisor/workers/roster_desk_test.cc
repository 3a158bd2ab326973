#include "supervisor/workers/roster_desk.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

// A job of a gang on each of two hosts; timers, the journal and the network are what the test says.
class RosterDeskTest : public ::testing::Test {
 protected:
  RosterDeskTest() : job_(fixtures::job_that_recovers(2, 1, 4)) {
    job_.run_all();
    start();
  }

  void start(std::optional<Instant> returned = {}) {
    timers_.clear();
    desk_ = std::make_unique<RosterDesk>(
        job_.core,
        RosterDeskOptions{
            .send =
                [this](HostId host, const Roster& roster) {
                  if (!reachable_) return false;
                  sent_.emplace_back(host, roster);
                  return true;
                },
            .when_durable =
                [this](std::function<void()> then) {
                  if (writes_) return then();
                  undurable_.push_back(std::move(then));
                },
            .at = [this](Instant when, std::function<void()> then) { timers_.emplace(when, std::move(then)); },
            .now = [this] { return now_; },
            .tell_people = [this](HostId, const PostWord& word) { told_people_.push_back(word.text); },
            .post_ended = [this](HostId host,
                                 const std::string& how) { ended_.push_back(text(host.value(), ": ", how)); },
            .returned = returned});
  }
  void pass(Duration time) {
    now_ = now_ + time;
    while (!timers_.empty() && timers_.begin()->first <= now_) {
      const auto due = timers_.extract(timers_.begin());
      due.mapped()();
    }
  }
  void step(const CoreEvent& event) {
    job_.step(event);
    desk_->changed();
  }
  // A beat of a post that goes by this roster.
  void hear(std::uint32_t host, std::uint64_t number, std::uint16_t port = 8'000) {
    PostReport report;
    report.port = port;
    report.roster_term = Term(1);
    report.roster_number = number;
    desk_->hear(HostId(host), report);
  }
  void both_are_there() {
    hear(0, 0);
    hear(1, 0);
    pass(RosterDesk::kFloor);
    sent_.clear();
  }
  void end_rank(std::uint32_t rank) {
    job_.ended(rank, fixtures::exited(0));
    desk_->changed();
  }

  fixtures::Driver job_;
  Instant now_ = Instant::since_boot(Duration::seconds(100));
  std::multimap<Instant, std::function<void()>> timers_;
  std::vector<std::function<void()>> undurable_;
  bool writes_ = true;
  bool reachable_ = true;
  std::vector<std::pair<HostId, Roster>> sent_;
  std::vector<std::string> told_people_;
  std::vector<std::string> ended_;
  std::unique_ptr<RosterDesk> desk_;
};

TEST_F(RosterDeskTest, TellsAllHostsOfAChangeSoon) {
  hear(0, 0);
  pass(RosterDesk::kFloor);
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(sent_[0].second.number, 1U);
  EXPECT_EQ(sent_[0].second.hosts[0].peer.port, 8'000);
  sent_.clear();
  end_rank(1);
  EXPECT_TRUE(sent_.empty());
  pass(RosterDesk::kFloor);
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(sent_[1].second.number, 2U);
  EXPECT_EQ(sent_[1].second.runs[1].state, RosterState::kEnded);
}

TEST(PostWords, AreNoSentencesOfOurs) {
  const std::string forged = "v2: rank 0 failed\n2026-11-28 supervisor warning: gang lost";
  const JobEvent waiting = post_word_event("v1", {.number = 1, .kind = PostWordKind::kWaiting, .text = forged});
  EXPECT_EQ(waiting.message, "the post of v1 says: v2: rank 0 failed\\x0a2026-11-28 supervisor warning: gang lost");
  EXPECT_EQ(waiting.host, "v1");
  EXPECT_EQ(waiting.kind, EventKind::kCallWaiting);
  const JobEvent ended = post_ended_event("v1", forged);
  EXPECT_EQ(ended.message,
            "the post of v1 has ended, and another one was started; its host says: v2: rank 0 "
            "failed\\x0a2026-11-28 supervisor warning: gang lost");
  EXPECT_EQ(ended.host, "v1");
}

TEST_F(RosterDeskTest, PassesOnOnceWhatAPostHasToSay) {
  PostReport report{.port = 8'000, .roster_term = Term(1), .start = 1};
  const auto say = [&](std::uint64_t start, std::vector<PostWord> words) {
    report.start = start;
    report.words = std::move(words);
    desk_->hear(HostId(1), report);
    return std::exchange(told_people_, {});
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(say(1, {{.number = 1, .text = "a"}}), Words{"a"});
  EXPECT_EQ(say(1, {{.number = 1, .text = "a"}}), Words{});
  EXPECT_EQ(say(1, {{.number = 1, .text = "a"}, {.number = 3, .text = "c"}}), Words{"c"});
  EXPECT_EQ(say(2, {}), Words{});
  EXPECT_EQ(say(2, {{.number = 1, .text = "d"}}), Words{"d"}) << "a later start counts anew";
  // Who came back does not say again what was said before.
  start(now_);
  EXPECT_EQ(say(2, {{.number = 1, .text = "d"}}), Words{});
  EXPECT_EQ(say(2, {{.number = 1, .text = "d"}, {.number = 2, .text = "e"}}), Words{"e"});
}

TEST_F(RosterDeskTest, TellsOnceWhoWaitsThatThePostOfTheFirstHostAnswers) {
  std::vector<std::string> told;
  const auto wait = [&](std::uint64_t viewer, const std::string& word) {
    desk_->when_served(viewer, [&told, word] { told.push_back(word); });
  };
  wait(1, "a");
  wait(1, "of the same viewer");
  wait(2, "of one that has left");
  wait(3, "c");
  desk_->forget(2);
  hear(0, 0, 0);
  hear(1, 0);
  EXPECT_FALSE(desk_->serves(HostId(0)));
  EXPECT_TRUE(desk_->serves(HostId(1)));
  EXPECT_EQ(told, std::vector<std::string>{}) << "v1 is there, and has none yet";
  hear(0, 0);
  EXPECT_EQ(told, (std::vector<std::string>{"of the same viewer", "c"}));
  wait(1, "at once");
  EXPECT_EQ(told.back(), "at once");
  hear(1, 0);
  EXPECT_EQ(told.size(), 3U);
}

TEST_F(RosterDeskTest, WaitsForNoPostOfAHostThatIsLost) {
  std::vector<std::string> told;
  desk_->when_served(1, [&told] { told.emplace_back("told"); });
  job_.step(WorkerEnded{.host = HostId(0), .how = "killed by SIGKILL"});
  hear(1, 0);
  EXPECT_EQ(told.size(), 1U);
}

TEST_F(RosterDeskTest, TellsOnceHowAPostHasEnded) {
  PostReport report{.port = 8'000, .roster_term = Term(1), .start = 1};
  desk_->hear(HostId(1), report);
  EXPECT_EQ(ended_, std::vector<std::string>{}) << "there was none before";
  report.start = 2;
  report.before = "killed by SIGKILL";
  for (int times = 0; times < 3; ++times) desk_->hear(HostId(1), report);
  EXPECT_EQ(ended_, std::vector<std::string>{"1: killed by SIGKILL"});
  report.start = 1;
  desk_->hear(HostId(1), report);
  report.start = 2;
  desk_->hear(HostId(1), report);
  EXPECT_EQ(ended_.size(), 1U) << "starts are ordered";
  // Who came back does not say again what was said before.
  start(now_);
  desk_->hear(HostId(1), report);
  EXPECT_EQ(ended_.size(), 1U);
}

TEST_F(RosterDeskTest, IsMadeToTellSoMuchAMinuteByAHostAndNoMore) {
  PostReport report{.port = 8'000, .roster_term = Term(1), .start = 1, .before = "killed by SIGKILL"};
  for (; report.start <= 100; ++report.start) desk_->hear(HostId(1), report);
  EXPECT_EQ(ended_.size(), WordBudget::kAMinute);
  pass(Duration::seconds(60));
  desk_->hear(HostId(1), report);
  EXPECT_EQ(ended_.size(), WordBudget::kAMinute + 1);
}

TEST_F(RosterDeskTest, TellsChangesThatComeTogetherAsOneAndNothingWhereNothingIsAnother) {
  both_are_there();
  for (int times = 0; times < 10; ++times) desk_->changed();
  pass(RosterDesk::kFloor);
  EXPECT_TRUE(sent_.empty());
  EXPECT_TRUE(timers_.empty());
  end_rank(1);
  desk_->changed();
  pass(RosterDesk::kFloor);
  EXPECT_EQ(sent_.size(), 2U);
}

TEST_F(RosterDeskTest, TellsNothingThatIsNotDurable) {
  both_are_there();
  writes_ = false;
  end_rank(1);
  pass(Duration::seconds(1));
  EXPECT_TRUE(sent_.empty());
  hear(0, 1);
  EXPECT_TRUE(sent_.empty());
  for (const auto& then : undurable_) then();
  EXPECT_EQ(sent_.size(), 2U);
}

TEST_F(RosterDeskTest, TellsAPostAgainThatGoesByAnOlderOne) {
  both_are_there();
  hear(0, 1);
  EXPECT_TRUE(sent_.empty());
  hear(0, 0);
  EXPECT_TRUE(sent_.empty()) << "it may still be on its way";
  pass(job_.core.spec().supervision.heartbeat);
  hear(0, 0);
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(sent_[0].first, HostId(0));
  reachable_ = false;
  pass(Duration::seconds(5));
  hear(1, 0);
  reachable_ = true;
  hear(1, 0);
  EXPECT_EQ(sent_.size(), 2U) << "what could not be sent is not on its way";
}

TEST_F(RosterDeskTest, SaysThatAHostHasNoPostOnceNoneHasComeForLong) {
  both_are_there();
  hear(1, 0, 0);
  pass(ServantPorts::kGoneAfter);
  hear(1, 0, 0);
  pass(RosterDesk::kFloor);
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(sent_[0].second.hosts[1].peer.port, 0);
  EXPECT_FALSE(sent_[0].second.hosts[1].without_post.empty());
  sent_.clear();
  hear(1, 0, 9'000);
  pass(RosterDesk::kFloor);
  ASSERT_FALSE(sent_.empty());
  EXPECT_TRUE(sent_[0].second.hosts[1].without_post.empty());
}

TEST_F(RosterDeskTest, SaysNothingAfterAReturnUntilItKnowsWherePostsAre) {
  start(now_);
  hear(0, 7);
  pass(Duration::seconds(1));
  EXPECT_TRUE(sent_.empty());
  hear(1, 7);
  pass(Duration::seconds(1));
  EXPECT_EQ(sent_.size(), 2U);
  start(now_);
  sent_.clear();
  hear(0, 7);
  pass(ServantPorts::kCalledWithin - Duration::milliseconds(1));
  EXPECT_TRUE(sent_.empty());
  pass(Duration::seconds(1));
  EXPECT_EQ(sent_.size(), 2U) << "one that does not come is not waited for without end";
}

TEST_F(RosterDeskTest, KeepsTheNewestFailuresInTheOrderOfTheirNumbers) {
  both_are_there();
  for (std::uint64_t i = 1; i <= RosterDesk::kFailures + 3; ++i) {
    JobEvent event;
    event.kind = EventKind::kGangFailed;
    event.mesh = "trainer";
    event.generation = i;
    event.message = "killed by SIGKILL [restart 1 of 4]";
    event.details = {{"gang", "1"}};
    desk_->told(event);
    event.kind = EventKind::kGangReady;
    desk_->told(event);
  }
  pass(RosterDesk::kFloor);
  ASSERT_EQ(sent_.size(), 2U);
  const std::vector<RosterFailure>& failures = sent_[0].second.failures;
  ASSERT_EQ(failures.size(), RosterDesk::kFailures);
  EXPECT_EQ(failures.front().generation, 4U);
  EXPECT_EQ(failures.front().first, Rank(1));
  EXPECT_EQ(failures.front().count, 1U);
  EXPECT_EQ(failures.front().cause, "killed by SIGKILL [restart 1 of 4]");
  for (std::size_t i = 1; i < failures.size(); ++i) EXPECT_EQ(failures[i].number, failures[i - 1].number + 1);
}

}  // namespace
}  // namespace monarch
