// Guests that come, serve, call and leave.

#include <algorithm>

#include "tests/sim/calls/room.h"
#include "tests/sim/violation.h"
#include "transport/base/text.h"

namespace monarch::sim::calls {

namespace {

constexpr std::size_t kKnownGuests = 8;

}  // namespace

// To some host that lives; as soon as one has left another one comes.
void Room::guest_comes() {
  if (healthy_) return;
  const HostNumber host = some_host();
  if (!hosts_[host].up || hosts_[host].lost || hosts_[host].rogue) {
    return scheduler_.after(Duration::milliseconds(100), [this] { guest_comes(); });
  }
  const auto guest = std::make_shared<Process>();
  guest->number = next_process_++;
  guest->rank = {kGuestsMeshId, Rank(0)};
  guest->generation = Guests::kGeneration;
  guest->host = host_of_[guest->number] = host;
  guest->is_guest = true;
  callers_[guest->number] = {};
  lives_.push_back(guest->life);
  guests_.push_back(guest);
  trace_.note(now(), "a guest comes", host, guest->number);
  const PostPtr post = hosts_[host].post;
  if (passed_ && passed_->host == host && post && post->start == passed_->post && passed_->serves &&
      post->doors.contains(*passed_->serves)) {
    // It sits down at the door of the one before it.
    guest->post = passed_->post;
    guest->rank = passed_->rank;
    guest->serves = passed_->serves;
    post->doors[*guest->serves].process = guest;
    passed_.reset();
  }
  connect(guest);
  if (random_.one_in(3)) call_at_times(guest);
  send_after(scheduler_, random_.skewed(Duration::milliseconds(30), Duration::seconds(6)), guest->life, [this, guest] {
    if (!healthy_) guest_leaves(guest);
  });
}

void Room::guest_leaves(const ProcessPtr& guest) {
  trace_.note(now(), "a guest leaves", guest->host, guest->number);
  faults_.guests_left.insert(guest->number);
  std::erase(guests_, guest);
  const bool is_passed = is(Bug::kNumberGivenTwice) && !passed_ && guest->rank.rank != Rank(0);
  end_process(guest, is_passed);
  if (is_passed) passed_ = guest;
  scheduler_.after(random_.skewed(Duration::milliseconds(1), Duration::seconds(1)), [this] { guest_comes(); });
}

void Room::welcomed(const ProcessPtr& guest, std::uint32_t number) {
  guest->rank.rank = Rank(number);
  must(guest_numbers_.insert({guest->host, guest->post, Rank(number)}).second, "C9",
       text("guest ", number, " of host ", guest->host, " is there twice"));
  known_guests_.push_back({guest->host, Rank(number), guest->number});
  if (known_guests_.size() > kKnownGuests) known_guests_.pop_front();
}

std::map<Rank, ProcessNumber> Room::some_guests(const Process& caller, PostCall& call) {
  std::map<Rank, ProcessNumber> guests;
  if (known_guests_.empty()) return guests;
  const HostNumber host = known_guests_[random_.below(known_guests_.size())].host;
  while (guests.empty()) {
    for (const KnownGuest& one : known_guests_) {
      if (one.host == host && random_.one_in(2)) guests[one.number] = one.process;
    }
  }
  call.mesh = kGuestsMesh;
  call.host = host == caller.host && random_.one_in(2) ? "" : text("h", host);
  for (const auto& [number, guest] : guests) call.ranks.push_back({.first = number.value(), .count = 1, .step = 1});
  return guests;
}

std::size_t Room::guests_at(HostNumber host) const {
  return static_cast<std::size_t>(std::count_if(guests_.begin(), guests_.end(), [&](const ProcessPtr& one) {
    return one->host == host && one->serves && one->post == hosts_[host].post->start;
  }));
}

// `other`: who has called, or has answered; 0: somebody of a host that is not to be believed.
void Room::judge_here(const ProcessPtr& process, bool here, ProcessNumber other) const {
  const bool is_here = one_machine_ || (other != 0 && host_of_.at(other) == process->host);
  must(here == is_here, "C9",
       text("what process ", process->number, " hears of ", other, here ? " is said to be of its machine" : " is not"));
}

}  // namespace monarch::sim::calls
