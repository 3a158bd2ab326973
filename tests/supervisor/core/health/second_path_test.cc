#include "supervisor/core/health/second_path.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

SecondPath reached(WorkerThere worker) {
  return {.there = {.no_answer_because = {}, .worker = worker, .asked_at = "10.0.0.1 port 4711"}, .from = {}};
}
SecondPath silent(std::vector<SeenFrom> from) {
  return {.there = {.no_answer_because = "timeout: no answer within 2s"}, .from = std::move(from)};
}

TEST(SecondPath, AWorkerWithoutItsKeeperIsGone) {
  EXPECT_TRUE(worker_is_gone(reached({.keepers = 0, .processes = 3})));
  EXPECT_TRUE(worker_is_gone(reached({.keepers = 0, .processes = 0})));
  EXPECT_FALSE(worker_is_gone(reached({.keepers = 1, .processes = 3})));
}

TEST(SecondPath, NothingIsKnownOfAHostThatDoesNotAnswerOrHasAnOlderWorker) {
  EXPECT_FALSE(worker_is_gone(silent({})));
  SecondPath older = reached({});
  older.there.worker.reset();
  EXPECT_FALSE(worker_is_gone(older));
  EXPECT_EQ(told_of("h2", older).message, "h2: answers over SSH: whether its worker runs is not known");
}

TEST(SecondPath, SaysWhatAHostThatAnswersHas) {
  const JobEvent gone = told_of("h2", reached({.keepers = 0, .processes = 2}));
  EXPECT_EQ(gone.kind, EventKind::kHostReached);
  EXPECT_EQ(gone.host, "h2");
  EXPECT_EQ(gone.message,
            "h2: answers over SSH: its worker does not run any more; what it left, 2 processes, is ended");
  EXPECT_EQ(told_of("h2", reached({.keepers = 0, .processes = 0})).message,
            "h2: answers over SSH: its worker does not run any more, and nothing of it is left");
  EXPECT_EQ(told_of("h2", reached({.keepers = 1, .stopped = 1, .processes = 2})).message,
            "h2: answers over SSH: its worker is there, and is stopped by a signal or a debugger");
  EXPECT_EQ(told_of("h2", reached({.keepers = 1, .processes = 2})).message,
            "h2: answers over SSH: its worker runs there, and reaches us at 10.0.0.1 port 4711");
  SecondPath cut = reached({.keepers = 1, .processes = 2});
  cut.there.does_not_reach_us = "no answer within 1s";
  EXPECT_EQ(told_of("h2", cut).message,
            "h2: answers over SSH: its worker runs there, and does not reach us at 10.0.0.1 port 4711: no answer "
            "within 1s");
}

TEST(SecondPath, SaysOfOneThatDoesNotAnswerWhetherItAnswersOthers) {
  const JobEvent alone = told_of("h2", silent({{.peer = "h3", .asked = false}}));
  EXPECT_EQ(alone.kind, EventKind::kHostUnreachable);
  EXPECT_EQ(alone.message, "h2: does not answer over SSH either: timeout: no answer within 2s");
  EXPECT_EQ(told_of("h2", silent({{.peer = "h3", .asked = true, .does_not_answer = "no answer within 1s"},
                                  {.peer = "h1", .asked = true, .does_not_answer = "no route"}}))
                .message,
            "h2: does not answer over SSH either: timeout: no answer within 2s; h3 and h1 do not reach it either");
  EXPECT_EQ(told_of("h2", silent({{.peer = "h3", .asked = true}})).message,
            "h2: does not answer over SSH either: timeout: no answer within 2s; it answers h3: the way from here to it "
            "is the "
            "trouble");
}

}  // namespace
}  // namespace monarch
