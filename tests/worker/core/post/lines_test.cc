#include "worker/core/post/lines.h"

#include <gtest/gtest.h>

namespace monarch {

namespace {

constexpr PostStart kFirst{1, 1};
constexpr PostStart kSecond{1, 2};
constexpr PostStart kNextWorker{2, 1};
constexpr PostStart kRoot{7, 3};

using Numbers = std::vector<AskNumber>;

// A line that the target has accepted, with asks 1 to `asks` under way.
OutLine open_line(AskNumber asks) {
  OutLine line;
  OutLine::Turn turn;
  for (AskNumber i = 0; i < asks; ++i) (void)line.enter(turn);
  const LineHello hello = *line.resume().hello;
  (void)line.accepted(kFirst, 1, hello.epoch);
  return line;
}

TEST(PostStart, OfALaterWorkerIsLater) {
  EXPECT_LT(kFirst, kSecond);
  EXPECT_LT(kSecond, kNextWorker);
}

TEST(OutLine, SendsNothingBeforeItsHelloIsAnswered) {
  OutLine line;
  OutLine::Turn turn;
  EXPECT_EQ(line.enter(turn), 1U);
  EXPECT_EQ(line.enter(turn), 2U);
  EXPECT_TRUE(turn.send.empty());
  const auto resumed = line.resume();
  EXPECT_EQ(resumed.hello, (LineHello{.target = {}, .epoch = 1, .low = 1, .heard = 0}));
  EXPECT_EQ(line.accepted(kFirst, 1, 1).send, (Numbers{1, 2}));
  EXPECT_EQ(line.enter(turn), 3U);
  EXPECT_EQ(turn.send, (Numbers{3}));
}

TEST(OutLine, GoesOnAtTheNumberThatTheTargetTakesNext) {
  OutLine line = open_line(4);
  EXPECT_EQ(line.answered(kFirst, 1, 2), OutLine::Heard::kNew);
  line.broken();
  OutLine::Turn turn;
  EXPECT_EQ(line.enter(turn), 5U);
  EXPECT_TRUE(turn.send.empty());
  EXPECT_EQ(line.resume().hello, (LineHello{.target = kFirst, .epoch = 2, .low = 1, .heard = 1}));
  EXPECT_EQ(line.accepted(kFirst, 4, 2).send, (Numbers{4, 5})) << "1 and 3 run there, 2 is answered";
}

TEST(OutLine, HearsNoAnswerToAnEarlierHello) {
  OutLine line = open_line(1);
  const LineHello earlier = *line.resume().hello;
  (void)line.resume();
  EXPECT_TRUE(line.accepted(kFirst, 1, earlier.epoch).send.empty());
  EXPECT_FALSE(line.resumed());
  EXPECT_TRUE(line.other(kSecond, earlier.epoch).gone.empty());
}

TEST(OutLine, EndsWhatAnotherStartWasSentAndGivesTheRestToTheNext) {
  OutLine line = open_line(2);
  line.broken();
  OutLine::Turn turn;
  (void)line.enter(turn);
  const LineHello hello = *line.resume().hello;
  const auto other = line.other(kSecond, hello.epoch);
  EXPECT_EQ(other.gone, (Numbers{1, 2}));
  EXPECT_EQ(other.hello, (LineHello{.target = kSecond, .epoch = 3, .low = 3, .heard = 0}));
  EXPECT_EQ(line.accepted(kSecond, 3, 3).send, (Numbers{3}));
  EXPECT_EQ(line.answered(kFirst, 1, 3), OutLine::Heard::kDrop) << "of the one before";
  EXPECT_EQ(line.answered(kSecond, 1, 3), OutLine::Heard::kNew);
}

TEST(OutLine, TakesAnAnswerThatIsSaidAgainOnce) {
  OutLine line = open_line(2);
  EXPECT_EQ(line.answered(kFirst, 1, 2), OutLine::Heard::kNew);
  EXPECT_EQ(line.answered(kFirst, 1, 2), OutLine::Heard::kDrop);
  EXPECT_EQ(line.answered(kFirst, 3, 1), OutLine::Heard::kMissing);
  EXPECT_EQ(line.heard(), 1U);
  EXPECT_EQ(line.answered(kFirst, 2, 1), OutLine::Heard::kNew);
  EXPECT_EQ(line.waiting(), 0U);
}

TEST(OutLine, OfALostHostGoesOnIfThatComesBack) {
  OutLine line = open_line(2);
  EXPECT_EQ(line.lost(), (Numbers{1, 2}));
  OutLine::Turn turn;
  (void)line.enter(turn);
  EXPECT_TRUE(turn.send.empty());
  EXPECT_EQ(line.resume().hello, (LineHello{.target = kFirst, .epoch = 2, .low = 3, .heard = 0}));
}

TEST(InLine, TakesEachNumberOnceInOrder) {
  InLine line(kRoot);
  ASSERT_TRUE(line.hello(kRoot, {.target = {}, .epoch = 1, .low = 1, .heard = 0}));
  EXPECT_EQ(line.ask(kRoot, 2, 0), InLine::Taken::kResync);
  EXPECT_EQ(line.ask(kRoot, 1, 0), InLine::Taken::kRun);
  EXPECT_EQ(line.ask(kRoot, 1, 0), InLine::Taken::kDrop);
  EXPECT_EQ(line.ask(kRoot, 2, 0), InLine::Taken::kRun);
}

TEST(InLine, SaysAgainWhatTheRootHasNotHeard) {
  InLine line(kRoot);
  (void)line.hello(kRoot, {.target = {}, .epoch = 1, .low = 1, .heard = 0});
  for (AskNumber n = 1; n <= 4; ++n) (void)line.ask(kRoot, n, 0);
  EXPECT_EQ(line.done(kRoot, 3, 10)->said, 1U);
  EXPECT_EQ(line.done(kRoot, 1, 10)->said, 2U);
  EXPECT_EQ(line.done(kRoot, 2, 10)->said, 3U);
  const auto again = line.hello(kRoot, {.target = kFirst, .epoch = 2, .low = 1, .heard = 1});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->next, 5U);
  ASSERT_EQ(again->again.size(), 2U);
  EXPECT_EQ(again->again[0].number, 1U);
  EXPECT_EQ(again->again[0].said, 2U);
  EXPECT_EQ(again->again[1].number, 2U);
  EXPECT_EQ(line.take_forgotten(), (Numbers{3}));
  EXPECT_FALSE(line.done(kRoot, 3, 10)) << "it has run";
}

TEST(InLine, HearsNoEarlierStartOfTheRootAndNoEarlierHello) {
  InLine line(kRoot);
  (void)line.hello(kRoot, {.target = {}, .epoch = 5, .low = 1, .heard = 0});
  EXPECT_FALSE(line.hello({7, 2}, {.target = {}, .epoch = 9, .low = 1, .heard = 0}));
  EXPECT_FALSE(line.hello(kRoot, {.target = {}, .epoch = 5, .low = 1, .heard = 0}));
  EXPECT_EQ(line.ask({7, 2}, 1, 0), InLine::Taken::kDrop);
}

TEST(InLine, BeginsAnewWithALaterStartOfTheRoot) {
  InLine line(kRoot);
  (void)line.hello(kRoot, {.target = {}, .epoch = 5, .low = 1, .heard = 0});
  (void)line.ask(kRoot, 1, 0);
  const PostStart later{7, 4};
  EXPECT_EQ(line.hello(later, {.target = {}, .epoch = 1, .low = 1, .heard = 0})->next, 1U);
  EXPECT_FALSE(line.done(kRoot, 1, 10)) << "whose it was is gone";
  EXPECT_EQ(line.ask(later, 1, 0), InLine::Taken::kRun);
}

TEST(InLine, PassesOverWhatEndedBeforeItCame) {
  InLine line(kRoot);
  (void)line.hello(kRoot, {.target = {}, .epoch = 1, .low = 1, .heard = 0});
  EXPECT_EQ(line.hello(kRoot, {.target = kFirst, .epoch = 2, .low = 8, .heard = 0})->next, 8U);
  EXPECT_EQ(line.ask(kRoot, 8, 0), InLine::Taken::kRun);
}

TEST(InLine, LetsTheOldestAnswersGiveWay) {
  InLine line(kRoot, {.answers = 2, .bytes = 100, .unheard = 8});
  (void)line.hello(kRoot, {.target = {}, .epoch = 1, .low = 1, .heard = 0});
  for (AskNumber n = 1; n <= 5; ++n) (void)line.ask(kRoot, n, 0);
  (void)line.done(kRoot, 1, 10);
  (void)line.done(kRoot, 2, 10);
  EXPECT_TRUE(line.take_forgotten().empty());
  (void)line.done(kRoot, 3, 10);
  EXPECT_EQ(line.take_forgotten(), (Numbers{1})) << "two are kept";
  (void)line.done(kRoot, 4, 95);
  EXPECT_EQ(line.take_forgotten(), (Numbers{2, 3})) << "100 bytes are";
  EXPECT_FALSE(line.done(kRoot, 5, 101)->gone) << "it is said once, and not kept";
  EXPECT_EQ(line.take_forgotten(), (Numbers{4, 5}));
  const auto again = line.hello(kRoot, {.target = kFirst, .epoch = 2, .low = 1, .heard = 1});
  ASSERT_EQ(again->again.size(), 4U);
  for (const InLine::Answer& answer : again->again) EXPECT_TRUE(answer.gone) << answer.number;
}

TEST(InLine, KnowsARootThatNeverSaysWhatItHears) {
  InLine line(kRoot, {.answers = 2, .bytes = 100, .unheard = 3});
  (void)line.hello(kRoot, {.target = {}, .epoch = 1, .low = 1, .heard = 0});
  for (AskNumber n = 1; n <= 4; ++n) {
    EXPECT_FALSE(line.overdrawn());
    (void)line.ask(kRoot, n, 0);
    (void)line.done(kRoot, n, 1);
  }
  EXPECT_TRUE(line.overdrawn());
  line.heard(kRoot, 2);
  EXPECT_FALSE(line.overdrawn());
}

}  // namespace

}  // namespace monarch
