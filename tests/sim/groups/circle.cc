#include "tests/sim/groups/circle.h"

#include <algorithm>

#include "tests/sim/violation.h"
#include "transport/base/text.h"

namespace monarch::sim::groups {

namespace {

constexpr int kRounds = 3;
constexpr Duration kFaultsFor = Duration::seconds(4);
constexpr Duration kQuietFor = Duration::seconds(20);
constexpr Duration kVerdict = Duration::milliseconds(400);  // by then everybody has heard of it
constexpr Duration kHeard = Duration::seconds(1);
constexpr Duration kLook = Duration::milliseconds(100);
constexpr Duration kUnanswered = Duration::seconds(12);  // until the end of a link to a host that says nothing
constexpr const char* kMesh = "m";

}  // namespace

Circle::Circle(const CircleOptions& options) : options_(options), random_(options.seed), trace_(options.print) {}

SeedResult Circle::run() {
  SeedResult result;
  try {
    size_ = 2 + static_cast<std::uint32_t>(random_.below(3));
    for (std::uint32_t index = 0; index < size_; ++index) (void)members_.add({kMesh, index});
    processes_.resize(size_);
    for (std::uint32_t index = 0; index < size_; ++index) start(index);
    calm_ = random_.one_in(2) ? Duration::milliseconds(400) : Duration::seconds(3);
    patient_ = random_.one_in(2);
    look_who_heard();
    for (int round = 0; round < kRounds; ++round) {
      quiet_ = false;
      strike();
      const Instant end = now() + kFaultsFor;
      while (!scheduler_.idle() && scheduler_.next() < end) scheduler_.run_next();
      heal();
      const Instant rest = now() + kQuietFor;
      while (!scheduler_.idle() && scheduler_.next() < rest && !all_are_in()) scheduler_.run_next();
      must(all_are_in(), "G3", "without faults the members are not in one epoch");
      const Instant last = now() + kVerdict + kHeard;  // what is late comes now
      while (!scheduler_.idle() && scheduler_.next() < last) scheduler_.run_next();
      must(all_are_in(), "G3", "the members do not stay in one epoch");
    }
  } catch (const Violation& violation) {
    result.passed = false;
    result.label = violation.label;
    result.message = violation.message;
    result.last_lines = trace_.last_lines();
  }
  for (const LifePtr& life : lives_) life->end();
  result.hash = trace_.hash();
  result.simulated = now() - Instant();
  result.counted = epochs_.size();
  for (const ProcessPtr& process : all_) {
    process->link.reset();
    process->links.clear();
  }
  return result;
}

// ---- Members.

void Circle::start(std::uint32_t index) {
  const auto process = std::make_shared<Process>();
  process->index = index;
  process->generation = processes_[index] == nullptr ? 1 : processes_[index]->generation + 1;
  process->core = std::make_unique<GroupMemberCore>(GroupMemberOptions{.members = members_, .self = index});
  if (index == 0) {
    GroupOptions options{.first = members_.at(0), .generation = process->generation};
    if (has(Bug::kEpochsAnew)) options.generation = 0;
    process->group = std::make_unique<GroupCore>(std::move(options));
  }
  trace_.note(now(), "start", index, process->generation);
  processes_[index] = process;
  all_.push_back(process);
  lives_.push_back(process->life);
  call_later(process, soon());
  if (index == 0) give_cards();
}

void Circle::call_later(const ProcessPtr& process, Duration wait) {
  scheduler_.after(wait, [this, process, calls = process->calls] {
    if (process->life->alive() && process->calls == calls) call(process);
  });
}

void Circle::call(const ProcessPtr& process) {
  process->over[process->number] = now();
  const std::uint64_t calls = ++process->calls;
  process->calling = true;
  process->lost = false;
  process->in.reset();
  trace_.note(now(), "call", process->index, process->generation, calls);
  feed(process, member_event::Call{});
  // Without faults a call has no deadline: it has to come to its end.
  if (quiet_) return;
  const Duration patience = patient_ ? random_.between(Duration::seconds(1), Duration::seconds(5))
                                     : random_.skewed(Duration::milliseconds(5), Duration::seconds(1));
  scheduler_.after(patience, [this, process, calls] { give_up(process, calls); });
}

void Circle::give_up(const ProcessPtr& process, std::uint64_t calls) {
  if (!process->life->alive() || process->calls != calls || !process->calling || quiet_) return;
  trace_.note(now(), "gives up", process->index, process->generation, process->number);
  process->calling = false;
  process->over[process->number] = now();
  feed(process, member_event::Leave{});
  call_later(process, random_.one_in(2) ? soon() : random_.between(Duration(), Duration::seconds(3)));
}

void Circle::feed(const ProcessPtr& process, const MemberEvent& event) {
  if (!process->life->alive()) return;
  if (has(Bug::kNoTicks) && std::holds_alternative<member_event::Tick>(event)) return;
  for (const MemberAction& action : process->core->step(event, now())) {
    std::visit([&](const auto& one) { on(process, one); }, action);
  }
  if (process->core->next_due() == Instant::never()) return;
  scheduler_.at(process->core->next_due(), [this, process] {
    if (process->core->next_due() <= now()) feed(process, member_event::Tick{});
  });
}

void Circle::on(const ProcessPtr& process, const member_action::Ask& action) {
  process->asks_since = action.since;
  give_cards();
}

// A post has the card of a process until it hears that that is dead, and of the next one then.
void Circle::give_cards() {
  if (first() == nullptr) return;
  for (const ProcessPtr& process : processes_) {
    if (process == nullptr || !process->asks_since || *process->asks_since >= first()->generation) continue;
    process->asks_since.reset();
    const std::uint64_t generation = first()->generation;
    send_after(scheduler_, soon(), process->life, [this, process, generation] {
      process->found = generation;
      feed(process, member_event::Found{generation});
    });
  }
}

void Circle::on(const ProcessPtr& process, const member_action::Dial& /*action*/) {
  const ProcessPtr to = first();
  if (to->generation != process->found || to->died) {
    return send_after(scheduler_, soon(), process->life, [this, process, dial = ++process->dial] {
      if (process->dial == dial) feed(process, member_event::LinkEnded{"nobody"});
    });
  }
  const auto link = std::make_shared<Link>();
  link->number = next_link_++;
  link->member = process;
  link->first = to;
  link->to_first = link->to_member = now() + soon();
  process->link = link;
  to->links.push_back(link);
  to_member(link, [this, process] { feed(process, member_event::Linked{}); });
}

void Circle::to_first(const LinkPtr& link, std::function<void()> task) {
  link->to_first = std::max(link->to_first, now()) + soon();
  scheduler_.at(link->to_first, [link, task = std::move(task)] { link->first->life->message(task); });
}

// What a link has that its member has ended nobody hears.
void Circle::to_member(const LinkPtr& link, std::function<void()> task) {
  link->to_member = std::max(link->to_member, now()) + soon();
  scheduler_.at(link->to_member, [link, task = std::move(task)] {
    if (link->member->link == link) link->member->life->message(task);
  });
}

void Circle::on(const ProcessPtr& process, const member_action::Say& action) {
  process->number = action.number;
  group_event::Call said{.link = 0,
                         .member = members_.at(process->index),
                         .generation = process->generation,
                         .number = has(Bug::kNoNumbers) ? 1 : action.number,
                         .members = members_,
                         .offer = {}};
  if (process->group) {
    said.offer.bytes = text(process->generation, '.', action.number);
    return scheduler_.after(Duration(), [this, process, said] { feed_group(process, said); });
  }
  const LinkPtr link = process->link;
  if (link == nullptr) return;  // it has not heard of its end
  said.link = link->number;
  to_first(link, [this, link, said] { feed_group(link->first, said); });
}

void Circle::on(const ProcessPtr& process, const member_action::EndLink& /*action*/) {
  ++process->dial;
  if (has(Bug::kGivesUpInPlace)) return;
  if (process->group) {
    return scheduler_.after(Duration(), [this, process] { feed_group(process, group_event::Left{0}); });
  }
  const LinkPtr link = std::exchange(process->link, nullptr);
  if (link == nullptr || std::exchange(link->ended, true)) return;
  to_first(link, [this, link] { feed_group(link->first, group_event::Left{link->number}); });
}

void Circle::on(const ProcessPtr& process, const member_action::Joined& action) {
  const GroupMeeting& meeting = action.meeting;
  trace_.note(now(), "joined", process->index, process->generation, meeting.epoch.generation, meeting.epoch.count);
  process->calling = false;
  process->in = meeting;
  ++joined_;
  const auto known = told_.try_emplace(meeting.epoch, meeting).first;
  must(known->second == meeting, "G1", text("epoch ", meeting.epoch.generation, '.', meeting.epoch.count, " is two"));
  must(meeting.generations.size() == size_ && meeting.generations[process->index] == process->generation, "G1",
       text("member ", process->index, " is in an epoch of another process"));
  // Sometimes it calls again though nothing has happened.
  if (!quiet_ && random_.one_in(6)) call_later(process, random_.between(Duration(), Duration::milliseconds(300)));
}

void Circle::on(const ProcessPtr& process, const member_action::Lost& /*action*/) {
  trace_.note(now(), "lost", process->index, process->generation, process->in->epoch.count);
  const auto& seats = epochs_.at(process->in->epoch).seats;
  const bool is_over =
      std::any_of(seats.begin(), seats.end(), [this](const Seat& seat) { return over_since(seat).has_value(); });
  must(is_over, "G4", text("member ", process->index, " has lost an epoch whose members live"));
  if (!std::exchange(process->lost, true)) call_later(process, soon());
}

void Circle::on(const ProcessPtr& process, const member_action::Waits& /*action*/) {
  trace_.note(now(), "waits", process->index);
}

void Circle::on(const ProcessPtr& process, const member_action::Refuse& action) {
  must(false, "G3", text("the call of member ", process->index, " is refused: ", action.text));
}

// ---- The first.

void Circle::feed_group(const ProcessPtr& first, const GroupEvent& event) {
  if (!first->life->alive()) return;
  const auto* const call = std::get_if<group_event::Call>(&event);
  if (has(Bug::kOldSelfStays) && call != nullptr && call->generation > 1 && first->old.contains(call->member.rank)) {
    return;
  }
  if (call != nullptr) first->old.insert(call->member.rank);
  if (const auto* const left = std::get_if<group_event::Left>(&event)) {
    for (const LinkPtr& link : first->links) {
      if (link->number == left->link) first->old.erase(link->member->index);
    }
  }
  const GroupActions actions = first->group->step(event, now());
  for (const GroupAction& action : actions) {
    if (const auto* const answer = std::get_if<group_action::Answer>(&action)) {
      answered(first, *answer);
      tell(first, answer->link, member_event::Answered{answer->number, answer->meeting});
    } else if (const auto* const lost = std::get_if<group_action::Lost>(&action)) {
      const bool is_kept = has(Bug::kEndNotTold) || (has(Bug::kCallEndsNothing) && call != nullptr);
      if (!is_kept) tell(first, lost->link, member_event::EpochLost{lost->epoch, lost->member, lost->text});
    } else if (const auto* const unfit = std::get_if<group_action::Unfit>(&action)) {
      must(false, "G3", text("a call is refused: ", unfit->text));
    }
  }
}

void Circle::answered(const ProcessPtr& first, const group_action::Answer& answer) {
  Epoch& epoch = epochs_[answer.meeting.epoch];
  if (epoch.seats.empty()) {
    trace_.note(now(), "epoch", answer.meeting.epoch.generation, answer.meeting.epoch.count);
    epoch.meeting = answer.meeting;
  }
  ProcessPtr member = first;
  for (const LinkPtr& link : first->links) {
    if (link->number == answer.link) member = link->member;
  }
  epoch.seats.push_back({member, has(Bug::kNoNumbers) ? member->number : answer.number});
}

void Circle::tell(const ProcessPtr& first, LinkNumber number, const MemberEvent& event) {
  const auto take = [this, event](const ProcessPtr& process) {
    MemberEvent said = event;
    auto* const answer = std::get_if<member_event::Answered>(&said);
    if (has(Bug::kNoNumbers) && answer != nullptr) answer->number = process->number;
    feed(process, said);
  };
  if (number == 0) return scheduler_.after(Duration(), [first, take] { take(first); });
  for (const LinkPtr& link : first->links) {
    if (link->number == number) to_member(link, [link, take] { take(link->member); });
  }
}

// ---- Faults.

void Circle::strike() {
  if (quiet_) return;
  const Duration wait = random_.skewed(Duration::milliseconds(1), calm_);
  scheduler_.after(wait, [this] {
    if (quiet_) return;
    const ProcessPtr process = processes_[random_.below(size_)];
    if (process->life->alive()) kill(process);
    strike();
  });
}

void Circle::kill(const ProcessPtr& process) {
  const bool silent = random_.one_in(4);  // its host has lost its cable
  const bool in_order = !silent && random_.one_in(4);
  trace_.note(now(), silent ? "silent end" : in_order ? "exit" : "kill", process->index, process->generation);
  process->life->end();
  process->died = now();
  const Duration heard = silent ? kUnanswered : Duration();
  if (const LinkPtr link = process->link; link && !std::exchange(link->ended, true)) {
    scheduler_.after(heard, [this, link] {
      to_first(link, [this, link] { feed_group(link->first, group_event::Left{link->number}); });
    });
  }
  for (const LinkPtr& link : process->links) {
    if (link->ended) continue;
    scheduler_.after(heard, [this, link] {
      to_member(link, [this, link] {
        const ProcessPtr member = link->member;
        member->link.reset();
        const bool is_told = !has(Bug::kDeafToLink) || member->calling;
        if (is_told) feed(member, member_event::LinkEnded{"it ended"});
      });
    });
  }
  if (!in_order) verdict(process);
  const std::uint32_t index = process->index;
  const Duration longest = random_.one_in(3) ? Duration::seconds(3) : Duration::milliseconds(600);
  scheduler_.after(random_.skewed(Duration::milliseconds(2), longest), [this, process, index] {
    if (processes_[index] == process) start(index);
  });
}

// Everybody hears of it, each in his time; who starts after it does not.
void Circle::verdict(const ProcessPtr& process) {
  const GroupMember member = members_.at(process->index);
  const std::uint64_t generation = process->generation + (has(Bug::kVerdictOnAny) ? 1 : 0);
  for (const ProcessPtr& other : processes_) {
    if (other == nullptr || other == process) continue;
    send_after(scheduler_, random_.skewed(Duration::milliseconds(1), kVerdict), other->life,
               [this, other, member, generation] {
                 const bool forgets = has(Bug::kVerdictForgotten);
                 if (other->group && !forgets) feed_group(other, group_event::Failed{member, generation, "died"});
                 if (forgets && !other->in) return;
                 feed(other, member_event::Failed{member, generation, "died"});
               });
  }
}

void Circle::heal() {
  quiet_ = true;
  trace_.note(now(), "heal");
  for (std::uint32_t index = 0; index < size_; ++index) {
    const ProcessPtr process = processes_[index];
    if (!process->life->alive()) {
      start(index);
    } else if (!process->calling && !process->in) {
      call_later(process, soon());
    }
  }
}

// ---- What must hold.

// Since when it is not in the epoch any more.
std::optional<Instant> Circle::over_since(const Seat& seat) const {
  if (seat.process->died) return seat.process->died;
  const auto over = seat.process->over.find(seat.number);
  return over == seat.process->over.end() ? std::nullopt : std::optional(over->second);
}

void Circle::look_who_heard() {
  for (const ProcessPtr& process : processes_) {
    if (!process->life->alive() || process->calling || !process->in || process->lost) continue;
    for (const Seat& seat : epochs_.at(process->in->epoch).seats) {
      const auto since = over_since(seat);
      must(!since || now() - *since <= kHeard, "G2",
           text("member ", process->index, " does not hear that member ", seat.process->index, " has left"));
    }
  }
  scheduler_.after(kLook, [this] { look_who_heard(); });
}

bool Circle::all_are_in() const {
  return std::all_of(processes_.begin(), processes_.end(), [this](const ProcessPtr& process) {
    return process->life->alive() && process->in && !process->lost && !process->calling &&
           process->in->epoch == first()->in->epoch;
  });
}

}  // namespace monarch::sim::groups
