// Groups of ranks that are all in this process: owners' threads and links are the real ones, and what the posts of a
// job would tell is told by the test.

#include <gtest/gtest.h>
#include <poll.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/transport/base/patience.h"
#include "transport/base/clock.h"
#include "transport/base/machine.h"
#include "transport/base/sha256.h"
#include "transport/base/text.h"
#include "transport/tensor/link_socket.h"
#include "transport/tensor/owner_thread.h"

namespace monarch::tensor {
namespace {

class GroupOf {
 public:
  explicit GroupOf(std::uint32_t generators, bool over_tcp = false) : over_tcp_(over_tcp) {
    EXPECT_TRUE(members_.add({"trainer", 0}));
    for (std::uint32_t rank = 0; rank < generators; ++rank) EXPECT_TRUE(members_.add({"generator", rank}));
    for (std::uint32_t member = 0; member < members_.size(); ++member) start(member, 1);
  }

  const GroupMembers& members() const { return members_; }
  // Of the first, as posts give it to that one.
  Card card_for(const LinkRank& who) const { return card_of(*owners_.at(0), who); }
  const Card& readers_card() const { return owners_.at(0)->card(); }
  void start(std::uint32_t member, std::uint64_t generation) {
    const GroupMember who = members_.at(member);
    owners_[member] = OwnerThread::start({.rank = {who.mesh, who.rank, generation}, .address = "127.0.0.1"}).value();
  }
  // As kill -9 would.
  void kill(std::uint32_t member) { owners_[member].reset(); }

