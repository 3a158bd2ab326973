// The connections between posts.

#include <algorithm>

#include "tests/sim/calls/room.h"
#include "transport/base/text.h"

namespace monarch::sim::calls {

namespace {

constexpr std::size_t kThere = 0;
constexpr std::size_t kBack = 1;
constexpr std::size_t kAsksOwed = 1;
constexpr std::size_t kAnswersOwed = 2;

bool is_from_root(const post_event::PeerMessage& message) {
  return std::holds_alternative<LineHello>(message) || std::holds_alternative<LineAsks>(message) ||
         std::holds_alternative<LineTakeBack>(message) || std::holds_alternative<LineHeard>(message);
}

// The numbers of the answers of a message.
struct AnswersIn {
  AnswerNumber first = 1;
  AnswerNumber last = 0;
  bool empty() const { return last < first; }
};
AnswersIn answers_in(const post_event::PeerMessage& message) {
  if (const auto* one = std::get_if<LineAnswer>(&message)) return {one->said, one->said};
  if (const auto* all = std::get_if<LineAnswers>(&message)) return {all->said, all->said + all->answers.size() - 1};
  return {};
}

LineEnds& ends_of(post_event::PeerMessage& message) {
  return std::visit([](auto& one) -> LineEnds& { return one.ends; }, message);
}

}  // namespace

void Room::perform(HostNumber host, const PostPtr& post, const post_action::ToPeer& action) {
  const auto to = static_cast<HostNumber>(action.host.value());
  std::vector<Tag> bodies = bodies_of(*post, action.message);
  const bool ours = action.via == PeerVia::kOurs;
  const auto found = std::find_if(connections_.rbegin(), connections_.rend(), [&](const ConnectionPtr& one) {
    return one->up && !one->broken && one->from == (ours ? host : to) && one->to == (ours ? to : host);
  });
  if (found == connections_.rend()) return;
  carry(*found, !ours, action.message, std::move(bodies));
}

void Room::perform(HostNumber host, const PostPtr& post, const post_action::Dial& action) {
  const auto to = static_cast<HostNumber>(action.host.value());
  if (const Connection* const known = connection(host, to)) {
    if (!known->up) return;
    send_after(scheduler_, kSoon, post->life,
               [this, host, post, peer = action.host] { feed(host, post, post_event::PeerUp{peer}); });
    return;
  }
  dial(host, post, to);
}

void Room::perform(HostNumber host, const PostPtr& post, const post_action::PeersChanged& /*action*/) {
  std::map<HostId, PeerAddress> peers;
  for (const PeerAddress& peer : post->core->peers()) peers[peer.host] = peer;
  for (const ConnectionPtr& one : connections_) {
    if (one->from != host || one->broken) continue;
    const HostId to(static_cast<std::uint32_t>(one->to));
    const auto before = post->peers.find(to);
    const auto after = peers.find(to);
    if (after == peers.end() || before == post->peers.end() || before->second != after->second) {
      one->broken = true;  // by us: nobody is told
      one->arrive = one->sent;
      lose_bodies(*one);
    }
  }
  post->peers = std::move(peers);
}

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
  lose_bodies(connection);
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
  const bool asks = std::holds_alternative<LineAsks>(message);
  const bool counted = asks || !answers_in(message).empty();
  const std::size_t kind = asks ? kAsksOwed : kAnswersOwed;
  if (counted && owes == kind) owes = 0;
  if (!counted || !lossy_ || healthy_ || owes != 0 || !random_.one_in(60)) return false;
  owes = kind;
  scheduler_.after(Duration::milliseconds(300), [this, connection, back] {
    if (connection->owes[back ? kBack : kThere] != 0) break_connection(*connection);
  });
  return true;
}

void Room::carry(const ConnectionPtr& connection, bool back, post_event::PeerMessage message, std::vector<Tag> bodies) {
  if (gets_lost(connection, back, message)) return;
  if (is(Bug::kNothingSaidAgain)) {
    const AnswersIn answers = answers_in(message);
    if (!answers.empty()) {
      const LineEnds& ends = ends_of(message);
      AnswerNumber& newest = said_[{connection->from, connection->to, ends.root_start, ends.target_start}];
      if (answers.first <= newest) return;
      newest = answers.last;
    }
  }
  if (const AnswersIn answers = answers_in(message); !answers.empty() && answers.first <= 2) {
    die_while_answered(connection);
  }
  if (std::holds_alternative<LineHello>(message)) break_while_greeted(connection);
  Instant& newest = connection->newest[back ? kBack : kThere];
  newest = std::max(newest, now() + random_.skewed(Duration::microseconds(20), Duration::milliseconds(3)));
  const bool is_alone = !std::holds_alternative<LineAnswers>(message) && !bodies.empty();
  Sent sent{.message = std::move(message), .bodies = std::move(bodies), .aside = {}};
  if (is_alone) sent.aside = send_aside(connection, back, sent.bodies.front());
  scheduler_.at(newest, [this, connection, back, number = ++connection->sent, sent = std::move(sent)] {
    if (connection->broken && number > connection->arrive) return;
    // A late one may come later still: behind what the next connection brings first.
    if (connection->broken && random_.one_in(2)) return late_.push_back({connection, back, sent});
    arrive(connection, back, sent);
  });
}

void Room::bring_late(HostNumber from, HostNumber to) {
  for (Late& late : std::exchange(late_, {})) {
    if (late.connection->from != from || late.connection->to != to) {
      late_.push_back(std::move(late));
      continue;
    }
    scheduler_.after(random_.skewed(Duration::microseconds(100), Duration::milliseconds(50)),
                     [this, late] { arrive(late.connection, late.back, late.sent); });
  }
}

// The hello comes late, behind that of the next connection.
void Room::break_while_greeted(const ConnectionPtr& connection) {
  if (!lossy_ || healthy_ || !random_.one_in(12)) return;
  scheduler_.after(Duration::microseconds(1), [this, connection] {
    break_connection(*connection);
    connection->arrive = connection->sent;
  });
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

void Room::arrive(const ConnectionPtr& connection, bool back, Sent sent) {
  const HostNumber from = back ? connection->to : connection->from;
  const HostNumber to = back ? connection->from : connection->to;
  const PostPtr post = hosts_[to].post;
  const HostId sender(static_cast<std::uint32_t>(from));
  if (!post || !hosts_[to].up) return;
  post->life->message([this, connection, to, post, from, sender, back, sent = std::move(sent)]() mutable {
    if (!post->peers.contains(sender) || !with_bug(*post, connection->broken, sent.message)) return;
    const Way way{from, back ? PeerVia::kOurs : PeerVia::kTheirs};
    if (sent.aside && (connection->broken || sent.aside->link != connection->body_link)) {
      // It was said before its connection for bodies ended: it is said again.
      return resume_later(to, post, way, ends_of(sent.message));
    }
    take_message(to, post, way, std::move(sent));
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

}  // namespace monarch::sim::calls
