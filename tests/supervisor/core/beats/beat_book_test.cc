#include "supervisor/core/beats/beat_book.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

constexpr RankId kRank{MeshId(0), Rank(0)};

// A job of one host with two ranks that run; each beat comes a second after the last.
class BeatBookTest : public ::testing::Test {
 protected:
  BeatBookTest() : driver(fixtures::job_of(1, 2)) {
    driver.run_all();
    begin(false);
  }
  void begin(bool copies) {
    BeatBookHandlers handlers{.decide =
                                  [this](const CoreEvent& event) {
                                    driver.step(event);
                                    if (const auto* change = std::get_if<RankChanged>(&event))
                                      changes.push_back(*change);
                                    return ++last;
                                  },
                              .is_durable = [this](std::uint64_t ticket) { return ticket <= durable; },
                              .all_durable = [this] { return durable >= last; },
                              .on_host = [this](HostId, const Beat& beat) { of_host.push_back(beat.seq); },
                              .on_superseded = [](Term) { FAIL() << "nobody speaks of another term"; }};
    if (copies) handlers.on_written = [](const RankReport&) {};
    book.emplace(driver.core, Term(1), std::move(handlers));
  }
  BeatBook::Answer beats(const RankReport& report) {
    now = now + Duration::seconds(1);
    return book->on_beat(HostId(0), {.seq = ++seq, .sent_at = now, .content = {.ranks = {report}}}, now);
  }
  RankReport running(std::optional<std::uint64_t> step = {}) const {
    RankReport report = driver.report_of(kRank, RankPhase::kRunning);
    if (step) report.progress = {.step = step, .at = now};
    return report;
  }
  RankReport over() const {
    RankReport report = driver.report_of(kRank, RankPhase::kEnded, fixtures::exited(0));
    report.output_complete = true;
    return report;
  }

  fixtures::Driver driver;
  std::optional<BeatBook> book;
  std::vector<RankChanged> changes;
  std::vector<std::uint64_t> of_host;  // beats of which it was heard what they say of their host
  std::uint64_t last = 0;
  std::uint64_t durable = 1'000;
  std::uint64_t seq = 0;
  Instant now = Instant::since_boot(Duration::seconds(1'000));
};

TEST_F(BeatBookTest, TellsWhatIsNewOnce) {
  beats(running());
  beats(running());
  EXPECT_EQ(changes.size(), 1U);
  beats(over());
  beats(over());
  EXPECT_EQ(changes.size(), 2U);
}

TEST_F(BeatBookTest, KnowsTheStepOfAnEndThoughLaterBeatsLeftItOut) {
  beats(running(7));
  RankReport ready = running();
  ready.ready = true;
  beats(ready);  // news, without the progress
  beats(over());
  ASSERT_EQ(changes.size(), 3U);
  EXPECT_EQ(changes.back().step, std::optional<std::uint64_t>(7));
}

TEST_F(BeatBookTest, KnowsTheStepOfAnEndThoughAnOlderBeatCameAfterIt) {
  const RankReport before = running(3);
  beats(before);
  beats(running(7));
  beats(before);
  beats(over());
  EXPECT_EQ(changes.back().step, std::optional<std::uint64_t>(7));
}

TEST_F(BeatBookTest, HearsNothingOfAHostThatALaterBeatHasOvertaken) {
  beats(running());
  beats(running());
  (void)book->on_beat(HostId(0), {.seq = 1, .sent_at = now, .content = {}}, now);
  beats(running());
  EXPECT_EQ(of_host, (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST_F(BeatBookTest, GrantsWhatRunsAndKeepsUntilWhen) {
  const BeatBook::Answer answer = beats(running());
  EXPECT_EQ(answer.ack.granted, std::vector<Incarnation>{running().process});
  EXPECT_GE(book->grants_until(HostId(0)), now + lease_length(driver.core.facts()));
  const Instant until = book->grants_until(HostId(0));
  EXPECT_TRUE(beats(over()).ack.granted.empty());
  EXPECT_EQ(book->grants_until(HostId(0)), until) << "nothing was granted";
}

TEST_F(BeatBookTest, ForgetsAnEndOnceItsRecordIsDurable) {
  durable = 0;
  EXPECT_TRUE(beats(over()).ack.forget.empty());
  durable = last;
  EXPECT_EQ(beats(over()).ack.forget, std::vector<Incarnation>{over().process});
}

TEST_F(BeatBookTest, ForgetsNothingWhoseOutputIsNotCopied) {
  begin(true);
  EXPECT_TRUE(beats(over()).ack.forget.empty());
  EXPECT_FALSE(changes.back().report.output_complete) << "of the copy";
  book->on_copied(over().process);
  EXPECT_TRUE(changes.back().report.output_complete);
  EXPECT_EQ(beats(over()).ack.forget, std::vector<Incarnation>{over().process});
}

TEST_F(BeatBookTest, AsksForAHelloUntilItHasOne) {
  EXPECT_TRUE(beats(running()).ack.say_hello);
  book->on_hello(HostId(0), Hello{}, true, now);
  EXPECT_FALSE(beats(running()).ack.say_hello);
  book->on_link(HostId(0));
  EXPECT_TRUE(beats(running()).ack.say_hello);
}

}  // namespace
}  // namespace monarch
