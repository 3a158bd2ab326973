#pragma once

// HeldGroups: the groups whose first member this rank is, and the links of their other members. A group is there from
// the first call for it to the end of its last epoch; epochs are counted on, whatever their names are.
//
// Thread: the loop's. Lifetime: within that of the loop and the server.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <monarch/codec.hpp>

#include "transport/loop/event_loop.h"
#include "transport/loop/scope.h"
#include "transport/tensor/core/group_core.h"
#include "transport/tensor/core/group_member_core.h"
#include "transport/tensor/owner_server.h"

namespace monarch::tensor {

inline constexpr codec::DecodeLimits kGroupLimits{.items = 1U << 20U};

// Behind kMeet.
struct GroupCallWord {
  std::vector<MemberRun> members;
};
MONARCH_FIELDS(GroupCallWord, members)

// Behind kMet.
struct GroupMeetingWord {
  GroupEpoch epoch;
  std::vector<std::uint64_t> generations;
  std::string address;
  std::uint16_t port = 0;
  codec::Bytes bytes;
};
MONARCH_FIELDS(GroupMeetingWord, epoch, generations, address, port, bytes)

// The roster's: ranks of a mesh that live and die together, and a generation of them that has ended.
struct RosterVerdict {
  std::string mesh;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint64_t generation = 0;
  std::string cause;
};
// The newest of all ranks.
class RosterVerdicts {
 public:
  // False: it is older than what is known.
  bool add(const RosterVerdict& verdict);
  const std::map<std::pair<std::string, std::uint32_t>, RosterVerdict>& all() const { return all_; }
  // Whether that process of it has ended.
  bool is_over(const GroupMember& member, std::uint64_t generation) const;

 private:
  std::map<std::pair<std::string, std::uint32_t>, RosterVerdict> all_;  // by mesh and first rank
};

class HeldGroups {
 public:
  // What is known of this rank as a member of that group.
  struct Own {
    std::function<void(const std::string& name, const MemberEvent&)> tell;
    std::function<void(const std::string& name)> called;  // somebody has called here
  };

  HeldGroups(EventLoop& loop, OwnerServer& server, const RosterVerdicts& verdicts, Own own);
  HeldGroups(const HeldGroups&) = delete;
  HeldGroups& operator=(const HeldGroups&) = delete;
  ~HeldGroups();

  // By this rank.
  void call(const std::string& name, std::uint64_t number, const GroupMembers& members, const GroupOffer& offer);
  // Somebody has called here for that group.
  bool is_called(const std::string& name) const { return held_.contains(name); }
  void leave(const std::string& name) { feed(name, group_event::Left{0}); }
  void failed(const RosterVerdict& verdict);

 private:
  static constexpr std::size_t kMostGroups = 1'024;
  struct Held {
    GroupCore core;
    TimerId timer = 0;
  };

  void heard(LinkNumber link, const HelloAsk& peer, const StreamLink::Received& word);
  Held& held(const std::string& name);
  void feed(const std::string& name, const GroupEvent& event);
  void tidy(const std::string& name);
  void tell_own(const std::string& name, MemberEvent event);
  void perform(const std::string& name, const group_action::Answer& action);
  void perform(const std::string& name, const group_action::Lost& action);
  void perform(const std::string& name, const group_action::Waits& action);
  void perform(const std::string& name, const group_action::Unfit& action);

  EventLoop& loop_;
  OwnerServer& server_;
  const RosterVerdicts& verdicts_;
  const Own own_;
  std::map<std::string, Held> held_;
  std::uint64_t count_ = 0;  // of epochs, of groups that are gone
  Scope scope_;
};

}  // namespace monarch::tensor
