#include "transport/zmq/link_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "transport/zmq/backoff.h"
#include "transport/zmq/counters.h"

namespace monarch {
namespace {

using Bound = LinkTable::Bound;

TEST(LinkTable, AnswersGoToTheNewestLink) {
  LinkTable table;
  EXPECT_EQ(table.bind(LinkId{10}, "worker/h1", "worker/h1"), Bound::kNew);
  EXPECT_EQ(table.bind(LinkId{10}, "worker/h1", "worker/h1"), Bound::kSame);
  EXPECT_EQ(table.bind(LinkId{12}, "worker/h1", "worker/h1"), Bound::kMoved);
  EXPECT_EQ(table.link_of("worker/h1"), LinkId{12});
}

TEST(LinkTable, MessageReadLateFromAnOldLinkChangesNothing) {
  LinkTable table;
  EXPECT_EQ(table.bind(LinkId{12}, "worker/h1", "worker/h1"), Bound::kNew);
  EXPECT_EQ(table.bind(LinkId{10}, "worker/h1", "worker/h1"), Bound::kStale);
  EXPECT_EQ(table.link_of("worker/h1"), LinkId{12});
}

TEST(LinkTable, RefusesAClaimToBeSomebodyElse) {
  LinkTable table;
  EXPECT_EQ(table.bind(LinkId{10}, "worker/h1", "worker/h1"), Bound::kNew);
  EXPECT_EQ(table.bind(LinkId{11}, "worker/h2", "worker/h1"), Bound::kForged);
  EXPECT_EQ(table.bind(LinkId{11}, "", "worker/h1"), Bound::kForged);
  EXPECT_EQ(table.link_of("worker/h1"), LinkId{10});
  EXPECT_EQ(table.link_of("worker/h2"), std::nullopt);
}

TEST(LinkTable, ForgetsALinkThatEndedButNotItsSuccessor) {
  LinkTable table;
  EXPECT_EQ(table.bind(LinkId{10}, "worker/h1", "worker/h1"), Bound::kNew);
  EXPECT_EQ(table.bind(LinkId{11}, "worker/h1", "worker/h1"), Bound::kMoved);
  table.forget("worker/h1", LinkId{10});
  EXPECT_EQ(table.link_of("worker/h1"), LinkId{11});
  table.forget("worker/h1", LinkId{11});
  EXPECT_EQ(table.size(), 0U);
}

TEST(LinkTable, OrderOfLinksSurvivesTheEndOfTheNumbers) {
  EXPECT_TRUE(newer(LinkId{0}, LinkId{0xffff'ffffU}));
  EXPECT_FALSE(newer(LinkId{0xffff'ffffU}, LinkId{0}));
  EXPECT_FALSE(newer(LinkId{5}, LinkId{5}));
}

TEST(Backoff, DoublesFromATenthOfASecondToTwoSecondsWithinAQuarter) {
  Backoff backoff(42);
  for (const int base : {100, 200, 400, 800, 1'600, 2'000, 2'000}) {
    const Duration wait = backoff.next();
    EXPECT_GE(wait, Duration::milliseconds(base) * 3 / 4);
    EXPECT_LE(wait, Duration::milliseconds(base) * 5 / 4);
  }
  backoff.reset();
  EXPECT_LE(backoff.next(), Duration::milliseconds(125));
}

TEST(Backoff, IsTheSameForTheSameSeedAndNotForAnother) {
  Backoff first(1);
  Backoff same(1);
  Backoff other(2);
  const Duration wait = first.next();
  EXPECT_EQ(wait, same.next());
  EXPECT_NE(wait, other.next());
}

TEST(LinkCounters, WhatNothingExplainsIsJunk) {
  LinkCounters counters;
  for (int i = 0; i < 5; ++i) counters.count(MonitorEvent::kAccepted);
  counters.count(MonitorEvent::kHandshaken);
  counters.count(MonitorEvent::kAuthRefused);
  counters.count(MonitorEvent::kProtocolError);
  counters.count(MonitorEvent::kHandshakeDropped);
  EXPECT_EQ(counters.junk(), 1U);
  counters.count(MonitorEvent::kProtocolError);
  counters.count(MonitorEvent::kProtocolError);
  EXPECT_EQ(counters.junk(), 0U);
}

TEST(LinkCounters, AreNamedAfterTheirPort) {
  LinkCounters counters;
  counters.count(MonitorEvent::kAccepted);
  counters.flooded = 7;
  const auto named = counters.named("bulk");
  EXPECT_NE(std::find(named.begin(), named.end(), std::pair<std::string, std::uint64_t>("bulk.junk", 1)), named.end());
  EXPECT_NE(std::find(named.begin(), named.end(), std::pair<std::string, std::uint64_t>("bulk.flooded", 7)),
            named.end());
}

TEST(PublishedCounters, AreThoseThatWerePut) {
  LinkCounters counters;
  counters.count(MonitorEvent::kAccepted);
  counters.sends_full = 3;
  PublishedCounters published;
  published.put(counters);
  EXPECT_EQ(published.get().named("x"), counters.named("x"));
}

}  // namespace
}  // namespace monarch
