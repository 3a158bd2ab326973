#include "tests/sim/calls/room.h"

#include <algorithm>

#include "tests/sim/violation.h"
#include "transport/base/text.h"

namespace monarch::sim::calls {

namespace {

constexpr Duration kFaultsFor = Duration::seconds(20);
constexpr Duration kTurn = Duration::microseconds(300);
constexpr std::size_t kGuests = 3;
constexpr Duration kQuietFor = Duration::seconds(60);  // then all has ended

// What a process has got that may lie in a block, and where that is.
std::optional<std::pair<Lendings::Reading, CallBody>> reading_of(const post_action::DoorMessage& message) {
  if (const auto* one = std::get_if<PostDeliver>(&message)) {
    return std::pair(Lendings::Reading{.delivery = one->delivery}, one->body);
  }
  if (const auto* one = std::get_if<PostAnswer>(&message)) {
    return std::pair(Lendings::Reading{.delivery = 0, .id = one->id, .rank = one->rank}, one->outcome.body);
  }
  return std::nullopt;
}

}  // namespace

Room::Room(const RoomOptions& options) : options_(options), random_(options.seed), trace_(options.print) {}

SeedResult Room::run() {
  SeedResult result;
  try {
    build();
    begin();
    while (!scheduler_.idle() && now() < Instant() + kFaultsFor) scheduler_.run_next();
    heal();
    const Instant end = now() + kQuietFor;
    while (!scheduler_.idle() && scheduler_.next() < end && ledger_.open() > 0) scheduler_.run_next();
    ledger_.judge();
    // What is heard is said within a second; whom nobody knows is waited for 5 s.
    const Instant rest = now() + Duration::seconds(hosts_.back().rogue ? 7 : 3);
    while (!scheduler_.idle() && scheduler_.next() < rest) scheduler_.run_next();
    finish();
  } catch (const Violation& violation) {
    result.passed = false;
    result.label = violation.label;
    result.message = violation.message;
    result.last_lines = trace_.last_lines();
  }
  for (const LifePtr& life : lives_) life->end();
  for (Host& host : hosts_) {
    if (host.post) host.post->life->end();
  }
  result.hash = trace_.hash();
  result.simulated = now() - Instant();
  result.counted = ledger_.calls();
  return result;
}

// ---- What there is.

void Room::build() {
  hosts_.resize(2 + random_.below(3));
  mesh_sizes_ = {static_cast<std::uint32_t>(2 + random_.below(5)), 1};
  if (random_.one_in(4)) {
    limits_.line = {.answers = 2 + random_.below(4), .bytes = 600, .unheard = 64U * 1'024U};
    faults_.answers_evicted = true;
  }
  if (random_.one_in(4)) {
    limits_.of_a_rank = limits_.of_an_actor = 2 + random_.below(4);
    limits_.calls = 2 + random_.below(4);
    faults_.queues_are_short = true;
  }
  if (mesh_sizes_[0] == 6) limits_.window_calls = 2;
  if (mesh_sizes_[0] % 2 == 0) limits_.together = 2;
  if (is(Bug::kNoShares)) limits_.share = 1'000'000;
  lossy_ = !random_.one_in(4);
  one_machine_ = random_.one_in(4);
  if (hosts_.size() > 2 && random_.one_in(5)) hosts_.back().rogue = true;
  const std::size_t honest = hosts_.back().rogue ? hosts_.size() - 1 : hosts_.size();
  for (std::uint32_t mesh = 0; mesh < mesh_sizes_.size(); ++mesh) {
    for (std::uint32_t rank = 0; rank < mesh_sizes_[mesh]; ++rank) {
      slots_.push_back({.rank = {MeshId(mesh), Rank(rank)}, .host = random_.below(honest), .process = {}});
    }
  }
  if (lossy_ && random_.one_in(3)) faults_.stale_callers = true;
}

std::size_t Room::rank_index(const RankId& rank) const {
  return rank.rank.value() + (rank.mesh == MeshId(0) ? 0 : mesh_sizes_[0]);
}

void Room::begin() {
  for (HostNumber host = 0; host < hosts_.size(); ++host) start_post(host);
  for (Slot& slot : slots_) {
    slot.generation = 1;
    start_process(slot);
  }
  tell_roster();
  beat();
  // Not before everybody has heard that all ranks are up.
  scheduler_.after(Duration::seconds(2), [this] {
    calling_ = true;
    for (Slot& slot : slots_) call_at_times(slot.process);
    for (std::size_t i = 0; i < kGuests; ++i) guest_comes();
    if (hosts_.back().rogue) {
      babble(hosts_.size() - 1);
      flood(hosts_.size() - 1);
    }
    if (lossy_) fault();
  });
}

void Room::call_at_times(const ProcessPtr& process) {
  const Duration pause = random_.skewed(Duration::microseconds(50), Duration::milliseconds(1'500));
  send_after(scheduler_, pause, process->life, [this, process] {
    if (!calling_ || healthy_) return;
    for (std::uint64_t burst = random_.one_in(8) ? 1 + random_.below(12) : 1; burst > 0; --burst) call(process);
    call_at_times(process);
  });
}

void Room::fault() {
  if (healthy_) return;
  switch (random_.below(10)) {
    case 0:
    case 1: {
      if (connections_.empty()) break;
      break_connection(*connections_[random_.below(connections_.size())]);
      break;
    }
    case 2: {
      const HostNumber host = some_host();
      if (hosts_[host].rogue) break;
      trace_.note(now(), "fault: a post dies", host);
      kill_post(host, true);
      // Some die again as soon as they have begun.
      if (random_.one_in(2)) break;
      scheduler_.after(random_.skewed(Duration::milliseconds(60), Duration::seconds(2)), [this, host] {
        if (!healthy_) kill_post(host, true);
      });
      break;
    }
    case 3:
    case 4: kill_rank(slots_[random_.below(slots_.size())]); break;
    case 5: {
      const HostNumber host = some_host();
      if (hosts_[host].rogue || !hosts_[host].up || hosts_[host].lost) break;
      lose_host(host);
      break;
    }
    case 6: {  // a way between two hosts is cut, for less than a verdict
      const auto cut = std::pair(some_host(), some_host());
      if (cut.first == cut.second) break;
      trace_.note(now(), "fault: a way is cut", cut.first, cut.second);
      cut_.insert(cut);
      for (const ConnectionPtr& one : std::vector<ConnectionPtr>(connections_)) {
        if (std::pair(one->from, one->to) == cut) break_connection(*one);
      }
      scheduler_.after(random_.skewed(Duration::milliseconds(10), Duration::seconds(3)),
                       [this, cut] { cut_.erase(cut); });
      break;
    }
    case 7: {  // a post stands still
      const HostNumber host = some_host();
      const LifePtr life = hosts_[host].post ? hosts_[host].post->life : nullptr;
      if (!life || !life->alive()) break;
      trace_.note(now(), "fault: a post stands still", host);
      faults_.posts_stand = true;
      life->freeze();
      lives_.push_back(life);
      scheduler_.after(random_.skewed(Duration::milliseconds(1), Duration::milliseconds(800)),
                       [life] { life->thaw(); });
      break;
    }
    case 9: {  // a connection for bodies ends
      if (connections_.empty()) break;
      const ConnectionPtr one = connections_[random_.below(connections_.size())];
      if (one->up && !one->broken) lose_bodies(*one);
      break;
    }
    case 8: {  // a supervisor takes over
      ++term_;
      roster_number_ = 0;
      tell_roster();
      break;
    }
  }
  scheduler_.after(random_.skewed(Duration::milliseconds(1), Duration::seconds(3)), [this] { fault(); });
}

void Room::heal() {
  healthy_ = true;
  cut_.clear();
  trace_.note(now(), "all is well from here on");
  if (!hosts_.back().rogue) return;
  // Its connections end, also those by which something is on its way to a post that stands still.
  for (const Duration wait : {Duration::zero(), Duration::seconds(1)}) {
    scheduler_.after(wait, [this] {
      for (const Host& host : hosts_) {
        for (const PeerVia via : {PeerVia::kOurs, PeerVia::kTheirs}) {
          if (host.post) (void)drop_awaited(*host.post, {hosts_.size() - 1, via});
        }
      }
    });
  }
}

void Room::finish() {
  judge_blocks();
  for (HostNumber host = 0; host < hosts_.size(); ++host) {
    if (!hosts_[host].post || hosts_[host].rogue || !hosts_[host].post->life->alive()) continue;
    const Post& post = *hosts_[host].post;
    must(post.core->calls() == 0, "C6", text("the post of host ", host, " has calls left over"));
    must(post.core->guests() == guests_at(host), "C6", text("the post of host ", host, " has other guests"));
    must(post.core->deliveries() == 0, "C6", text("the post of host ", host, " has deliveries left over"));
    must(post.core->doubted() == 0, "C6", text("the post of host ", host, " has asks left over that nobody believes"));
    must(post.awaited.empty(), "C6", text("the post of host ", host, " waits for a body for ever"));
    must(post.core->bodies() == post.bodies.size(), "C6", text("the driver of host ", host, " keeps other bodies"));
    // Answers that a rogue says not to have heard are kept.
    const bool others_lost = std::any_of(hosts_.begin(), hosts_.end(), [](const Host& one) { return one.lost; });
    const bool may_keep = faults_.post_died || others_lost || hosts_.back().rogue;
    must(post.core->bodies() == 0 || may_keep, "C6",
         text("the post of host ", host, " has ", post.core->bodies(), " bodies left over"));
    must(post.core->bodies() <= limits_.line.answers * hosts_.size(), "C6",
         text("the post of host ", host, " keeps ", post.core->bodies(), " answers"));
  }
}

// ---- Posts and their driver.

void Room::start_post(HostNumber number) {
  Host& host = hosts_[number];
  const auto post = std::make_shared<Post>();
  post->start = {host.worker, ++host.posts};
  post->lender = next_process_++;
  post->core = std::make_unique<PostCore>(PostOptions{.host = HostId(static_cast<std::uint32_t>(number)),
                                                      .host_name = text("h", number),
                                                      .start = post->start,
                                                      .one_machine = one_machine_ || is(Bug::kHereOfAnother),
                                                      .limits = limits_});
  post->alarm = std::make_unique<Alarm>(scheduler_, clock_, post->life, [this, number, post = post.get()] {
    if (hosts_[number].post.get() == post) feed(number, hosts_[number].post, post_event::Tick{});
  });
  host.post = post;
  trace_.note(now(), "a post starts", number, host.worker, host.posts);
  // The supervisor learns by a beat where it is.
  const auto port = static_cast<std::uint16_t>(1'000 * (number + 1) + host.posts);
  scheduler_.after(random_.skewed(Duration::milliseconds(1), Duration::milliseconds(300)), [this, number, post, port] {
    if (hosts_[number].post != post || !post->life->alive()) return;
    hosts_[number].port = port;
    tell_roster();
  });
}

void Room::kill_post(HostNumber number, bool again) {
  Host& host = hosts_[number];
  if (!host.post || !host.post->life->alive()) return;
  faults_.post_died = true;
  const PostPtr post = host.post;
  post->life->end();
  while (!post->blocks.empty()) drop_block(*post, post->blocks.begin()->first);
  give_up_lent(post->lender, {});
  break_connections(number);
  for (auto& [id, door] : post->doors) {
    const ProcessPtr process = door.process;
    send_after(scheduler_, kSoon, process->life, [this, process, start = post->start] {
      if (process->post == start) lose_post(process);
    });
  }
  if (!again) return;
  scheduler_.after(random_.skewed(Duration::milliseconds(50), Duration::seconds(1)), [this, number, post] {
    if (hosts_[number].up && hosts_[number].post == post) start_post(number);
  });
}

void Room::feed(HostNumber host, const PostPtr& post, const PostEvent& event) {
  if (!post->life->alive()) return;
  const Instant here = clock_.local(now());
  const auto* const said = std::get_if<post_event::DoorSaid>(&event);
  asked_now_ = std::holds_alternative<post_event::PeerSaid>(event) ||
               (said != nullptr && std::holds_alternative<PostCall>(said->message));
  perform_all(host, post, post->core->step(event, here));
  if (post->core->has_answers()) end_turn_later(host, post);
  if (!is(Bug::kNoTicks)) post->alarm->set(std::max(post->core->next_due(), here));
  if (!hosts_[host].rogue) {
    must(post->core->deliveries() <= (slots_.size() + kGuests) * limits_.of_a_rank, "C6",
         "more deliveries than its ranks may have");
    must(post->core->doubted() <= CallerGate::kCalls * hosts_.size(), "C7",
         "more asks that nobody believes than may wait");
  }
}

void Room::perform_all(HostNumber host, const PostPtr& post, const PostActions& actions) {
  for (const PostAction& action : actions) std::visit([&](const auto& one) { perform(host, post, one); }, action);
}

// A turn has some events.
void Room::end_turn_later(HostNumber host, const PostPtr& post) {
  if (std::exchange(post->turn_ends, true)) return;
  send_after(scheduler_, random_.between(Duration::zero(), kTurn), post->life, [this, host, post] {
    post->turn_ends = false;
    perform_all(host, post, post->core->end_turn());
  });
}

Tag Room::body_of(const Post& post, const CallBody& body) const {
  if (body.at == BodyId(0)) return 0;
  const auto found = post.bodies.find(body.at);
  must(found != post.bodies.end(), "C6", text("body ", body.at.value(), " is used after it was let go"));
  return found->second;
}

CallBody Room::give_body(Post& post, Tag tag, std::uint64_t bytes) {
  CallBody body;
  if (tag == 0) return body;
  body.bytes = bytes;
  body.at = BodyId(post.next_body++);
  post.bodies[body.at] = tag;
  return body;
}

void Room::perform(HostNumber host, const PostPtr& post, const post_action::ToDoor& action) {
  const auto at = post->doors.find(action.door);
  if (at == post->doors.end()) return;
  const ProcessPtr process = at->second.process;
  const std::vector<Tag> bodies = bodies_of(*post, action.message);
  if (const auto* deliver = std::get_if<PostDeliver>(&action.message)) {
    const Tag body = bodies.front();
    trace_.note(now(), "a post delivers", host, body, deliver->delivery, action.door.value());
    must(body != kForged, "C7", "what a host asks in another's name is delivered");
    if (asked_now_ && body != kNobodys) {
      const CallerName& caller = callers_.at(ledger_.caller_of(body));
      must(post->core->roster().passed(caller).empty(), "I2", "what a stale caller has called is delivered");
    }
  }
  const auto what = reading_of(action.message);
  if (what) begin_reading(*post, process, what->second, what->first);
  const int copies = is(Bug::kGivenTwice) && std::holds_alternative<PostDeliver>(action.message) ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    send_after(scheduler_, kHop, process->life,
               [this, process, start = post->start, door = action.door, message = action.message, bodies] {
                 if (process->post == start) return told(process, door, message, bodies);
                 if (const auto unheard = reading_of(message)) end_reading(process, unheard->first);
               });
  }
}

void Room::perform(HostNumber host, const PostPtr& post, const post_action::CloseDoor& action) {
  const auto at = post->doors.find(action.door);
  if (at == post->doors.end()) return;
  const ProcessPtr process = at->second.process;
  trace_.note(now(), "a door is closed", host, action.door.value());
  // Its process sees the end and comes anew, unless it has been passed.
  send_after(scheduler_, kHop, process->life, [this, process, door = action.door, start = post->start] {
    if (process->post != start) return;
    give_up_lent(process->number, door);
    if (process->calls == door) process->calls.reset();
    if (process->serves == door) process->serves.reset();
    for (const auto& [id, tag] : process->open) ledger_.abandon(tag);
    process->open.clear();
  });
  leave(post, action.door, host);
}

void Room::perform(HostNumber /*host*/, const PostPtr& post, const post_action::HoldDoor& action) {
  const auto at = post->doors.find(action.door);
  if (at != post->doors.end()) at->second.held = true;
}

void Room::perform(HostNumber host, const PostPtr& post, const post_action::ReadDoor& action) {
  const auto at = post->doors.find(action.door);
  if (at == post->doors.end()) return;
  at->second.held = false;
  // After this turn: a core is not fed from within its own.
  send_after(scheduler_, Duration::zero(), post->life, [this, host, post, id = action.door] {
    for (;;) {
      const auto door = post->doors.find(id);
      if (door == post->doors.end() || door->second.held || door->second.unread.empty()) return;
      const post_event::DoorMessage message = std::move(door->second.unread.front());
      const Tag body = door->second.unread_bodies.front();
      door->second.unread.pop_front();
      door->second.unread_bodies.pop_front();
      take(host, post, id, message, body);
    }
  });
}

void Room::perform(HostNumber host, const PostPtr& /*post*/, const post_action::Tell& /*action*/) {
  trace_.note(now(), "a post tells", host);
}

}  // namespace monarch::sim::calls
