#pragma once

// GroupCore: a group as its first member holds it: who has called, and which epoch runs. Members call over links; the
// first itself calls over link 0. Once all have called there is an epoch, which all are told; it ends with a link of
// one of them, with the roster's verdict on one, and with a call for the next, and then the others are told that it is
// lost. What it goes by, each of which tests/sim/groups breaks:
//
//   - Epochs are counted within the generation of the first, and never anew.
//   - A call has the generation of its member and a number, and of two calls by one member the newer counts, whichever
//     link is heard first.
//   - A call by a member that has come back is in the place of the call by its earlier process.
//   - A call ends the epoch that runs, in all others: who calls has left it.
//   - The end of a link takes back the call that came over it.
//   - A verdict is on one generation of a member: it ends no epoch of a later one.
//
// Thread: a value of the owner's, in the first member; pure.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "transport/base/time.h"
#include "transport/tensor/core/group.h"
#include "transport/tensor/core/version.h"

namespace monarch::tensor {

struct GroupOptions {
  GroupMember first;
  std::uint64_t generation = 0;  // of it
  std::uint64_t count = 0;       // of epochs that it has had already
};

namespace group_event {

struct Call {
  LinkNumber link = 0;  // 0: by the first itself
  GroupMember member;
  std::uint64_t generation = 0;
  std::uint64_t number = 0;
  GroupMembers members;  // as it knows them
  GroupOffer offer;      // by the first
};
struct Left {
  LinkNumber link = 0;
};
struct Failed {  // the roster's verdict
  GroupMember member;
  std::uint64_t generation = 0;
  std::string cause;
};
struct Tick {};

}  // namespace group_event

using GroupEvent = std::variant<group_event::Call, group_event::Left, group_event::Failed, group_event::Tick>;

namespace group_action {

struct Answer {
  LinkNumber link = 0;
  std::uint64_t number = 0;  // of the call
  GroupMeeting meeting;
};
struct Lost {  // an epoch that it was in
  LinkNumber link = 0;
  GroupEpoch epoch;
  std::optional<std::uint32_t> member;  // with whom it has ended; nothing: none of it
  std::string text;
};
struct Waits {  // its call: who is missing, in words
  LinkNumber link = 0;
  std::string text;
};
struct Unfit {  // its call is refused; a call of it is there no more
  LinkNumber link = 0;
  std::string text;
};

}  // namespace group_action

using GroupAction = std::variant<group_action::Answer, group_action::Lost, group_action::Waits, group_action::Unfit>;
using GroupActions = std::vector<GroupAction>;

class GroupCore {
 public:
  explicit GroupCore(GroupOptions options) : options_(std::move(options)), count_(options_.count) {}

  // Between two words on who is missing: members that come one by one are no news.
  static constexpr Duration kWaitsEvery = Duration::milliseconds(500);

  GroupActions step(const GroupEvent& event, Instant now);
  Instant next_due() const { return tell_at_; }
  std::uint64_t count() const { return count_; }
  // Nobody has called, and no epoch runs.
  bool is_idle() const { return waiting_.empty() && !current_; }

 private:
  struct Waiting {
    LinkNumber link = 0;
    std::uint64_t generation = 0;
    std::uint64_t number = 0;
    GroupMembers members;
    GroupOffer offer;
    std::string told;
    bool asks = true;  // since it was last told
  };
  struct Seat {
    LinkNumber link = 0;
    std::uint64_t generation = 0;
  };
  struct Epoch {
    std::uint64_t count = 0;
    GroupMembers members;
    std::vector<Seat> seats;  // of each
  };
  using CallId = std::pair<std::uint64_t, std::uint64_t>;  // generation and number

  void on(const group_event::Call& event);
  void on(const group_event::Left& event);
  void on(const group_event::Failed& event);
  void on(const group_event::Tick&) {}
  bool agrees(const group_event::Call& event);
  // In all others than `left`.
  void end_epoch(const GroupMember& left, const std::string& why);
  void answer_all();
  void tell_who_waits();
  std::string missing() const;

  const GroupOptions options_;
  GroupActions out_;
  Instant now_;
  std::uint64_t count_ = 0;
  std::map<GroupMember, Waiting> waiting_;
  std::map<GroupMember, CallId> newest_;
  std::optional<Epoch> current_;
  Instant tell_at_ = Instant::never();  // somebody waits
};

}  // namespace monarch::tensor
