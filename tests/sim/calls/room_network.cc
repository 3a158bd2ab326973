// The connections between posts.

#include <algorithm>

#include "tests/sim/calls/room.h"
#include "transport/base/text.h"

namespace monarch::sim::calls {

namespace {

constexpr std::size_t kThere = 0;
constexpr std::size_t kBack = 1;

bool is_from_root(const post_event::PeerMessage& message) {
  return std::holds_alternative<LineHello>(message) || std::holds_alternative<LineAsks>(message) ||
         std::holds_alternative<LineTakeBack>(message) || std::holds_alternative<LineHeard>(message);
}

LineEnds& ends_of(post_event::PeerMessage& message) {
  return std::visit([](auto& one) -> LineEnds& { return one.ends; }, message);
}

}  // namespace

Room::Connection* Room::connection(HostNumber from, HostNumber to) {
  const auto found = std::find_if(connections_.begin(), connections_.end(), [&](const ConnectionPtr& one) {
    return one->from == from && one->to == to && !one->broken;
  });
  return found == connections_.end() ? nullptr : found->get();
}

void Room::dial(HostNumber from, const PostPtr& post, HostNumber to) {
  if (connection(from, to) != nullptr) return;
  std::erase_if(connections_, [](const ConnectionPtr& one) { return one->broken; });
  const auto made = std::make_shared<Connection>();
  made->from = from;
  made->to = to;
  made->dialler = post->start;
  connections_.push_back(made);
  // Again and again, as a client that reconnects does.
  const auto attempt = [this, from, post, to, made](const auto& again) -> void {
    if (made->broken || !post->life->alive()) return;
    const Host& there = hosts_[to];
    const auto address = post->peers.find(HostId(static_cast<std::uint32_t>(to)));
    const bool open = there.up && there.post && there.post->life->alive() && address != post->peers.end() &&
                      address->second.port == 1'000 * (to + 1) + there.posts && !cut_.contains({from, to}) &&
                      there.post->peers.contains(HostId(static_cast<std::uint32_t>(from)));
    if (!open) {
      return scheduler_.after(random_.skewed(Duration::milliseconds(5), Duration::milliseconds(300)),
                              [again] { again(again); });
    }
    made->up = true;
    made->target = there.post->start;
    trace_.note(now(), "a connection stands", from, to);
    bring_late(from, to);
    if (is(Bug::kSilentConnection) && random_.one_in(2)) return;
    send_after(scheduler_, kSoon, post->life, [this, from, post, to, made] {
      if (!made->broken) feed(from, post, post_event::PeerUp{HostId(static_cast<std::uint32_t>(to))});
    });
  };
  scheduler_.after(random_.skewed(Duration::microseconds(300), Duration::milliseconds(50)),
                   [attempt] { attempt(attempt); });
}

// What is on its way is lost from some message on; what is before that comes, by and by.
void Room::break_connection(Connection& connection) {
  if (connection.broken || !connection.up) return;
  connection.broken = true;
  connection.arrive =
      random_.one_in(2) ? 0 : connection.sent - random_.below(std::min<std::uint64_t>(connection.sent, 8) + 1);
  trace_.note(now(), "a connection breaks", connection.from, connection.to);
  const HostNumber from = connection.from;
  const HostNumber to = connection.to;
  const PostPtr post = hosts_[from].post;
  if (!post || post->start != connection.dialler) return;
  send_after(scheduler_, random_.skewed(Duration::microseconds(100), Duration::milliseconds(200)), post->life,
             [this, from, post, to] {
               if (this->connection(from, to) != nullptr) return;  // it was replaced before its end was seen
               feed(from, post, post_event::PeerDown{HostId(static_cast<std::uint32_t>(to))});
               if (post->peers.contains(HostId(static_cast<std::uint32_t>(to)))) dial(from, post, to);
             });
}

void Room::break_connections(HostNumber host) {
  for (const ConnectionPtr& one : std::vector<ConnectionPtr>(connections_)) {
    if (one->from == host || one->to == host) break_connection(*one);
    if (one->from == host) one->broken = true;  // one that did not stand yet
  }
}

// Where an ask or an answer gets lost, the next one shows it, or the connection ends.
bool Room::gets_lost(const ConnectionPtr& connection, bool back, const post_event::PeerMessage& message) {
  std::size_t& owes = connection->owes[back ? kBack : kThere];
  if (owes == message.index()) owes = 0;
  const bool counted = std::holds_alternative<LineAsks>(message) || std::holds_alternative<LineAnswer>(message);
  if (!counted || !lossy_ || healthy_ || owes != 0 || !random_.one_in(60)) return false;
  owes = message.index();
  scheduler_.after(Duration::milliseconds(300), [this, connection, back] {
    if (connection->owes[back ? kBack : kThere] != 0) break_connection(*connection);
  });
  return true;
}

void Room::carry(const ConnectionPtr& connection, bool back, post_event::PeerMessage message, Tag body) {
  if (gets_lost(connection, back, message)) return;
  if (is(Bug::kNothingSaidAgain)) {
    if (const auto* answer = std::get_if<LineAnswer>(&message)) {
      AnswerNumber& newest =
          said_[{connection->from, connection->to, answer->ends.root_start, answer->ends.target_start}];
      if (answer->said <= newest) return;
      newest = answer->said;
    }
  }
  const auto* const answer = std::get_if<LineAnswer>(&message);
  if (answer != nullptr && answer->said <= 2) die_while_answered(connection);
  Instant& newest = connection->newest[back ? kBack : kThere];
  newest = std::max(newest, now() + random_.skewed(Duration::microseconds(20), Duration::milliseconds(3)));
  scheduler_.at(newest, [this, connection, back, number = ++connection->sent, message = std::move(message), body] {
    if (connection->broken && number > connection->arrive) return;
    // A late one may come later still: behind what the next connection brings first.
    if (connection->broken && random_.one_in(2)) return late_.push_back({connection, back, message, body});
    arrive(connection, back, message, body);
  });
}

void Room::bring_late(HostNumber from, HostNumber to) {
  for (Late& late : std::exchange(late_, {})) {
    if (late.connection->from != from || late.connection->to != to) {
      late_.push_back(std::move(late));
      continue;
    }
    scheduler_.after(random_.skewed(Duration::microseconds(100), Duration::milliseconds(50)),
                     [this, late] { arrive(late.connection, late.back, late.message, late.body); });
  }
}

// Its first answers come late, to the next start of it.
void Room::die_while_answered(const ConnectionPtr& connection) {
  if (!lossy_ || healthy_ || !random_.one_in(12)) return;
  scheduler_.after(Duration::microseconds(1), [this, connection] {
    if (connection->broken || hosts_[connection->from].rogue) return;
    trace_.note(now(), "fault: a post dies while it is answered", connection->from);
    kill_post(connection->from, true);
    connection->arrive = connection->sent;
  });
}

void Room::arrive(const ConnectionPtr& connection, bool back, post_event::PeerMessage message, Tag body) {
  const HostNumber from = back ? connection->to : connection->from;
  const HostNumber to = back ? connection->from : connection->to;
  const PostPtr post = hosts_[to].post;
  const HostId sender(static_cast<std::uint32_t>(from));
  if (!post || !hosts_[to].up) return;
  post->life->message([this, connection, to, post, sender, message = std::move(message), body]() mutable {
    if (!post->peers.contains(sender) || !with_bug(*post, connection->broken, message)) return;
    if (auto* asks = std::get_if<LineAsks>(&message)) asks->body = give_body(*post, body, 100);
    if (auto* answer = std::get_if<LineAnswer>(&message)) answer->outcome.body = give_body(*post, body, 100);
    feed(to, post, post_event::PeerSaid{sender, std::move(message)});
  });
}

bool Room::with_bug(const Post& to, bool late, post_event::PeerMessage& message) const {
  auto* const hello = std::get_if<LineHello>(&message);
  if (is(Bug::kLostResync)) return !std::holds_alternative<LineResync>(message);
  if (is(Bug::kAsksOfPredecessor) && is_from_root(message)) {
    ends_of(message).target_start = to.start;
    if (hello != nullptr && hello->target) hello->target = to.start;
  }
  if (is(Bug::kAnswersOfPredecessor) && !is_from_root(message)) ends_of(message).root_start = to.start;
  if (is(Bug::kAnyEpoch) && late && hello != nullptr) hello->epoch += 1'000;
  if (const auto* other = std::get_if<LineOther>(&message); is(Bug::kOtherIsTheSame) && other != nullptr) {
    message = LineAccepted{other->ends, 1, other->epoch};
  }
  if (auto* asks = std::get_if<LineAsks>(&message); is(Bug::kStaleCaller) && asks != nullptr) {
    const RosterRun* const run = to.core->roster().find(asks->caller.rank);
    const bool is_there = run != nullptr && run->host == asks->ends.root && !asks->caller.mesh.empty();
    if (is_there) asks->caller.generation = run->generation.counter;
  }
  return true;
}

// What it likes, to whom it likes.
void Room::babble(HostNumber rogue) {
  if (healthy_) return;
  scheduler_.after(random_.skewed(Duration::microseconds(200), Duration::milliseconds(100)),
                   [this, rogue] { babble(rogue); });
  const HostNumber to = some_host();
  const PostPtr post = hosts_[to].post;
  const HostId sender(static_cast<std::uint32_t>(rogue));
  if (to == rogue || !post || !hosts_[to].up || !post->peers.contains(sender)) return;
  const auto some_start = [&](HostNumber host) {
    return PostStart{1 + random_.below(2), hosts_[host].posts + random_.below(2)};
  };
  const HostNumber root = random_.one_in(2) ? rogue : some_host();
  const LineEnds ends{HostId(static_cast<std::uint32_t>(root)), some_start(root), some_start(to)};
  post_event::PeerMessage message;
  switch (random_.below(8)) {
    case 0:
      message = LineHello{ends, ends.target_start, random_.below(50), random_.below(20), random_.below(20)};
      break;
    case 1: message = LineAccepted{ends, random_.below(20), random_.below(50)}; break;
    case 2: message = LineOther{ends, random_.below(50)}; break;
    case 3: message = LineResync{ends}; break;
    case 4: {
      LineAsks asks;
      asks.ends = ends;
      asks.first = random_.below(20);
      asks.heard = random_.below(20);
      asks.mesh = MeshId(static_cast<std::uint32_t>(random_.below(3)));
      for (std::uint64_t i = random_.below(4); i > 0; --i) {
        asks.ranks.push_back({Rank(static_cast<std::uint32_t>(random_.below(9))), random_.one_in(4)});
      }
      asks.target = {"a", "f", "*"};
      // No rank lives where the rogue is: in whose name it asks, it lies.
      if (const Slot& forged = slots_[random_.below(slots_.size())]; !random_.one_in(4)) {
        asks.caller = {.mesh = forged.rank.mesh == MeshId(0) ? "work" : "control",
                       .rank = forged.rank,
                       .generation = forged.generation + random_.below(2)};
      }
      asks.body = give_body(*post, kNobodys, 100);
      message = std::move(asks);
      break;
    }
    case 5: {
      LineAnswer answer{ends, random_.below(20), random_.below(20), {}};
      answer.outcome.body = give_body(*post, kNobodys, 100);
      message = std::move(answer);
      break;
    }
    case 6: message = LineTakeBack{ends, random_.below(20)}; break;
    default: message = LineHeard{ends, random_.below(1'000)}; break;
  }
  post->life->message([this, to, post, sender, message] { feed(to, post, post_event::PeerSaid{sender, message}); });
}

}  // namespace monarch::sim::calls
