#include "supervisor/workers/stack_dumps.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "tests/supervisor/core/fixtures.h"
#include "transport/base/clock.h"

namespace monarch {
namespace {

const RankId kFirst{MeshId(0), Rank(0)};
const RankId kOther{MeshId(0), Rank(2)};

// Two hosts with two ranks each, which run.
struct Asked {
  std::unique_ptr<EventLoop> loop = *EventLoop::create();
  fixtures::Driver driver{fixtures::job_of(2, 2)};
  std::vector<std::pair<HostId, TakeStacks>> sent;
  bool connected = true;
  std::vector<RankStacks> told;
  StackDumps dumps{*loop, driver.core, [this](HostId host, const TakeStacks& order) {
                     sent.emplace_back(host, order);
                     return connected;
                   }};

  Asked() {
    driver.run_all();
    loop->read_clock();
  }
  StackDumps::Answer answer() {
    return [this](const RankStacks& stacks) { told.push_back(stacks); };
  }
  StacksCame came(std::size_t index) const {
    StacksCame from{.process = sent.at(index).second.process, .stacks = {}};
    from.stacks.number = sent.at(index).second.number;
    from.stacks.processes.resize(1);
    return from;
  }
  template <class Condition>
  bool until(Condition condition) {
    const Instant deadline = boot_now() + Duration::seconds(20);
    while (!condition()) {
      if (boot_now() >= deadline) return false;
      pollfd wait{.fd = loop->descriptor(), .events = POLLIN, .revents = 0};
      (void)::poll(&wait, 1, EventLoop::wait_milliseconds(boot_now(), std::min(loop->next_due(), deadline)));
      loop->turn();
    }
    return true;
  }
};

TEST(StackDumps, BringWhatTheHostSaysToWhoAsked) {
  Asked a;
  a.dumps.ask({.rank = kOther, .limit = Duration::seconds(3), .native = true}, a.answer());
  ASSERT_EQ(a.sent.size(), 1U);
  EXPECT_EQ(a.sent[0].first, HostId(1));
  EXPECT_EQ(a.sent[0].second.process, (Incarnation{kOther, a.driver.crew(0).generation}));
  EXPECT_EQ(a.sent[0].second.limit, Duration::seconds(3));
  EXPECT_GE(a.sent[0].second.patience, Duration::seconds(3)) << "no shorter than the limit";
  EXPECT_TRUE(a.sent[0].second.native);
  a.dumps.on_stacks(a.came(0));
  ASSERT_EQ(a.told.size(), 1U);
  EXPECT_EQ(a.told[0].rank, kOther);
  EXPECT_EQ(a.told[0].host, "v2");
  EXPECT_EQ(a.told[0].generation, 1U);
  EXPECT_EQ(a.told[0].stacks.processes.size(), 1U);
  a.dumps.on_stacks(a.came(0));
  EXPECT_EQ(a.told.size(), 1U) << "once";
  EXPECT_EQ(a.dumps.open(), 0U);
}

TEST(StackDumps, TakeNoAnswerOfAnotherRankOrGeneration) {
  Asked a;
  a.dumps.ask({.rank = kFirst}, a.answer());
  StacksCame wrong = a.came(0);
  wrong.process.rank = kOther;
  a.dumps.on_stacks(std::move(wrong));
  wrong = a.came(0);
  ++wrong.process.generation.counter;
  a.dumps.on_stacks(std::move(wrong));
  EXPECT_TRUE(a.told.empty());
  EXPECT_EQ(a.dumps.open(), 1U);
}

TEST(StackDumps, SayThatNobodyAnsweredOrIsThere) {
  Asked a;
  a.dumps.ask({.rank = kFirst, .limit = Duration::milliseconds(10), .patience = Duration::milliseconds(20)},
              a.answer());
  a.connected = false;
  a.dumps.ask({.rank = kOther}, a.answer());
  EXPECT_TRUE(a.told.empty()) << "never from within";
  ASSERT_TRUE(a.until([&] { return a.told.size() == 2; }));
  EXPECT_EQ(a.told[0].rank, kOther);
  EXPECT_EQ(a.told[0].stacks.end, StacksEnd::kUnreachable);
  EXPECT_EQ(a.told[0].stacks.detail, "the host is not connected");
  EXPECT_EQ(a.told[1].stacks.end, StacksEnd::kUnreachable);
  EXPECT_EQ(a.told[1].stacks.detail, "the host did not answer within 1s");
}

TEST(StackDumps, AskNobodyForARankThatDoesNotRun) {
  Asked a;
  a.driver.report(kFirst, RankPhase::kEnded, fixtures::exited(0));
  a.dumps.ask({.rank = kFirst}, a.answer());
  EXPECT_TRUE(a.sent.empty());
  ASSERT_TRUE(a.until([&] { return !a.told.empty(); }));
  EXPECT_EQ(a.told[0].stacks.end, StacksEnd::kEnded);
}

TEST(StackDumps, GiveEachOfManyOnAHostTheTimeOfThoseBeforeIt) {
  Asked a;
  const StacksRequest request{.ranks = std::vector<RankId>(9, kFirst), .limit = Duration::seconds(2)};
  ASSERT_TRUE(a.dumps.ask_all(request, a.answer()).ok());
  ASSERT_EQ(a.sent.size(), 9U);
  EXPECT_EQ(a.sent[0].second.patience, Duration::seconds(2 * 3 + 1)) << "three turns of four at once";
}

TEST(StackDumps, RefuseRanksThatAreNotAndLimitsOutOfBounds) {
  Asked a;
  const Status rank = a.dumps.ask_all({.ranks = {{MeshId(0), Rank(4)}}, .limit = Duration::seconds(2)}, a.answer());
  EXPECT_EQ(rank.error().message, "no such rank");
  for (const Duration limit : {Duration::zero(), Duration::seconds(61), Duration::seconds(-1)}) {
    EXPECT_EQ(a.dumps.ask_all({.ranks = {kFirst}, .limit = limit}, a.answer()).error().code, ErrorCode::kInvalid);
  }
  EXPECT_TRUE(a.sent.empty());
}

}  // namespace
}  // namespace monarch