  GroupNewsPtr call(std::uint32_t member, std::optional<GroupMembers> members = {}) {
    auto news = std::make_shared<GroupNews>();
    GroupOffer offer;
    if (member == 0) offer = {"127.0.0.1", 4'000, text("offer ", ++offers_)};
    const GroupMembers list = members.value_or(members_);
    firsts_[news] = members_.find(list.at(0)).value();
    const auto self = list.find(members_.at(member));
    owners_.at(member)->give(owner_order::Meet{"sync", list, self.value(), offer, news});
    return news;
  }
  void give(std::uint32_t member, OwnerOrder order) { owners_.at(member)->give(std::move(order)); }
  void fail(std::uint32_t member, const RosterVerdict& verdict) { give(member, owner_order::Failed{verdict}); }

  // Until it holds of what is told, each question answered meanwhile, of others as well.
  template <class Until>
  GroupNews::Told wait(std::uint32_t member, const GroupNewsPtr& news, Until holds) {
    const Instant until = boot_now() + test_patience(Duration::seconds(10));
    calls_[member] = news;
    for (;;) {
      for (const auto& [who, of] : calls_) answer(who, of);
      const GroupNews::Told told = news->wait(holds, std::min(until, boot_now() + Duration::milliseconds(2)));
      if (holds(told) || boot_now() >= until) return told;
    }
  }
  std::optional<GroupMeeting> meeting(std::uint32_t member, const GroupNewsPtr& news) {
    const auto told = wait(member, news, [](const GroupNews::Told& now) { return now.meeting || now.refused; });
    EXPECT_FALSE(told.refused) << told.refused->message;
    return told.meeting;
  }
  std::string lost(std::uint32_t member, const GroupNewsPtr& news) {
    return wait(member, news, [](const GroupNews::Told& now) { return now.lost.has_value(); })
        .lost.value_or("not lost");
  }
  std::string refused(std::uint32_t member, const GroupNewsPtr& news) {
    const auto told = wait(member, news, [](const GroupNews::Told& now) { return now.meeting || now.refused; });
    return told.refused ? told.refused->message : "not refused";
  }
  std::string waits(std::uint32_t member, const GroupNewsPtr& news, const std::string& for_whom) {
    return wait(member, news, [&](const GroupNews::Told& now) { return now.waits == for_whom; }).waits;
  }

  // All that live.
  std::vector<GroupNewsPtr> all_call() {
    std::vector<GroupNewsPtr> all;
    for (std::uint32_t member = 0; member < members_.size(); ++member) all.push_back(call(member));
    for (std::uint32_t member = 0; member < members_.size(); ++member) calls_[member] = all[member];
    return all;
  }
  GroupMeeting all_meet(const std::vector<GroupNewsPtr>& all) {
    std::optional<GroupMeeting> one;
    for (std::uint32_t member = 0; member < members_.size(); ++member) {
      const auto its = meeting(member, all[member]);
      EXPECT_TRUE(its) << members_.at(member).name();
      if (!one) one = its;
      EXPECT_EQ(one, its);
    }
    return one.value_or(GroupMeeting{});
  }

 private:
  void answer(std::uint32_t member, const GroupNewsPtr& news) {
    const GroupNews::Question question = news->told().question;
    const OwnerThread* const first = owners_.at(firsts_.at(news)).get();
    if (question.number <= answered_[news] || !owners_.at(member)) return;
    if (first == nullptr || first->rank().generation <= question.since) return;
    answered_[news] = question.number;
    Card card = card_of(*first, owners_.at(member)->rank());
    if (over_tcp_) card.machine = "another";
    give(member, owner_order::FoundFirst{news, first->rank().generation, card});
  }

  static Card card_of(const OwnerThread& owner, const LinkRank& who) {
    return with_secret(owner.card(), personal_secret(owner.key(), who.mesh, who.rank, who.generation));
  }

  const bool over_tcp_;
  GroupMembers members_;
  std::map<std::uint32_t, std::unique_ptr<OwnerThread>> owners_;
  std::map<std::uint32_t, GroupNewsPtr> calls_;  // the newest that is waited for
  std::map<GroupNewsPtr, std::uint64_t> answered_;
  std::map<GroupNewsPtr, std::uint32_t> firsts_;
  int offers_ = 0;
};

}  // namespace

TEST(Groups, MeetOnTheMachineAndOverTcp) {
  for (const bool over_tcp : {false, true}) {
    GroupOf group(3, over_tcp);
    const GroupMeeting meeting = group.all_meet(group.all_call());
    EXPECT_EQ(meeting.epoch, (GroupEpoch{1, 1}));
    EXPECT_EQ(meeting.generations, (std::vector<std::uint64_t>{1, 1, 1, 1}));
    EXPECT_EQ(meeting.offer, (GroupOffer{"127.0.0.1", 4'000, "offer 1"}));
  }
}

TEST(Groups, OfOneMeetAtOnce) {
  GroupOf group(0);
  EXPECT_EQ(group.all_meet(group.all_call()).generations, std::vector<std::uint64_t>{1});
}

TEST(Groups, HearWithinMillisecondsThatAMemberIsKilledAndMeetItsNextGeneration) {
  GroupOf group(3);
  auto calls = group.all_call();
  group.all_meet(calls);
  group.kill(2);
  for (const std::uint32_t member : {0U, 1U, 3U}) {
    EXPECT_EQ(group.lost(member, calls[member]), "the connection to generator/1 ended");
  }
  group.start(2, 2);
  const GroupMeeting meeting = group.all_meet(group.all_call());
  EXPECT_EQ(meeting.epoch, (GroupEpoch{1, 2}));
  EXPECT_EQ(meeting.generations, (std::vector<std::uint64_t>{1, 1, 2, 1}));
}

TEST(Groups, HearThatTheFirstIsKilledAndMeetTheNextOne) {
  GroupOf group(2);
  auto calls = group.all_call();
  group.all_meet(calls);
  group.kill(0);
  for (const std::uint32_t member : {1U, 2U}) {
    EXPECT_EQ(group.lost(member, calls[member]), "the connection to trainer/0 ended");
  }
  group.start(0, 5);
  EXPECT_EQ(group.all_meet(group.all_call()).epoch, (GroupEpoch{5, 1}));
}

TEST(Groups, AreLostToAllOthersWhereOneLeavesOrCallsAgain) {
  GroupOf group(2);
  auto calls = group.all_call();
  group.all_meet(calls);
  group.give(1, owner_order::LeaveGroup{calls[1]});
  EXPECT_EQ(group.lost(0, calls[0]), "the connection to generator/0 ended");
  EXPECT_EQ(group.lost(2, calls[2]), "the connection to generator/0 ended");
  calls = group.all_call();
  group.all_meet(calls);
  const GroupNewsPtr again = group.call(2);
  EXPECT_EQ(group.lost(2, calls[2]), "generator/1 has called for the group again");
  EXPECT_EQ(group.lost(1, calls[1]), "generator/1 has called for the next epoch");
  group.give(0, owner_order::LeaveGroup{calls[0]});
  EXPECT_EQ(group.lost(0, calls[0]), "generator/1 has called for the next epoch");
  EXPECT_EQ(group.waits(2, again, "trainer/0, generator/0 have not called"), "trainer/0, generator/0 have not called");
}

TEST(Groups, AreLostByTheRosterWhereAHostSaysNothing) {
  GroupOf group(2);
  auto calls = group.all_call();
  group.all_meet(calls);
  group.fail(1, {"generator", 1, 1, 1, "host h2 is lost"});
  EXPECT_EQ(group.lost(1, calls[1]), "generator/1 is lost: host h2 is lost");
  group.fail(0, {"generator", 0, 2, 1, "host h2 is lost"});
  for (const std::uint32_t member : {0U, 2U}) {
    EXPECT_EQ(group.lost(member, calls[member]), "generator/0 is lost: host h2 is lost");
  }
}

TEST(Groups, NameWhoIsMissing) {
  GroupOf group(2);
  const GroupNewsPtr first = group.call(0);
  EXPECT_EQ(group.waits(0, first, "generator/0, generator/1 have not called"),
            "generator/0, generator/1 have not called");
  const GroupNewsPtr second = group.call(1);
  EXPECT_EQ(group.waits(1, second, "generator/1 has not called"), "generator/1 has not called");
  EXPECT_EQ(group.waits(0, first, "generator/1 has not called"), "generator/1 has not called");
  group.give(1, owner_order::LeaveGroup{second});
  EXPECT_EQ(group.waits(0, first, "generator/0, generator/1 have not called"),
            "generator/0, generator/1 have not called");
}

TEST(Groups, RefuseMembersThatDisagree) {
  GroupOf group(2);
  GroupMembers other;
  for (const GroupMember& one : {GroupMember{"trainer", 0}, GroupMember{"generator", 0}}) ASSERT_TRUE(other.add(one));
  const GroupNewsPtr first = group.call(0);
  const GroupNewsPtr second = group.call(1, other);
  const std::string why =
      "members disagree: trainer/0 has trainer/0, generator/0 to 1; generator/0 has trainer/0, generator/0";
  EXPECT_EQ(group.refused(1, second), why);
  EXPECT_EQ(group.refused(0, first), why);
  group.all_meet(group.all_call());
}

TEST(Groups, RefuseMembersThatDisagreeOnWhoIsFirstWhicheverCallsFirst) {
  for (const bool first_calls : {false, true}) {
    GroupOf group(2);
    GroupMembers other;
    for (const std::uint32_t member : {1U, 0U, 2U}) ASSERT_TRUE(other.add(group.members().at(member)));
    GroupNewsPtr first = first_calls ? group.call(1) : nullptr;
    const GroupNewsPtr second = group.call(2, other);
    if (!first_calls) {
      const std::string missing = "generator/0, trainer/0 have not called";
      EXPECT_EQ(group.waits(2, second, missing), missing);
      first = group.call(1);
    }
    const std::string why =
        "members disagree: generator/1 has generator/0, trainer/0, generator/1; generator/0 has trainer/0, "
        "generator/0 to 1";
    EXPECT_EQ(group.refused(2, second), why);
    EXPECT_EQ(group.refused(1, first), why);
    group.all_meet(group.all_call());
  }
}

namespace {

// Somebody with that card of the first, who is linked as that member; nullptr: he is refused.
std::unique_ptr<StreamLink> linked_as(const Card& card, const LinkRank& who) {
  HelloAsk ask;
  ask.reader = who;
  ask.owner = {"trainer", 0, 1};
  ask.purpose = LinkPurpose::kMeets;
  ask.publication = "sync";
  auto dial = LinkDial::start(card, LinkWay::kOnMachine, ask).value();
  for (;;) {
    auto link = dial->go_on();
    if (!link.ok()) return nullptr;
    if (*link) return std::move(*link);
    pollfd waiting{dial->descriptor(), dial->events(), 0};
    (void)::poll(&waiting, 1, 10'000);
  }
}

// Until the first ends it.
std::string end_of(StreamLink& link) {
  for (;;) {
    auto received = link.receive(kHelloBytes);
    if (!received.ok()) return "no word";
    if (*received && (*received)->frame.kind == FrameKind::kUnfit) return (*received)->behind;
    pollfd waiting{link.descriptor(), POLLIN, 0};
    if (!*received && ::poll(&waiting, 1, 10'000) != 1) return "it stands";
  }
}

}  // namespace

TEST(Groups, BelieveWhoProvesWhomHeIsAlone) {
  const GroupOf group(2);
  const LinkRank who{"generator", 0, 1};
  EXPECT_NE(linked_as(group.card_for(who), who), nullptr);
  EXPECT_EQ(linked_as(group.readers_card(), who), nullptr) << "with what all readers have";
  EXPECT_EQ(linked_as(group.card_for({"generator", 1, 1}), who), nullptr) << "with another rank's secret";
  EXPECT_EQ(linked_as(group.card_for({"generator", 0, 2}), who), nullptr) << "with that of another start";
}

TEST(Groups, EndTheLinksOfWhoSaysWhatIsNone) {
  GroupOf group(2);
  const auto said = [&](const LinkFrame& frame, const std::string& behind) {
    const LinkRank who{"generator", 0, 1};
    const auto link = linked_as(group.card_for(who), who);
    EXPECT_TRUE(link->send(frame, behind).ok());
    EXPECT_TRUE(link->flush().ok());
    return end_of(*link);
  };
  const LinkFrame meet{.kind = FrameKind::kMeet, .version = {1, 1}};
  const std::string none = "a call for a group that is none";
  EXPECT_EQ(said({.kind = FrameKind::kOpen}, ""), none);
  EXPECT_EQ(said(meet, "no word"), none);
  EXPECT_EQ(said(meet, codec::encode(GroupCallWord{{{"generator", 0, UINT32_MAX}}})), none);
  EXPECT_EQ(said(meet, codec::encode(GroupCallWord{{{"generator", 0, 2}}})),
            "generator/0 calls trainer/0 for a group of generator/0 to 1, and one of both has no place in that");
  EXPECT_EQ(linked_as(group.card_for({"", 0, 0}), {"", 0, 0}), nullptr) << "who is no rank of the job";
  const GroupNewsPtr first = group.call(0);
  EXPECT_EQ(said(meet, codec::encode(GroupCallWord{{{"trainer", 0, 1}, {"trainer", 0, 1}}})), none);
  EXPECT_EQ(group.waits(0, first, "generator/0, generator/1 have not called"),
            "generator/0, generator/1 have not called");
}

}  // namespace monarch::tensor
