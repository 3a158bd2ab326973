#pragma once

// GroupSeat: this rank as a member of one group: its call, its link to the first member, or, where it is that itself,
// the way to what it holds, and what is told to those who have called.
//
// Thread: the loop's. Lifetime: within that of the loop, the server and the held groups.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "transport/loop/event_loop.h"
#include "transport/tensor/core/group_member_core.h"
#include "transport/tensor/group_news.h"
#include "transport/tensor/held_groups.h"
#include "transport/tensor/link_dial.h"
#include "transport/tensor/owner_server.h"

namespace monarch::tensor {

class GroupSeat {
 public:
  GroupSeat(EventLoop& loop, const OwnerServer& server, HeldGroups& held, std::string name, GroupMemberOptions options);
  GroupSeat(const GroupSeat&) = delete;
  GroupSeat& operator=(const GroupSeat&) = delete;
  // It leaves.
  ~GroupSeat();

  const GroupMembers& members() const { return core_.members(); }
  std::uint64_t number() const { return core_.number(); }
  const GroupNewsPtr& news() const { return news_; }
  // Another rank is to hold it, and has not answered yet.
  bool calls_elsewhere() const { return !is_first() && core_.is_calling(); }

  // What was called before is over.
  void call(const GroupOffer& offer, GroupNewsPtr news);
  // The card that was asked for.
  void found(std::uint64_t generation, Card card);
  // Of the first, where that is this rank.
  void hear(const MemberEvent& event) { feed(event); }
  void failed(const RosterVerdict& verdict);

 private:
  static constexpr Duration kDialPatience = Duration::seconds(5);
  static constexpr std::uint64_t kFirstBytes = 2U << 20U;  // behind what the first says

  void feed(const MemberEvent& event);
  void perform(const member_action::Ask& action);
  void perform(const member_action::Dial& action);
  void perform(const member_action::Say& action);
  void perform(const member_action::EndLink& action);
  void perform(const member_action::Joined& action);
  void perform(const member_action::Lost& action);
  void perform(const member_action::Waits& action);
  void perform(const member_action::Refuse& action);
  bool is_first() const { return self_ == 0; }
  void go_on();
  void hear_link();
  // False: the link is no more.
  bool hear(const StreamLink::Received& word);
  void end_link();
  void lost_link(const std::string& why);
  void flush();
  void watch(int fd, bool writes);

  EventLoop& loop_;
  const OwnerServer& server_;
  HeldGroups& held_;
  const std::string name_;
  const std::uint32_t self_;
  GroupMemberCore core_;
  GroupNewsPtr news_;  // of the last call
  GroupOffer offer_;
  std::uint64_t questions_ = 0;
  std::optional<Card> card_;
  std::uint64_t generation_ = 0;  // of the card
  LinkWay way_ = LinkWay::kOnMachine;
  std::unique_ptr<LinkDial> dial_;
  std::unique_ptr<StreamLink> link_;
  WatchId watch_ = 0;
  TimerId patience_ = 0;  // of a dial
  TimerId timer_ = 0;
};

}  // namespace monarch::tensor
