#pragma once

// GroupMemberCore: a group as one of its members knows it: its call, its link to the first member, the epoch that it is
// in, and whether that is lost. The first member itself has one as well, whose link is always there.
//
//   call ──▶ asking ──card──▶ dialing ──link──▶ calling ──answer──▶ in ──▶ lost
//               ▲                │                 │                 │       │
//               └─── pausing ◀───┴──── no link ◀───┘       a call ◀──┴───────┘   over the link, where that is there
//
// An epoch is lost by the word of the first, by the end of the link to it, and by the roster's verdict, whichever comes
// first. A verdict is remembered: an epoch that was answered with one whom it is on is lost at once. Where the words
// name no cause, and the verdict comes later, they become those: also one on another member, if it comes at once, since
// who hears of that first calls again and is what the others hear of.
//
// Thread: a value of the owner's; pure.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "transport/base/time.h"
#include "transport/tensor/core/group.h"

namespace monarch::tensor {

struct GroupMemberOptions {
  GroupMembers members;
  std::uint32_t self = 0;    // its place among them
  std::uint64_t number = 0;  // of calls by this process
};

namespace member_event {

struct Call {};   // the one before it is over
struct Leave {};  // its call is given up, or its epoch
struct Found {    // the card of the first
  std::uint64_t generation = 0;
};
struct Linked {};
struct LinkEnded {  // or it could not be had
  std::string why;
};
struct Refused {  // by the first, whose link ends; or by who takes this rank for the first
  std::string why;
};
struct Answered {
  std::uint64_t number = 0;  // of the call
  GroupMeeting meeting;
};
struct Told {  // by the first: for whom its call waits
  std::string text;
};
struct EpochLost {  // the first says so
  GroupEpoch epoch;
  std::optional<std::uint32_t> member;
  std::string text;
};
struct Failed {  // the roster's verdict
  GroupMember member;
  std::uint64_t generation = 0;
  std::string cause;
};
struct Tick {};

}  // namespace member_event

using MemberEvent = std::variant<member_event::Call, member_event::Leave, member_event::Found, member_event::Linked,
                                 member_event::LinkEnded, member_event::Refused, member_event::Answered,
                                 member_event::Told, member_event::EpochLost, member_event::Failed, member_event::Tick>;

namespace member_action {

struct Ask {  // for the card of the first, of a generation after that
  std::uint64_t since = 0;
};
struct Dial {};
struct Say {  // the call, over the link
  std::uint64_t number = 0;
};
struct EndLink {};
struct Joined {
  GroupMeeting meeting;
};
struct Lost {  // the epoch; once more with better words
  std::string text;
};
struct Waits {
  std::string text;
};
struct Refuse {  // the call
  std::string text;
};

}  // namespace member_action

using MemberAction =
    std::variant<member_action::Ask, member_action::Dial, member_action::Say, member_action::EndLink,
                 member_action::Joined, member_action::Lost, member_action::Waits, member_action::Refuse>;
using MemberActions = std::vector<MemberAction>;

class GroupMemberCore {
 public:
  explicit GroupMemberCore(GroupMemberOptions options);

  static constexpr Duration kFirstPause = Duration::milliseconds(5);
  static constexpr Duration kLongestPause = Duration::milliseconds(500);
  static constexpr Duration kAtOnce = Duration::milliseconds(250);

  MemberActions step(const MemberEvent& event, Instant now);
  Instant next_due() const { return phase_ == Phase::kPausing ? again_at_ : Instant::never(); }
  std::uint64_t number() const { return number_; }
  const GroupMembers& members() const { return options_.members; }
  // A call of it is not answered yet.
  bool is_calling() const;

 private:
  enum class Phase : std::uint8_t { kNone, kAsking, kDialing, kPausing, kCalling, kIn, kLost };
  struct Verdict {
    std::uint64_t generation = 0;
    std::string cause;
  };

  void on(const member_event::Call& event);
  void on(const member_event::Leave& event);
  void on(const member_event::Found& event);
  void on(const member_event::Linked& event);
  void on(const member_event::LinkEnded& event);
  void on(const member_event::Refused& event);
  void on(const member_event::Answered& event);
  void on(const member_event::Told& event);
  void on(const member_event::EpochLost& event);
  void on(const member_event::Failed& event);
  void on(const member_event::Tick& event);
  bool is_first() const { return options_.self == 0; }
  void ask();
  void say();
  void pause(const std::string& why);
  void end_link();
  void lose(std::optional<std::uint32_t> member, const std::string& why);
  void look_at_verdict(std::uint32_t member);
  void look_at_link();

  const GroupMemberOptions options_;
  MemberActions out_;
  Instant now_;
  Phase phase_ = Phase::kNone;
  bool linked_ = false;
  std::uint64_t linked_to_ = 0;  // that generation of the first, or dialed; 0: none
  std::uint64_t number_ = 0;
  GroupMeeting meeting_;  // of the epoch that it is in, or was
  std::optional<std::uint32_t> lost_by_;
  Instant lost_at_;
  bool has_cause_ = false;  // of the loss
  std::map<std::uint32_t, Verdict> verdicts_;
  Instant again_at_;
  Duration pause_ = kFirstPause;
};

}  // namespace monarch::tensor
