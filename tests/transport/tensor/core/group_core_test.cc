#include "transport/tensor/core/group_core.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "transport/tensor/core/group_member_core.h"

namespace monarch::tensor {

namespace {

const GroupMember kTrainer{"trainer", 0};

GroupMember generator(std::uint32_t rank) { return {"generator", rank}; }

GroupMembers members_of(const std::vector<GroupMember>& list) {
  GroupMembers members;
  for (const GroupMember& one : list) EXPECT_TRUE(members.add(one));
  return members;
}

GroupMembers four() { return members_of({kTrainer, generator(0), generator(1), generator(2)}); }

Instant at(std::int64_t milliseconds) { return Instant() + Duration::milliseconds(milliseconds); }

template <class Action, class All>
std::vector<Action> only(const All& actions) {
  std::vector<Action> found;
  for (const auto& action : actions) {
    if (const auto* const one = std::get_if<Action>(&action)) found.push_back(*one);
  }
  return found;
}

// The first member's, generation 3 of it; link n is of member n.
struct Held {
  GroupActions call(std::uint32_t member, std::uint64_t generation, std::uint64_t number,
                    std::optional<GroupMembers> members = {}, std::optional<LinkNumber> link = {}) {
    group_event::Call event{.link = link.value_or(member),
                            .member = four().at(member),
                            .generation = generation,
                            .number = number,
                            .members = members.value_or(four()),
                            .offer = {}};
    if (member == 0) event.offer = {"10.0.0.1", 4'000, "id"};
    return core.step(event, now);
  }
  GroupActions all_call(std::uint64_t number) {
    call(0, 3, number);
    for (const std::uint32_t member : {2U, 1U}) call(member, 5, number);
    return call(3, 5, number);
  }
  Instant now;
  GroupCore core{{.first = kTrainer, .generation = 3, .count = 7}};
};

std::vector<std::string> texts(const std::vector<group_action::Lost>& lost) {
  std::vector<std::string> all;
  for (const auto& one : lost) all.push_back(std::to_string(one.link) + ": " + one.text);
  return all;
}

}  // namespace

TEST(GroupMembers, HaveOneFormWhateverTheyWereAddedOneByOne) {
  const GroupMembers members = members_of({kTrainer, generator(1), generator(2), generator(4), generator(3)});
  EXPECT_EQ(members.text(), "trainer/0, generator/1 to 2, generator/4, generator/3");
  EXPECT_EQ(members.size(), 5U);
  EXPECT_EQ(members.at(3), generator(4));
  EXPECT_EQ(members.find(generator(3)), 4U);
  EXPECT_EQ(members.find(generator(0)), std::nullopt);
  EXPECT_EQ(GroupMembers::read(members.runs()), members);
  GroupMembers again = members;
  EXPECT_FALSE(again.add(generator(4)));
}

TEST(GroupMembers, AreRefusedWhereAnotherSaysWhatIsNone) {
  const std::vector<std::vector<MemberRun>> wrong = {{},
                                                     {{"", 0, 1}},
                                                     {{"a", 0, 0}},
                                                     {{"a", 0, 2}, {"a", 1, 1}},             // twice
                                                     {{"a", 0, 2}, {"a", 2, 1}},             // one run in two
                                                     {{"a", UINT32_MAX, 2}},                 // past what can be counted
                                                     {{"a", 0, UINT32_MAX}},                 // too many
                                                     {{"a", 0, kMostMembers}, {"b", 0, 1}},  // the same
                                                     std::vector<MemberRun>(kMostMemberRuns + 1, {"a", 0, 1})};
  for (const auto& runs : wrong) EXPECT_EQ(GroupMembers::read(runs), std::nullopt) << runs.size();
  EXPECT_TRUE(GroupMembers::read({{"a", 0, kMostMembers}}).has_value());
}

TEST(GroupCore, AnswersAllOnceTheLastHasCalled) {
  Held held;
  const auto answers = only<group_action::Answer>(held.all_call(1));
  ASSERT_EQ(answers.size(), 4U);
  for (const auto& answer : answers) {
    EXPECT_EQ(answer.meeting.epoch, (GroupEpoch{3, 8}));
    EXPECT_EQ(answer.meeting.generations, (std::vector<std::uint64_t>{3, 5, 5, 5}));
    EXPECT_EQ(answer.meeting.offer, (GroupOffer{"10.0.0.1", 4'000, "id"}));
    EXPECT_EQ(answer.number, 1U);
  }
}

TEST(GroupCore, NamesWhoIsMissingToWhoCallsAndLaterWhereItChanges) {
  Held held;
  const auto first = only<group_action::Waits>(held.call(0, 3, 1));
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].text, "generator/0, generator/1, generator/2 have not called");
  const auto next = only<group_action::Waits>(held.call(2, 5, 1));
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].link, 2U);
  held.call(3, 5, 1);
  held.now = held.core.next_due();
  EXPECT_EQ(held.now, at(500));
  const auto later = only<group_action::Waits>(held.core.step(group_event::Tick{}, held.now));
  ASSERT_EQ(later.size(), 2U) << "the one who came last knows it already";
  EXPECT_EQ(later[0].text, "generator/0 has not called");
  held.call(1, 5, 1);
  EXPECT_EQ(held.core.next_due(), Instant::never());
}

TEST(GroupCore, EndsAnEpochInAllOthersByTheEndOfALinkAndByACall) {
  Held held;
  held.all_call(1);
  EXPECT_EQ(
      texts(only<group_action::Lost>(held.core.step(group_event::Left{2}, held.now))),
      (std::vector<std::string>{"0: the connection to generator/1 ended", "1: the connection to generator/1 ended",
                                "3: the connection to generator/1 ended"}));
  EXPECT_TRUE(held.core.step(group_event::Left{3}, held.now).empty()) << "it has ended already";
  held.all_call(2);
  const auto lost = only<group_action::Lost>(held.call(1, 5, 3));
  EXPECT_EQ(texts(lost), (std::vector<std::string>{"0: generator/0 has called for the next epoch",
                                                   "2: generator/0 has called for the next epoch",
                                                   "3: generator/0 has called for the next epoch"}));
  EXPECT_EQ(lost.at(0).epoch, (GroupEpoch{3, 9}));
}

TEST(GroupCore, TakesTheNewerOfTwoCallsWhicheverIsHeardFirst) {
  Held held;
  held.call(0, 3, 1);
  held.call(1, 6, 1, {}, 11);  // of the process that has come back
  held.call(1, 5, 4);          // and of the one before
  held.call(2, 5, 2, {}, 22);
  held.call(2, 5, 1);
  const auto answers = only<group_action::Answer>(held.call(3, 5, 1));
  ASSERT_EQ(answers.size(), 4U);
  EXPECT_EQ(answers[0].meeting.generations, (std::vector<std::uint64_t>{3, 6, 5, 5}));
  EXPECT_TRUE(held.core.step(group_event::Left{1}, held.now).empty()) << "the link of the process before";
  EXPECT_EQ(only<group_action::Lost>(held.core.step(group_event::Left{11}, held.now)).size(), 3U);
}

TEST(GroupCore, TakesBackACallWithItsLink) {
  Held held;
  held.call(1, 5, 1);
  held.core.step(group_event::Left{1}, held.now);
  EXPECT_TRUE(held.core.is_idle());
  held.call(0, 3, 1);
  held.call(2, 5, 1);
  EXPECT_TRUE(only<group_action::Answer>(held.call(3, 5, 1)).empty());
}

TEST(GroupCore, GoesByVerdictsOnTheProcessesOfItsEpochAlone) {
  Held held;
  held.all_call(1);
  EXPECT_TRUE(held.core.step(group_event::Failed{generator(1), 4, "exit 1"}, held.now).empty());
  EXPECT_EQ(
      texts(only<group_action::Lost>(held.core.step(group_event::Failed{generator(1), 5, "exit 1"}, held.now)))[0],
      "0: generator/1 is lost: exit 1");
  held.call(2, 5, 2);
  EXPECT_TRUE(held.core.is_idle()) << "of whom it is known that he is lost";
  held.call(2, 6, 1);
  EXPECT_FALSE(held.core.is_idle());
}

TEST(GroupCore, TellsAllWhoWaitWhereMembersDisagree) {
  Held held;
  held.call(0, 3, 1);
  held.call(1, 5, 1);
  const auto unfit = only<group_action::Unfit>(held.call(2, 5, 1, members_of({kTrainer, generator(1)})));
  ASSERT_EQ(unfit.size(), 3U);
  for (const auto& one : unfit) {
    EXPECT_EQ(one.text,
              "members disagree: generator/0 has trainer/0, generator/0 to 2; "
              "generator/1 has trainer/0, generator/1");
  }
  EXPECT_TRUE(held.core.is_idle());
}

TEST(GroupCore, RefusesWhoIsNoMemberAndWhoMeansAnotherFirst) {
  Held held;
  EXPECT_EQ(only<group_action::Unfit>(held.call(3, 5, 1, members_of({kTrainer, generator(1)}))).size(), 1U);
  EXPECT_EQ(only<group_action::Unfit>(held.call(1, 5, 1, members_of({generator(0), kTrainer}))).size(), 1U);
  EXPECT_TRUE(held.core.is_idle());
}

// ---- A member.

namespace {

struct Member {
  template <class Event>
  MemberActions step(Event event) {
    return core.step(event, now);
  }
  // Until it is in an epoch whose members have these generations.
  MemberActions join(std::vector<std::uint64_t> generations) {
    step(member_event::Call{});
    step(member_event::Found{3});
    step(member_event::Linked{});
    return step(member_event::Answered{core.number(), {{3, 8}, std::move(generations), {}}});
  }
  Instant now;
  GroupMemberCore core{{.members = four(), .self = 2}};
};

std::vector<std::string> lost_texts(const MemberActions& actions) {
  std::vector<std::string> all;
  for (const auto& one : only<member_action::Lost>(actions)) all.push_back(one.text);
  return all;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST(GroupMemberCore, GoesFromTheCardToTheEpoch) {
  Member member;
  EXPECT_EQ(only<member_action::Ask>(member.step(member_event::Call{})).at(0).since, 0U);
  EXPECT_EQ(only<member_action::Dial>(member.step(member_event::Found{3})).size(), 1U);
  EXPECT_EQ(only<member_action::Say>(member.step(member_event::Linked{})).at(0).number, 1U);
  EXPECT_TRUE(member.step(member_event::Answered{2, {}}).empty()) << "to another call";
  EXPECT_EQ(only<member_action::Joined>(member.step(member_event::Answered{1, {{3, 8}, {3, 5, 5, 5}, {}}})).size(), 1U);
  EXPECT_EQ(only<member_action::Say>(member.step(member_event::Call{})).at(0).number, 2U) << "over the same link";
}

TEST(GroupMemberCore, ComesAgainWhereTheLinkEndsBeforeTheAnswer) {
  Member member;
  member.step(member_event::Call{});
  member.step(member_event::Found{3});
  EXPECT_EQ(only<member_action::Waits>(member.step(member_event::LinkEnded{"refused"})).at(0).text,
            "trainer/0, which holds the group, is not reached: refused");
  EXPECT_EQ(member.core.next_due(), at(5));
  EXPECT_TRUE(member.step(member_event::Tick{}).empty());
  member.now = at(5);
  EXPECT_EQ(only<member_action::Ask>(member.step(member_event::Tick{})).size(), 1U);
  member.step(member_event::Found{4});
  EXPECT_EQ(only<member_action::Say>(member.step(member_event::Linked{})).at(0).number, 1U);
  member.step(member_event::LinkEnded{"refused"});
  EXPECT_EQ(member.core.next_due(), at(15)) << "a longer pause";
}

TEST(GroupMemberCore, HearsOfALossByTheFirstByItsLinkAndByTheRoster) {
  Member by_first;
  by_first.join({3, 5, 5, 5});
  EXPECT_TRUE(by_first.step(member_event::EpochLost{{3, 7}, 1, "it ended"}).empty()) << "another epoch";
  EXPECT_EQ(lost_texts(by_first.step(member_event::EpochLost{{3, 8}, 1, "it ended"})), Texts{"it ended"});
  Member by_link;
  by_link.join({3, 5, 5, 5});
  EXPECT_EQ(lost_texts(by_link.step(member_event::LinkEnded{"reset"})), Texts{"the connection to trainer/0 ended"});
  Member by_roster;
  by_roster.join({3, 5, 5, 5});
  EXPECT_TRUE(by_roster.step(member_event::Failed{generator(2), 4, "exit 1"}).empty()) << "an earlier process";
  EXPECT_TRUE(by_roster.step(member_event::Failed{generator(7), 9, "exit 1"}).empty()) << "no member";
  EXPECT_EQ(lost_texts(by_roster.step(member_event::Failed{generator(2), 5, "exit 1"})),
            Texts{"generator/2 is lost: exit 1"});
  EXPECT_TRUE(by_roster.step(member_event::EpochLost{{3, 8}, 3, "it ended"}).empty()) << "it has a cause";
}

TEST(GroupMemberCore, NamesTheCauseOnceTheRosterDoes) {
  Member member;
  member.join({3, 5, 5, 5});
  member.step(member_event::EpochLost{{3, 8}, 3, "the connection to generator/2 ended"});
  member.now = at(251);
  EXPECT_TRUE(member.step(member_event::Failed{generator(0), 5, "exit 2"}).empty()) << "it has ended with another";
  EXPECT_EQ(lost_texts(member.step(member_event::Failed{generator(2), 5, "exit 1"})),
            Texts{"generator/2 is lost: exit 1"});
  Member at_once;
  at_once.join({3, 5, 5, 5});
  at_once.step(member_event::EpochLost{{3, 8}, 3, "generator/2 has called for the next epoch"});
  at_once.now = at(250);
  EXPECT_EQ(lost_texts(at_once.step(member_event::Failed{generator(0), 5, "exit 2"})),
            Texts{"generator/0 is lost: exit 2"})
      << "which is why the other one has called";
  EXPECT_TRUE(at_once.step(member_event::Failed{generator(2), 5, "exit 1"}).empty()) << "it has a cause";
  Member before;
  before.step(member_event::Failed{generator(2), 4, "exit 3"});
  before.join({3, 5, 5, 5});
  EXPECT_EQ(lost_texts(before.step(member_event::EpochLost{{3, 8}, 3, "gone"})), Texts{"gone"}) << "an earlier process";
}

TEST(GroupMemberCore, RemembersAVerdictThatCameBeforeTheAnswer) {
  Member member;
  member.step(member_event::Failed{generator(2), 5, "exit 1"});
  EXPECT_EQ(lost_texts(member.join({3, 5, 5, 5})), Texts{"generator/2 is lost: exit 1"});
  Member other;
  other.step(member_event::Failed{generator(2), 5, "exit 1"});
  EXPECT_TRUE(lost_texts(other.join({3, 5, 5, 6})).empty());
}

TEST(GroupMemberCore, LeavesAFirstThatIsLostThoughItsLinkStands) {
  Member calls;
  calls.step(member_event::Call{});
  calls.step(member_event::Found{3});
  calls.step(member_event::Linked{});
  const auto actions = calls.step(member_event::Failed{kTrainer, 3, "host lost"});
  EXPECT_EQ(only<member_action::EndLink>(actions).size(), 1U);
  EXPECT_EQ(only<member_action::Ask>(actions).at(0).since, 3U);
  EXPECT_EQ(only<member_action::Ask>(calls.step(member_event::Found{3})).size(), 1U) << "a card that is late";
  Member in;
  in.join({3, 5, 5, 5});
  const auto lost = in.step(member_event::Failed{kTrainer, 3, "host lost"});
  EXPECT_EQ(lost_texts(lost), Texts{"trainer/0 is lost: host lost"});
  EXPECT_EQ(only<member_action::EndLink>(lost).size(), 1U);
  EXPECT_EQ(only<member_action::Ask>(in.step(member_event::Call{})).at(0).since, 3U);
}

TEST(GroupMemberCore, EndsItsLinkWhereItLeaves) {
  Member member;
  member.join({3, 5, 5, 5});
  EXPECT_EQ(only<member_action::EndLink>(member.step(member_event::Leave{})).size(), 1U);
  EXPECT_TRUE(member.step(member_event::LinkEnded{"gone"}).empty());
  EXPECT_TRUE(member.step(member_event::Leave{}).empty());
  Member refused;
  refused.step(member_event::Call{});
  refused.step(member_event::Found{3});
  refused.step(member_event::Linked{});
  EXPECT_EQ(only<member_action::Refuse>(refused.step(member_event::Refused{"members disagree"})).at(0).text,
            "members disagree");
  EXPECT_EQ(only<member_action::Ask>(refused.step(member_event::Call{})).size(), 1U) << "its link has ended";
}

TEST(GroupMemberCore, OfTheFirstNeedsNoLink) {
  GroupMemberCore first({.members = four(), .self = 0, .number = 4});
  const auto said = first.step(member_event::Call{}, Instant());
  EXPECT_EQ(only<member_action::Say>(said).at(0).number, 5U);
  first.step(member_event::Answered{5, {{3, 8}, {3, 5, 5, 5}, {}}}, Instant());
  EXPECT_EQ(only<member_action::EndLink>(first.step(member_event::Leave{}, Instant())).size(), 1U);
  EXPECT_EQ(only<member_action::Say>(first.step(member_event::Call{}, Instant())).at(0).number, 6U);
}

}  // namespace monarch::tensor
