#include "worker/core/post/caller_gate.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/core/post/post_hosts.h"

namespace monarch {
namespace {

constexpr HostId kThere{1};
constexpr RankId kSecond{MeshId(0), Rank(2)};  // on that host by some_roster()

CallerName named(std::uint64_t generation, RankId rank = kSecond, std::string mesh = "work") {
  return {.mesh = std::move(mesh), .rank = rank, .generation = generation};
}

class CallerGateTest : public ::testing::Test {
 protected:
  CallerGateTest() { (void)roster_.take(some_roster()); }

  void ask(AskNumber number, CallerName caller, HostId from = kThere) {
    auto content = std::make_shared<const CallContent>(CallContent{MeshId(0), {"greeter", "any", "*"}, caller, {}});
    const DeliveryOrigin origin{.call = {}, .root = from, .root_start = {1, 1}, .number = number};
    gate_.ask({origin, kFirst, std::move(content)}, now_);
  }
  std::vector<AskNumber> believed() {
    std::vector<AskNumber> numbers;
    for (const PeerLines::Ordered& one : gate_.take_believed()) numbers.push_back(one.origin.number);
    return numbers;
  }
  std::vector<std::string> refused() {
    std::vector<std::string> words;
    for (const CallerGate::Refused& one : gate_.take_refused()) {
      words.push_back(std::to_string(one.ordered.origin.number) + ' ' + one.why);
    }
    return words;
  }
  void second_is_started_again(std::uint64_t number) {
    Roster later = some_roster(number);
    later.runs[1].generation = {Term(1), 2};
    (void)roster_.take(later);
    gate_.look(now_);
  }

  RosterView roster_;
  CallerGate gate_{roster_};
  Instant now_ = Instant::since_boot(Duration::seconds(100));
};

TEST_F(CallerGateTest, BelievesWhoIsThereByTheRoster) {
  ask(1, named(1));
  ask(2, named(0, {}, ""));  // no rank, and says so
  EXPECT_EQ(believed(), (std::vector<AskNumber>{1, 2}));
  EXPECT_EQ(gate_.next_due(), Instant::never());
}

TEST_F(CallerGateTest, RefusesAHostThatSpeaksInTheNameOfWhoIsElsewhere) {
  ask(1, named(1, kFirst));
  ask(2, named(1, {MeshId(1), Rank(0)}, "work"));
  ask(3, named(1, {MeshId(0), Rank(4)}));
  ask(4, named(1, {MeshId(0), Rank(0)}, "none"));
  EXPECT_EQ(refused(), (std::vector<std::string>{"1 work/0 is not on h1, which says that it calls",
                                                 "2 its caller says that it is work/0, and there is none",
                                                 "3 its caller says that it is work/4, and there is none",
                                                 "4 its caller says that it is none/0, and there is none"}));
  EXPECT_TRUE(believed().empty());
}

TEST_F(CallerGateTest, WaitsForTheRosterThatKnowsAStartAndLetsNothingOfItPass) {
  ask(1, named(2));
  ask(2, named(2));
  EXPECT_TRUE(believed().empty());
  now_ = now_ + Duration::seconds(1);
  second_is_started_again(2);
  ask(3, named(2));
  EXPECT_EQ(believed(), (std::vector<AskNumber>{1, 2, 3}));
  ask(4, named(1));
  EXPECT_EQ(refused(), (std::vector<std::string>{"4 a later start of work/2 has its place"}));
}

TEST_F(CallerGateTest, WaitsFiveSecondsForThat) {
  ask(1, named(7));
  EXPECT_EQ(gate_.next_due(), now_ + CallerGate::kRosterPatience);
  now_ = gate_.next_due();
  gate_.look(now_);
  EXPECT_EQ(refused(), (std::vector<std::string>{"1 for 5s nobody has said that this start of work/2 is on h1"}));
}

TEST_F(CallerGateTest, LetsAHostMakeSoManyWaitAndNoMore) {
  for (AskNumber number = 1; number <= CallerGate::kCalls + 1; ++number) ask(number, named(2));
  EXPECT_EQ(refused(), (std::vector<std::string>{"1025 too many calls of h1 wait for a roster that knows who calls"}));
  second_is_started_again(2);
  EXPECT_EQ(believed().size(), CallerGate::kCalls);
}

TEST_F(CallerGateTest, TakesBackWhatWaits) {
  ask(1, named(2));
  ask(2, named(2));
  gate_.take_back(kThere, 1);
  gate_.take_back(kThere, 9);
  EXPECT_EQ(refused(), (std::vector<std::string>{"1 it has not begun"}));
  gate_.root_passed(kThere, {1, 2});
  second_is_started_again(2);
  EXPECT_TRUE(believed().empty()) << "a start that is no more asked it";
}

}  // namespace
}  // namespace monarch
