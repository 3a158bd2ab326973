// Ranks and their supervisor.

#include <algorithm>

#include "tests/sim/calls/room.h"
#include "tests/sim/violation.h"
#include "transport/base/text.h"

namespace monarch::sim::calls {

namespace {

constexpr Duration kKnockAgain = Duration::milliseconds(50);
constexpr Duration kBeat = Duration::seconds(1);
constexpr Duration kVerdict = Duration::seconds(5);  // on a host that is silent
const std::vector<RankActor> kActors{{"a", "A", {{"f", "i->i"}}}};

}  // namespace

// ---- A rank and what it does at the door.

void Room::start_process(Slot& slot) {
  const auto process = std::make_shared<Process>();
  process->number = next_process_++;
  process->rank = slot.rank;
  process->generation = slot.generation;
  process->host = host_of_[process->number] = slot.host;
  callers_[process->number] = {
      .mesh = slot.rank.mesh == MeshId(0) ? "work" : "control", .rank = slot.rank, .generation = slot.generation};
  if (is(Bug::kSuccessorRuns) && slot.process && slot.process->host == slot.host && slot.process->serves) {
    // It sits down at the door that the one before it had.
    process->post = slot.process->post;
    process->serves = slot.process->serves;
    process->queue = slot.process->queue;
    const PostPtr post = hosts_[slot.host].post;
    if (post && post->doors.contains(*process->serves)) post->doors[*process->serves].process = process;
  }
  slot.process = process;
  lives_.push_back(process->life);
  trace_.note(now(), "a rank starts", rank_index(slot.rank), slot.generation, slot.host);
  send_after(scheduler_, random_.skewed(Duration::milliseconds(1), Duration::milliseconds(100)), process->life,
             [this, process] {
               connect(process);
               work(process);
               // READY, by its keeper and a beat.
               scheduler_.after(random_.skewed(Duration::milliseconds(1), Duration::milliseconds(50)), [this, process] {
                 Slot& its = this->slot(process->rank);
                 if (its.process != process || !process->life->alive()) return;
                 its.state = RosterState::kUp;
                 tell_roster();
               });
             });
  if (calling_) call_at_times(process);
}

void Room::connect(const ProcessPtr& process) {
  if (!process->life->alive() || !hosts_[process->host].up) return;
  const PostPtr post = hosts_[process->host].post;
  if (!post || !post->life->alive()) {
    return send_after(scheduler_, kKnockAgain, process->life, [this, process] { connect(process); });
  }
  if (process->post != post->start) {
    give_up_lent(process->number, {});
    process->serves.reset();
    process->calls.reset();
    process->post = post->start;
  }
  if (!process->serves && !process->zombie) knock(process, true);
  if (!process->calls) knock(process, false);
}

void Room::knock(const ProcessPtr& process, bool serves) {
  const PostPtr post = hosts_[process->host].post;
  const DoorId door(post->start.number * 1'000'000 + post->next_door++);
  post->doors[door].process = process;
  (serves ? process->serves : process->calls) = door;
  PostHello hello{.version = speaks_newest(*process) ? kPostDoorVersion : kOldestPostDoorVersion,
                  .mesh = callers_[process->number].mesh,
                  .rank = process->rank.rank.value(),
                  .generation = process->generation,
                  .serves = serves,
                  .actors = serves ? kActors : std::vector<RankActor>(),
                  .watches = false};
  say(process, door, std::move(hello), 0);
}

void Room::say(const ProcessPtr& process, DoorId door, post_event::DoorMessage message, Tag body) {
  const HostNumber host = process->host;
  const PostPtr post = hosts_[host].post;
  if (!post || post->start != process->post) return;
  send_after(scheduler_, kHop, post->life,
             [this, host, post, door, message = std::move(message), body] { hear(host, post, door, message, body); });
}

void Room::hear(HostNumber host, const PostPtr& post, DoorId id, post_event::DoorMessage message, Tag body) {
  const auto door = post->doors.find(id);
  if (door == post->doors.end()) return;
  if (door->second.held || !door->second.unread.empty()) {
    door->second.unread.push_back(std::move(message));
    door->second.unread_bodies.push_back(body);
    return;
  }
  take(host, post, id, std::move(message), body);
}

void Room::take(HostNumber host, const PostPtr& post, DoorId id, post_event::DoorMessage message, Tag body) {
  std::visit(
      [&](auto& one) {
        const ProcessNumber lender = post->doors.at(id).process->number;
        each_body(one, [&](CallBody& its) { its = give_in_block(*post, body, lender, its.block); });
      },
      message);
  feed(host, post, post_event::DoorSaid{id, std::move(message)});
}

void Room::told(const ProcessPtr& process, DoorId door, const post_action::DoorMessage& message,
                const std::vector<Tag>& bodies) {
  if (const auto* deliver = std::get_if<PostDeliver>(&message)) {
    const bool is_nobodys = bodies.front() == kNobodys;
    judge_here(process, deliver->here, is_nobodys ? 0 : ledger_.caller_of(bodies.front()));
    process->queue.push_back({deliver->delivery, bodies.front(), door, process->rank, deliver->body.block != 0});
    work(process);
  } else if (const auto* back = std::get_if<PostTakeBack>(&message)) {
    const auto found = std::find_if(process->queue.begin() + (process->busy ? 1 : 0), process->queue.end(),
                                    [&](const Work& one) { return one.delivery == back->delivery; });
    if (process->queue.empty() || found == process->queue.end()) return;
    process->queue.erase(found);
    end_reading(process, {.delivery = back->delivery});
    PostReply reply{.delivery = back->delivery, .outcome = {}};
    reply.outcome.kind = OutcomeKind::kCancelled;
    say(process, door, reply, 0);
  } else if (const auto* answer = std::get_if<PostAnswer>(&message)) {
    answered(process, {.id = answer->id, .rank = answer->rank, .outcome = answer->outcome, .here = answer->here},
             bodies.front());
    const Lendings::Reading what{.delivery = 0, .id = answer->id, .rank = answer->rank};
    if (answer->outcome.body.block == 0) return end_reading(process, what);
    let_go_later(process, door, what);
  } else if (const auto* answers = std::get_if<PostAnswers>(&message)) {
    for (std::size_t i = 0; i < answers->answers.size(); ++i) {
      const SaidAnswer& one = answers->answers[i];
      answered(process, one, bodies[i]);
      const bool is_cut = answers->answers.size() == limits_.together && i + 1 == limits_.together;
      const bool is_followed = i + 1 < answers->answers.size() && answers->answers[i + 1].id == one.id;
      if (is_followed && is(Bug::kLastTooEarly)) over(process, {.id = one.id, .refused = {}});
      if (one.last && !(is_cut && is(Bug::kLastLostWithACut))) over(process, {.id = one.id, .refused = {}});
    }
  } else if (const auto* one = std::get_if<PostOver>(&message)) {
    over(process, *one);
  } else if (const auto* welcome = std::get_if<PostWelcome>(&message)) {
    if (welcome->guest != 0) welcomed(process, welcome->guest);
  } else if (const auto* free = std::get_if<PostFree>(&message)) {
    freed(process->number, *free);
  }
}

void Room::answered(const ProcessPtr& process, const SaidAnswer& said, Tag body) {
  const auto open = process->open.find(said.id);
  must(open != process->open.end(), "C1", "an answer to a call that is over");
  const Rank rank(said.rank);
  ledger_.answer(open->second, rank, said.outcome, body, faults_, now());
  if (said.outcome.kind == OutcomeKind::kValue) judge_here(process, said.here, ledger_.ran_by(open->second, rank));
}

void Room::over(const ProcessPtr& process, const PostOver& over) {
  const auto open = process->open.find(over.id);
  must(open != process->open.end(), "C1", "a call that is over is over again");
  ledger_.over(open->second, over.refused, faults_);
  process->open.erase(open);
}

// The rank goes on with what it was given; its answers are nobody's.
void Room::lose_post(const ProcessPtr& process) {
  give_up_lent(process->number, {});
  process->serves.reset();
  process->calls.reset();
  for (const auto& [id, tag] : process->open) ledger_.abandon(tag);
  process->open.clear();
  connect(process);
}

void Room::leave(const PostPtr& post, DoorId door, HostNumber host) {
  post->doors.erase(door);
  send_after(scheduler_, Duration::zero(), post->life,
             [this, host, post, door] { feed(host, post, post_event::DoorLeft{door}); });
}

void Room::work(const ProcessPtr& process) {
  if (process->busy || process->queue.empty() || !process->life->alive()) return;
  process->busy = true;
  const Work one = process->queue.front();
  ledger_.run(one.call, one.as, process->number, process->generation);
  trace_.note(now(), "a rank runs", rank_index(process->rank), one.call);
  // What a rogue asks takes little, so that a flood of it ends some time.
  const Duration longest = one.call == kNobodys ? Duration::milliseconds(1) : Duration::milliseconds(300);
  const Duration takes = random_.skewed(Duration::microseconds(10), longest);
  send_after(scheduler_, takes, process->life, [this, process, one] {
    process->busy = false;
    process->queue.pop_front();
    const bool keeps = one.is_block && process->serves == one.door && random_.one_in(3);
    if (!keeps) end_reading(process, {.delivery = one.delivery});
    if (process->serves == one.door) {
      PostReply reply{.delivery = one.delivery, .outcome = {}};
      reply.keeps = keeps && !is(Bug::kFreedThoughKept);
      const bool raises = random_.one_in(20);
      if (raises) reply.outcome.kind = OutcomeKind::kRemoteError;
      const Tag body = one.call == kNobodys ? kNobodys : answer_tag(one.call, one.as.rank);
      if (!raises) lend_body(process, one.door, reply.outcome.body, body);
      say(process, one.door, std::move(reply), raises ? 0 : body);
    }
    if (keeps) let_go_later(process, one.door, {.delivery = one.delivery});
    work(process);
  });
}

void Room::call(const ProcessPtr& process) {
  if (!process->life->alive() || !process->calls) return;
  std::vector<Rank> ranks;
  PostCall call;
  call.id = ++process->last_call;
  call.mesh = "work";
  call.target = {"a", "f", "i->i"};
  std::map<Rank, ProcessNumber> guests;
  if (random_.one_in(3)) guests = some_guests(*process, call);
  for (const auto& [number, guest] : guests) ranks.push_back(number);
  for (std::uint32_t rank = 0; rank < mesh_sizes_[0]; ++rank) {
    if (!guests.empty() || !random_.one_in(3)) continue;
    ranks.emplace_back(rank);
    call.ranks.push_back({.first = rank, .count = 1, .step = 1});
  }
  call.quiet = random_.one_in(4);
  std::optional<Duration> deadline;
  if (random_.one_in(4)) deadline = random_.skewed(Duration::milliseconds(1), Duration::seconds(5));
  if (deadline) call.deadline = clock_.local(now()) + *deadline;
  const MeshId mesh = guests.empty() ? MeshId(0) : kGuestsMeshId;
  const Tag tag = ledger_.call(process->number, mesh, ranks, call.quiet, deadline, now(), std::move(guests));
  process->open[call.id] = tag;
  trace_.note(now(), "a rank calls", rank_index(process->rank), tag, ranks.size(), call.quiet ? 1 : 0);
  lend_body(process, *process->calls, call.body, tag);
  say(process, *process->calls, std::move(call), tag);
}

// ---- The supervisor.

void Room::kill_rank(Slot& slot) {
  if (slot.state != RosterState::kUp || !slot.process || hosts_[slot.host].lost || !hosts_[slot.host].up) return;
  const ProcessPtr process = slot.process;
  const std::string cause = text(kKilled, ", as generation ", slot.generation);
  trace_.note(now(), "fault: a rank dies", rank_index(slot.rank), slot.generation);
  const PostPtr post = hosts_[slot.host].post;
  const bool zombie = faults_.stale_callers && random_.one_in(2);
  const bool unseen = is(Bug::kDoorLeftUnseen) || is(Bug::kSuccessorRuns);
  if (zombie) {
    // What it has started goes on calling in its name.
    process->zombie = true;
    zombies_.push_back(process);
    process->queue.resize(process->busy ? 1 : 0);
    if (process->serves && post && post->start == process->post && !unseen) leave(post, *process->serves, slot.host);
    process->serves.reset();
    scheduler_.after(Duration::seconds(3), [this, process] { end_process(process, false); });
  } else {
    end_process(process, unseen);
  }
  // The keeper's word, by the daemon, to the post that there is.
  scheduler_.after(random_.skewed(Duration::microseconds(100), Duration::milliseconds(50)),
                   [this, host = slot.host, rank = slot.rank, generation = slot.generation, cause, unseen] {
                     if (unseen || is(Bug::kUnnamedCause) || !hosts_[host].post) return;
                     const PostPtr there = hosts_[host].post;
                     there->life->message([this, host, there, rank, generation, cause] {
                       feed(host, there, post_event::RankEnded{{rank, {Term(1), generation}}, cause});
                     });
                   });
  ended(slot, cause);
}

void Room::end_process(const ProcessPtr& process, bool unseen) {
  if (!process->life->alive()) return;
  process->life->end();
  forget_reader(process);
  give_up_lent(process->number, {});
  for (const auto& [id, tag] : process->open) ledger_.abandon(tag);
  process->open.clear();
  const PostPtr post = hosts_[process->host].post;
  if (!post || post->start != process->post || !post->life->alive()) return;
  if (process->serves && !unseen) leave(post, *process->serves, process->host);
  if (process->calls) leave(post, *process->calls, process->host);
}

void Room::ended(Slot& slot, const std::string& cause) {
  faults_.ended.insert(slot.rank);
  slot.state = RosterState::kDown;
  if (std::exchange(slot.being_restarted, true)) return;
  const bool given_up = random_.one_in(30);
  // The supervisor hears of it.
  scheduler_.after(random_.skewed(Duration::milliseconds(1), Duration::milliseconds(100)),
                   [this, rank = slot.rank, cause, given_up] {
                     Slot& its = this->slot(rank);
                     if (its.state != RosterState::kDown) return;
                     failures_.push_back({.number = failures_.size() + 1,
                                          .mesh = rank.mesh,
                                          .first = rank.rank,
                                          .count = 1,
                                          .generation = its.generation,
                                          .cause = cause});
                     if (given_up) its.state = RosterState::kGivenUp;
                     tell_roster();
                     if (given_up) return;
                     scheduler_.after(random_.skewed(Duration::milliseconds(150), Duration::seconds(2)),
                                      [this, rank] { restart(this->slot(rank)); });
                   });
}

void Room::restart(Slot& slot) {
  if (slot.state != RosterState::kDown) return;
  if (hosts_[slot.host].lost || !hosts_[slot.host].up) {
    std::vector<HostNumber> others;
    for (HostNumber host = 0; host < hosts_.size(); ++host) {
      if (hosts_[host].up && !hosts_[host].lost && !hosts_[host].rogue) others.push_back(host);
    }
    if (others.empty()) {
      return scheduler_.after(Duration::milliseconds(500), [this, rank = slot.rank] { restart(this->slot(rank)); });
    }
    slot.host = others[random_.below(others.size())];
  }
  slot.being_restarted = false;
  ++slot.generation;
  start_process(slot);
  tell_roster();
}

// It falls silent; the verdict follows, and it comes back as another worker some time later.
void Room::lose_host(HostNumber number) {
  Host& host = hosts_[number];
  trace_.note(now(), "fault: a host is lost", number);
  host.up = false;
  for (Slot& slot : slots_) {
    if (slot.host != number || !slot.process) continue;
    end_process(slot.process, false);
    faults_.ended.insert(slot.rank);
  }
  for (const ProcessPtr& zombie : std::exchange(zombies_, {})) end_process(zombie, false);
  for (const ProcessPtr& guest : std::vector<ProcessPtr>(guests_)) {
    if (guest->host == number) guest_leaves(guest);
  }
  kill_post(number, false);
  host.post.reset();
  host.port = 0;
  scheduler_.after(random_.between(kVerdict / 2, kVerdict), [this, number] {
    Host& it = hosts_[number];
    it.lost = true;
    for (Slot& slot : slots_) {
      if (slot.host == number && slot.state != RosterState::kGivenUp) ended(slot, text(kKilled, ": its host is lost"));
    }
    tell_roster();
    scheduler_.after(random_.skewed(Duration::milliseconds(100), Duration::seconds(4)), [this, number] {
      Host& back = hosts_[number];
      back.up = true;
      back.lost = false;
      ++back.worker;
      back.posts = 0;
      start_post(number);
      tell_roster();
    });
  });
}

Roster Room::roster() {
  Roster roster;
  roster.term = Term(term_);
  roster.number = ++roster_number_;
  for (HostNumber number = 0; number < hosts_.size(); ++number) {
    const Host& host = hosts_[number];
    if (host.lost && !is(Bug::kHostNeverLost)) continue;
    roster.hosts.push_back({.peer = {.host = HostId(static_cast<std::uint32_t>(number)),
                                     .name = text("h", number),
                                     .address = "10.0.0.1",
                                     .port = host.port,
                                     .public_key = text("key of ", host.worker)},
                            .without_post = {}});
  }
  roster.meshes = {{.name = "work", .dims = {{"rank", mesh_sizes_[0]}}},
                   {.name = "control", .dims = {{"one", mesh_sizes_[1]}}}};
  for (const Slot& slot : slots_) {
    roster.runs.push_back({.mesh = slot.rank.mesh,
                           .first = slot.rank.rank,
                           .count = 1,
                           .host = HostId(static_cast<std::uint32_t>(slot.host)),
                           .generation = {Term(1), slot.generation},
                           .state = slot.state});
  }
  roster.failures = failures_;
  return roster;
}

void Room::tell_roster() {
  const Roster before = newest_;
  newest_ = roster();
  for (HostNumber host = 0; host < hosts_.size(); ++host) {
    send_roster(host, newest_);
    if (lossy_ && random_.one_in(4)) send_roster(host, newest_);
    if (is(Bug::kRosterBackwards) && before.term != Term(0) && random_.one_in(4)) {
      Roster old = before;
      old.term = newest_.term;
      old.number = newest_.number + 1;
      send_roster(host, old);
    }
  }
}

// By the daemon, each by its own time.
void Room::send_roster(HostNumber host, const Roster& roster) {
  scheduler_.after(
      random_.skewed(Duration::microseconds(200), Duration::milliseconds(lossy_ ? 500 : 5)), [this, host, roster] {
        const PostPtr post = hosts_[host].post;
        if (!post || !hosts_[host].up) return;
        post->life->message([this, host, post, roster] { feed(host, post, post_event::RosterCame{roster}); });
      });
}

// What a beat says of the roster that a post goes by: one that has an older one is told.
void Room::beat() {
  for (HostNumber host = 0; host < hosts_.size(); ++host) {
    const PostPtr post = hosts_[host].post;
    if (!post || !hosts_[host].up) continue;
    const Roster& has = post->core->roster().roster();
    if (std::tie(has.term, has.number) < std::tie(newest_.term, newest_.number)) send_roster(host, newest_);
  }
  scheduler_.after(kBeat, [this] { beat(); });
}

}  // namespace monarch::sim::calls
