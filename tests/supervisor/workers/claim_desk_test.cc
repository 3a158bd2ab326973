#include "supervisor/workers/claim_desk.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/job/roster.h"
#include "tests/supervisor/core/fixtures.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

constexpr ClaimOwner kMe{7};
constexpr HostId kHere{0};

// Four slots on each of two hosts; timers, the journal and the network are what the test says.
class ClaimDeskTest : public ::testing::Test {
 protected:
  ClaimDeskTest() : job_(spec()) {
    job_.begin();
    job_.join(0);
    job_.join(1);
    restart();
  }
  static JobSpec spec() {
    JobSpec spec = fixtures::job_that_recovers(2, 4, 0, 1);
    spec.meshes[0].gang.scope = GangScope::kEach;
    spec.meshes[0].idle = spec.meshes[0].sidecar = true;
    return spec;
  }
  // The next supervisor knows what the core knows.
  void restart() {
    timers_.clear();
    desk_ = std::make_unique<ClaimDesk>(
        job_.core,
        ClaimDeskOptions{
            .decide =
                [this](const CoreEvent& event) {
                  job_.step(event);
                  desk_->changed();
                },
            .when_durable =
                [this](std::function<void()> then) {
                  if (writes_) return then();
                  undurable_.push_back(std::move(then));
                },
            .at = [this](Instant when, std::function<void()> then) { timers_.emplace(when, std::move(then)); },
            .now = [this] { return now_; },
            .send = [this](HostId host, const ClaimAnswer& answer) { sent_.emplace_back(host, answer); },
            .roster_of = [this](HostId) { return roster_ ? &*roster_ : nullptr; }});
  }
  void pass(Duration time) {
    now_ = now_ + time;
    while (!timers_.empty() && timers_.begin()->first <= now_) {
      const auto due = timers_.extract(timers_.begin());
      due.mapped()();
    }
  }
  void look() {
    roster_ = make_roster({.spec = job_.core.spec(),
                           .state = job_.core.state(),
                           .placement = job_.core.placement(),
                           .pool = job_.core.hosts(),
                           .posts = std::vector<PostPlace>(2),
                           .failures = {}});
    desk_->told(kHere);
  }
  static PostWish wish_of(std::uint64_t number, std::uint32_t count, std::uint64_t let_go = 0) {
    PostWish wish{.number = number, .owner = kMe, .let_go = let_go, .what = {}};
    wish.what.count = count;
    return wish;
  }
  void hear(std::vector<PostWish> wishes, bool is_there = true, std::uint64_t start = 1) {
    PostReport report{.port = 8'000, .start = start};
    report.wishes = std::move(wishes);
    if (is_there) report.owners = {kMe};
    desk_->hear(kHere, report, now_ - on_its_way_);
  }
  // "1: trainer/0-1", or its number and why not.
  std::vector<std::string> sent() {
    std::vector<std::string> all;
    for (const auto& [host, answer] : std::exchange(sent_, {})) {
      const PostGranted& granted = answer.granted;
      std::string ranks;
      for (const Rank rank : granted.ranks) ranks += text(' ', rank.value());
      all.push_back(text(granted.number, ": ", granted.error, granted.mesh, ranks));
    }
    return all;
  }
  std::size_t claims() const { return job_.core.state().claims.claims.size(); }
  void claim() {
    hear({wish_of(1, 2)});
    look();
    hear({});
    sent_.clear();
    ASSERT_EQ(claims(), 1U);
  }

  using Texts = std::vector<std::string>;
  fixtures::Driver job_;
  Instant now_ = Instant::since_boot(Duration::seconds(100));
  Duration on_its_way_;  // of reports
  std::multimap<Instant, std::function<void()>> timers_;
  std::vector<std::function<void()>> undurable_;
  bool writes_ = true;
  std::optional<Roster> roster_;
  std::vector<std::pair<HostId, ClaimAnswer>> sent_;
  std::unique_ptr<ClaimDesk> desk_;
};

TEST_F(ClaimDeskTest, AnswersBehindTheRosterThatHasTheSlots) {
  look();
  writes_ = false;
  hear({wish_of(1, 2)});
  ASSERT_EQ(undurable_.size(), 1U);
  undurable_[0]();
  EXPECT_EQ(sent(), Texts{}) << "its post would say that nobody has claimed them";
  look();
  EXPECT_EQ(sent(), Texts{"1: trainer 0 1"});
  EXPECT_EQ(job_.gang(1).phase, GangPhase::kReserving);
}

TEST_F(ClaimDeskTest, WaitsForTheRecordOfWhatItHasDecidedLast) {
  writes_ = false;
  hear({wish_of(1, 3)});
  hear({}, false);
  pass(ClaimDesk::kComesBack);
  hear({}, false);
  ASSERT_EQ(claims(), 0U) << "who wished has left";
  hear({wish_of(1, 3)});
  look();
  ASSERT_EQ(undurable_.size(), 2U);
  undurable_[0]();
  EXPECT_EQ(sent(), Texts{}) << "that was the claim before";
  undurable_[1]();
  EXPECT_EQ(sent(), Texts{"1: trainer 0 1 2"});
}

TEST_F(ClaimDeskTest, ClaimsOnceHoweverOftenItIsAsked) {
  hear({wish_of(1, 2)});
  hear({wish_of(1, 2)});
  look();
  EXPECT_EQ(sent(), Texts{"1: trainer 0 1"});
  hear({wish_of(1, 2)});
  EXPECT_EQ(sent(), Texts{"1: trainer 0 1"}) << "it was lost on the way";
  restart();
  hear({wish_of(1, 2)});
  EXPECT_EQ(sent(), Texts{"1: trainer 0 1"}) << "by the next supervisor, too";
  EXPECT_EQ(claims(), 1U);
}

TEST_F(ClaimDeskTest, ARefusalStandsAsLongAsItIsAsked) {
  hear({wish_of(1, 3), wish_of(2, 2)});
  look();
  const std::string refused = "it wants 2 slots of mesh trainer on v1, and 1 of 4 are idle: claim 1 (3) has the others";
  EXPECT_EQ(sent(), (Texts{"2: " + refused, "1: trainer 0 1 2"}));
  hear({wish_of(2, 2), wish_of(3, 1, 1)});
  EXPECT_EQ(sent(), (Texts{"2: " + refused, "3: "})) << "its process has been told so";
}

TEST_F(ClaimDeskTest, ARefusalThatMayBeOnItsWayStands) {
  hear({wish_of(1, 4)});
  look();
  hear({wish_of(2, 1)});
  ASSERT_EQ(sent().size(), 2U);
  hear({}, false);
  hear({wish_of(3, 1, 1)});
  ASSERT_EQ(claims(), 0U);
  sent_.clear();
  hear({wish_of(2, 1)});
  EXPECT_EQ(claims(), 0U) << "it is said anew, after a break of its connection";
  EXPECT_EQ(sent().size(), 1U);
  hear({});
  pass(ClaimDesk::kComesBack);
  hear({});
  hear({wish_of(2, 1)});
  EXPECT_EQ(claims(), 1U);
}

TEST_F(ClaimDeskTest, LetsGoWhatItIsToldTo) {
  claim();
  hear({wish_of(2, 1, 1)});
  EXPECT_EQ(sent(), Texts{"2: "});
  EXPECT_EQ(claims(), 0U);
  hear({wish_of(3, 1, 1)});
  EXPECT_EQ(sent(), Texts{"3: "}) << "let go already";
}

TEST_F(ClaimDeskTest, LetsGoWhatThoseHaveWhoAreGone) {
  claim();
  pass(ClaimDesk::kComesBack);
  hear({}, false);
  EXPECT_EQ(claims(), 1U);
  pass(Duration::milliseconds(500));
  hear({}, true);
  hear({}, false);
  pass(Duration::milliseconds(900));
  hear({}, false);
  EXPECT_EQ(claims(), 1U) << "it was there between";
  pass(Duration::milliseconds(100));
  hear({}, false);
  EXPECT_EQ(claims(), 0U);
}

TEST_F(ClaimDeskTest, CountsForHowLongSomebodyIsGoneWhereHeIs) {
  claim();
  pass(ClaimDesk::kComesBack);
  hear({}, false);
  pass(ClaimDesk::kGone);
  on_its_way_ = ClaimDesk::kGone - Duration::milliseconds(1);
  hear({}, false);
  EXPECT_EQ(claims(), 1U) << "it was said at once, and came late";
  pass(ClaimDesk::kGone);
  hear({}, false);
  EXPECT_EQ(claims(), 0U);
}

TEST_F(ClaimDeskTest, GivesWhoLostHisPostTimeToComeBack) {
  claim();
  pass(ClaimDesk::kComesBack);
  hear({}, false, 2);
  pass(ClaimDesk::kComesBack - Duration::milliseconds(1));
  hear({}, false, 2);
  EXPECT_EQ(claims(), 1U);
  hear({}, true, 2);
  pass(ClaimDesk::kComesBack);
  hear({}, true, 2);
  EXPECT_EQ(claims(), 1U);
  restart();
  hear({}, false, 2);
  pass(ClaimDesk::kGone);
  hear({}, false, 2);
  EXPECT_EQ(claims(), 1U) << "a new supervisor waits as long";
  pass(ClaimDesk::kComesBack);
  hear({}, false, 2);
  EXPECT_EQ(claims(), 0U);
}

TEST_F(ClaimDeskTest, LetsGoWhatThoseHaveWhoseHostIsLost) {
  claim();
  job_.step(WorkerEnded{.host = kHere, .how = "killed by SIGKILL"});
  desk_->changed();
  pass(ClaimDesk::kComesBack - Duration::milliseconds(1));
  EXPECT_EQ(claims(), 1U);
  pass(Duration::milliseconds(1));
  EXPECT_EQ(claims(), 0U);
}

TEST_F(ClaimDeskTest, DecidesAnewAboutAWishOfAHostThatWasLost) {
  hear({wish_of(1, 2)});
  look();
  sent_.clear();
  job_.step(WorkerEnded{.host = kHere, .how = "killed by SIGKILL"});
  desk_->changed();
  pass(ClaimDesk::kComesBack);
  ASSERT_EQ(claims(), 0U);
  for (int i = 0; i < 10 && job_.host(0).phase != HostPhase::kLaunching; ++i) job_.pass_deadline();
  job_.join(0);
  hear({wish_of(1, 2)}, true, 2);
  EXPECT_EQ(claims(), 1U) << "its process has outlived the worker, and says it to the next post";
}

}  // namespace
}  // namespace monarch
