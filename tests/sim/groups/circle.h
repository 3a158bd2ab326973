#pragma once

// Circle: one simulated run of a group, whose members are killed, with and without a word, come back, give up and call
// again. The cores are the real ones; what drives them, links and posts, are models.
//
//   G1  all who are told of one epoch are told the same: members, generations, and what the first offers
//   G2  who is in an epoch hears within a second that another member has died, has given up or calls again
//   G3  without faults all are in one epoch before long, and every call ends
//   G4  an epoch whose members live, and have not called again, is not lost
//
// Thread: one simulation's. Lifetime: the run's.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/groups/bugs.h"
#include "tests/sim/kernel.h"
#include "tests/sim/random.h"
#include "tests/sim/seed_program.h"
#include "tests/sim/trace.h"
#include "transport/tensor/core/group_core.h"
#include "transport/tensor/core/group_member_core.h"

namespace monarch::sim::groups {

using namespace monarch::tensor;

struct CircleOptions {
  std::uint64_t seed = 0;
  Bug bug = Bug::kNone;
  bool print = false;
};

class Circle {
 public:
  explicit Circle(const CircleOptions& options);
  SeedResult run();

 private:
  struct Process;
  using ProcessPtr = std::shared_ptr<Process>;

  // What is said on it stays in order.
  struct Link {
    LinkNumber number = 0;
    ProcessPtr member;
    ProcessPtr first;
    Instant to_first;  // when what was said last arrives
    Instant to_member;
    bool ended = false;  // the member has ended it, or one of both is dead
  };
  using LinkPtr = std::shared_ptr<Link>;

  struct Process {
    std::uint32_t index = 0;
    std::uint64_t generation = 0;
    LifePtr life = std::make_shared<Life>();
    std::unique_ptr<GroupMemberCore> core;
    std::unique_ptr<GroupCore> group;  // of the first
    std::vector<LinkPtr> links;        // of the first, to members
    LinkPtr link;                      // of another, to the first
    std::optional<Instant> died;
    std::uint64_t calls = 0;
    std::map<std::uint64_t, Instant> over;  // by its number, of a call that was given up, or followed by another
    std::uint64_t number = 0;               // of the last one
    bool calling = false;
    std::optional<GroupMeeting> in;
    bool lost = false;
    std::optional<std::uint64_t> asks_since;
    std::uint64_t dial = 0;       // that leads nowhere; an earlier one says nothing any more
    std::uint64_t found = 0;      // generation of the first whose card it has
    std::set<std::uint32_t> old;  // members with a call of an earlier process, where they stay
  };
  struct Seat {
    ProcessPtr process;
    std::uint64_t number = 0;
  };
  struct Epoch {
    GroupMeeting meeting;
    std::vector<Seat> seats;
  };

  Instant now() const { return scheduler_.now(); }
  Duration soon() { return random_.skewed(Duration::microseconds(30), Duration::milliseconds(8)); }
  const ProcessPtr& first() const { return processes_.front(); }

  void start(std::uint32_t index);
  void call(const ProcessPtr& process);
  void call_later(const ProcessPtr& process, Duration wait);
  void give_up(const ProcessPtr& process, std::uint64_t calls);
  void feed(const ProcessPtr& process, const MemberEvent& event);
  void on(const ProcessPtr& process, const member_action::Ask& action);
  void on(const ProcessPtr& process, const member_action::Dial& action);
  void on(const ProcessPtr& process, const member_action::Say& action);
  void on(const ProcessPtr& process, const member_action::EndLink& action);
  void on(const ProcessPtr& process, const member_action::Joined& action);
  void on(const ProcessPtr& process, const member_action::Lost& action);
  void on(const ProcessPtr& process, const member_action::Waits& action);
  void on(const ProcessPtr& process, const member_action::Refuse& action);
  void feed_group(const ProcessPtr& first, const GroupEvent& event);
  void tell(const ProcessPtr& first, LinkNumber link, const MemberEvent& event);
  void answered(const ProcessPtr& first, const group_action::Answer& answer);
  void give_cards();
  void to_first(const LinkPtr& link, std::function<void()> task);
  void to_member(const LinkPtr& link, std::function<void()> task);

  void strike();
  void kill(const ProcessPtr& process);
  void verdict(const ProcessPtr& process);
  void heal();
  void look_who_heard();
  std::optional<Instant> over_since(const Seat& seat) const;
  bool all_are_in() const;
  bool has(Bug bug) const { return options_.bug == bug; }

  CircleOptions options_;
  Random random_;
  Trace trace_;
  Scheduler scheduler_;
  std::uint32_t size_ = 2;
  GroupMembers members_;
  std::vector<ProcessPtr> processes_;  // the newest of each
  std::vector<LifePtr> lives_;
  std::vector<ProcessPtr> all_;
  std::map<GroupEpoch, Epoch> epochs_;
  std::map<GroupEpoch, GroupMeeting> told_;
  LinkNumber next_link_ = 1;
  Duration calm_;         // between two faults, at most
  bool patient_ = false;  // calls have seconds
  bool quiet_ = false;
  std::uint64_t joined_ = 0;
};

}  // namespace monarch::sim::groups
