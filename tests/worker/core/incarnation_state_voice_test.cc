// What an incarnation is told and tells: readiness in its three forms, progress, and the events of its keeper.

#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "worker/core/incarnation_state.h"

namespace monarch {
namespace {

using keeper_action::Report;
using keeper_action::SignalRank;
using keeper_action::TellRank;

const Incarnation kKey{RankId{MeshId(0), Rank(3)}, Generation{Term(1), 1}};

Instant at(std::int64_t milliseconds) { return Instant::since_boot(Duration::milliseconds(milliseconds)); }

class Rank3 {
 public:
  explicit Rank3(ReadyKind ready, OrphanPolicy orphan = OrphanPolicy::kHold)
      : state_({.key = kKey,
                .mesh = MeshId(0),
                .gang = GangId(0),
                .orphan = orphan,
                .orphan_ttl = Duration::seconds(60),
                .stop_grace = Duration::seconds(30),
                .ready = ready},
               at(0)) {}

  void to_running() {
    KeeperActions actions;
    state_.forked(42, now_, actions);
    state_.lease(at(6'000), now_, actions);
    state_.executed(actions);
  }
  // The last report of what the call ordered; nothing where it ordered none.
  std::optional<RankReport> report(const std::function<void(KeeperActions&)>& call) {
    KeeperActions actions;
    call(actions);
    std::optional<RankReport> last;
    for (const KeeperAction& action : actions) {
      if (const auto* told = std::get_if<Report>(&action)) last = told->report;
    }
    return last;
  }
  std::optional<RankReport> says(bool ready, const std::string& status = "") {
    keeper_event::Spoke word{kKey, ready, {}};
    word.progress.status = status;
    return report([&](KeeperActions& out) { state_.spoke(word, out); });
  }
  std::optional<RankReport> accepts() {
    return report([&](KeeperActions& out) { state_.accepts_connections(out); });
  }
  // Events and signals, in their order: "lease_low", "stopping", "15".
  std::vector<std::string> orders(const std::function<void(KeeperActions&)>& call) {
    KeeperActions actions;
    call(actions);
    std::vector<std::string> found;
    for (const KeeperAction& action : actions) {
      if (const auto* told = std::get_if<TellRank>(&action)) {
        const std::size_t from = told->json.find("\"event\":\"") + 9;
        found.push_back(told->json.substr(from, told->json.find('"', from) - from));
      }
      if (const auto* signal = std::get_if<SignalRank>(&action)) found.push_back(std::to_string(signal->number));
    }
    return found;
  }
  std::vector<std::string> pass_to(std::int64_t milliseconds) {
    now_ = at(milliseconds);
    return orders([this](KeeperActions& out) {
      state_.enforce_lease(now_, out);
      state_.tick(now_, out);
    });
  }
  std::vector<std::string> lease_until(std::int64_t milliseconds) {
    return orders([&](KeeperActions& out) { state_.lease(at(milliseconds), now_, out); });
  }
  std::vector<std::string> stop(Duration grace) {
    return orders([&](KeeperActions& out) { state_.stop({SIGTERM, grace}, now_, out); });
  }
  std::vector<std::string> tell(const std::string& json) {
    return orders([&](KeeperActions& out) { state_.tell(json, out); });
  }
  IncarnationState& state() { return state_; }
  Instant now() const { return now_; }

 private:
  IncarnationState state_;
  Instant now_ = at(0);
};

using Words = std::vector<std::string>;

TEST(IncarnationReady, IsItsExecutionByDefault) {
  Rank3 rank(ReadyKind::kExec);
  KeeperActions ignored;
  rank.state().forked(42, at(0), ignored);
  rank.state().lease(at(6'000), at(0), ignored);
  EXPECT_FALSE(rank.state().report().ready);
  const auto told = rank.report([&](KeeperActions& out) { rank.state().executed(out); });
  ASSERT_TRUE(told.has_value());
  EXPECT_TRUE(told->ready);
  EXPECT_EQ(told->phase, RankPhase::kRunning);
}

TEST(IncarnationReady, IsKnownOfARankThatWasHeldWhileItWasExecuted) {
  Rank3 rank(ReadyKind::kExec);
  KeeperActions ignored;
  rank.state().forked(42, at(0), ignored);
  rank.state().lease(at(6'000), at(0), ignored);
  (void)rank.pass_to(6'000);
  ASSERT_EQ(rank.state().phase(), IncarnationPhase::kHeld);
  EXPECT_FALSE(rank.report([&](KeeperActions& out) { rank.state().executed(out); }).has_value());
  const auto told = rank.report([&](KeeperActions& out) { rank.state().lease(at(12'000), rank.now(), out); });
  ASSERT_TRUE(told.has_value());
  EXPECT_TRUE(told->ready);
}

TEST(IncarnationReady, IsTheRanksOwnWordWhereTheMeshSaysSo) {
  Rank3 rank(ReadyKind::kNotify);
  rank.to_running();
  EXPECT_FALSE(rank.state().report().ready);
  EXPECT_FALSE(rank.says(false, "loading")->ready);
  EXPECT_FALSE(rank.accepts().has_value());
  EXPECT_TRUE(rank.says(true, "serving")->ready);
  EXPECT_TRUE(rank.says(false, "busy")->ready) << "never taken back";
  EXPECT_EQ(rank.state().report().progress.status, "busy");
}

TEST(IncarnationReady, IsAnOpenPortWhereTheMeshSaysSo) {
  Rank3 rank(ReadyKind::kTcp);
  EXPECT_FALSE(rank.accepts().has_value()) << "somebody else's port";
  rank.to_running();
  EXPECT_FALSE(rank.says(true)->ready);
  EXPECT_TRUE(rank.accepts()->ready);
  EXPECT_FALSE(rank.accepts().has_value()) << "told once";
}

TEST(IncarnationReady, IsNoWordOfAnEndedRank) {
  Rank3 rank(ReadyKind::kNotify);
  rank.to_running();
  KeeperActions ignored;
  RankEnd end;
  end.kind = EndKind::kExited;
  rank.state().exited(end, at(1), ignored);
  EXPECT_TRUE(rank.says(true, "last words")->ready) << "its tree is still going";
  rank.state().tree_empty(ignored);
  EXPECT_FALSE(rank.says(false, "from the dead").has_value());
  EXPECT_EQ(rank.state().report().progress.status, "last words");
}

TEST(IncarnationEvents, TellOfAStopBeforeTheSignalAndOnce) {
  Rank3 rank(ReadyKind::kExec);
  rank.to_running();
  EXPECT_EQ(rank.stop(Duration::seconds(30)), (Words{"stopping", "18", "15"}));
  EXPECT_EQ(rank.stop(Duration::seconds(30)), Words{});
}

TEST(IncarnationEvents, DoNotTellOfAStopThatWasTold) {
  Rank3 rank(ReadyKind::kExec);
  rank.to_running();
  EXPECT_EQ(rank.tell(R"({"v":1,"event":"peer_lost"})"), Words{"peer_lost"});
  EXPECT_EQ(rank.tell(R"({"v":1,"event":"stopping","grace_milliseconds":1})"), Words{"stopping"});
  EXPECT_EQ(rank.stop(Duration::seconds(30)), (Words{"18", "15"}));
}

TEST(IncarnationEvents, DoNotTellOfAKill) {
  Rank3 rank(ReadyKind::kExec);
  rank.to_running();
  EXPECT_EQ(rank.stop(Duration::zero()), Words{});
  EXPECT_EQ(rank.tell(R"({"event":"peer_lost"})"), Words{}) << "nothing can come of it any more";
}

TEST(IncarnationEvents, TellOnceWhenTwoThirdsOfALeaseAreGone) {
  Rank3 rank(ReadyKind::kExec);
  rank.to_running();
  EXPECT_EQ(rank.state().next_due(), at(4'000));
  EXPECT_EQ(rank.pass_to(3'999), Words{});
  EXPECT_EQ(rank.pass_to(4'000), Words{"lease_low"});
  EXPECT_EQ(rank.pass_to(5'000), Words{});
  EXPECT_EQ(rank.state().next_due(), at(6'000));
  EXPECT_EQ(rank.lease_until(11'000), Words{});
  EXPECT_EQ(rank.pass_to(8'999), Words{});
  EXPECT_EQ(rank.pass_to(9'000), Words{"lease_low"});
}

TEST(IncarnationEvents, AreSilentWhileTheLeaseIsRenewed) {
  Rank3 rank(ReadyKind::kExec);
  rank.to_running();
  for (std::int64_t second = 1; second < 20; ++second) {
    EXPECT_EQ(rank.pass_to(second * 1'000), Words{}) << second;
    EXPECT_EQ(rank.lease_until(second * 1'000 + 6'000), Words{}) << second;
  }
}

TEST(IncarnationEvents, DoNotTellOfALeaseThatEndsNothing) {
  Rank3 rank(ReadyKind::kExec, OrphanPolicy::kRun);
  rank.to_running();
  EXPECT_EQ(rank.pass_to(5'000), Words{});
}

TEST(IncarnationEvents, TellNothingOfALeaseToARankThatIsStopping) {
  Rank3 rank(ReadyKind::kExec);
  rank.to_running();
  (void)rank.stop(Duration::seconds(30));
  EXPECT_EQ(rank.pass_to(4'500), Words{});
}

// The number of the answer that was passed on; nothing where none was.
std::optional<std::uint64_t> answered(IncarnationState& state, const CommitAnswer& answer) {
  KeeperActions actions;
  state.commit_answered(answer, actions);
  for (const KeeperAction& action : actions) {
    if (const auto* told = std::get_if<keeper_action::AnswerCommit>(&action)) return told->answer.number;
  }
  return std::nullopt;
}

TEST(IncarnationCommits, AreReportedUntilTheyAreAnswered) {
  Rank3 rank(ReadyKind::kExec);
  rank.to_running();
  const CommitRequest asked{.number = 2, .step = 10, .what = "sha256:ab"};
  const auto told = rank.report([&](KeeperActions& out) { rank.state().commits({kKey, asked}, out); });
  ASSERT_TRUE(told);
  EXPECT_EQ(told->commit, asked);
  EXPECT_FALSE(answered(rank.state(), {.number = 1, .committed = true})) << "of an earlier question";
  EXPECT_EQ(rank.state().report().commit, asked);
  EXPECT_EQ(answered(rank.state(), {.number = 2, .committed = true}), 2U);
  EXPECT_FALSE(rank.state().report().commit);
  EXPECT_FALSE(answered(rank.state(), {.number = 2, .committed = true})) << "said again";
}

TEST(IncarnationCommits, OfARankThatIsHeldAreTheSupervisorsToRefuse) {
  Rank3 rank(ReadyKind::kExec);
  rank.to_running();
  rank.pass_to(6'000);
  ASSERT_EQ(rank.state().phase(), IncarnationPhase::kHeld);
  EXPECT_TRUE(rank.report([&](KeeperActions& out) { rank.state().commits({kKey, {.number = 1}}, out); })->commit);
}

TEST(IncarnationCommits, EndWithTheirRank) {
  Rank3 rank(ReadyKind::kExec);
  rank.to_running();
  KeeperActions actions;
  rank.state().commits({kKey, {.number = 1, .step = 10}}, actions);
  rank.state().exited({.kind = EndKind::kExited}, rank.now(), actions);
  EXPECT_TRUE(rank.state().report().commit) << "it was said before the end";
  rank.state().commits({kKey, {.number = 2, .step = 20}}, actions);
  EXPECT_EQ(rank.state().report().commit->step, 10U) << "nobody is left to be told";
  rank.state().tree_empty(actions);
  ASSERT_TRUE(rank.state().ended());
  EXPECT_FALSE(rank.state().report().commit);
}

}  // namespace
}  // namespace monarch
