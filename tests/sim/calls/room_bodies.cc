// Bodies that come by a connection of their own, beside the messages that say them: as worker/post's driver waits for
// them.

#include "tests/sim/calls/room.h"
#include "tests/sim/violation.h"
#include "transport/wire/from_host.h"

namespace monarch::sim::calls {

namespace {

constexpr Duration kResumeAfter = Duration::milliseconds(100);

CallBody* body_place(post_event::PeerMessage& message) {
  if (auto* asks = std::get_if<LineAsks>(&message)) return &asks->body;
  if (auto* answer = std::get_if<LineAnswer>(&message)) return &answer->outcome.body;
  return nullptr;
}

}  // namespace

// Some go so. What is on its way when the connection ends is lost.
std::optional<Room::Aside> Room::send_aside(const ConnectionPtr& connection, bool back, Tag body) {
  if (body == 0 || connection->broken || !random_.one_in(6)) return std::nullopt;
  const Aside aside{.link = connection->body_link, .number = next_aside_++};
  const Duration takes = random_.skewed(Duration::microseconds(20), Duration::milliseconds(40));
  scheduler_.after(takes, [this, connection, back, aside, body] {
    const HostNumber from = back ? connection->to : connection->from;
    const HostNumber to = back ? connection->from : connection->to;
    const PostPtr post = hosts_[to].post;
    if (!post || !hosts_[to].up) return;
    post->life->message([this, connection, to, from, post, back, aside, body] {
      if (connection->broken || connection->body_link != aside.link) return;
      const Way way{from, back ? PeerVia::kOurs : PeerVia::kTheirs};
      post->awaited[way].arrived(aside.number, body, kBodyBytes);
      go_on(to, post, way);
    });
  });
  return aside;
}

// What comes within no bounds is heard by no post.
void Room::take_message(HostNumber to, const PostPtr& post, const Way& way, Sent sent) {
  if (!std::visit([](const auto& one) { return is_bounded(one); }, sent.message)) return;
  std::size_t next = 0;
  const bool is_alone = !std::holds_alternative<LineAnswers>(sent.message);
  std::visit(
      [&](auto& one) {
        each_body(one, [&](CallBody& body) {
          const Tag tag = next < sent.bodies.size() ? sent.bodies[next++] : 0;
          body = sent.aside ? CallBody() : is_alone ? give_from_peer(*post, tag) : give_body(*post, tag, kBodyBytes);
        });
      },
      sent.message);
  const auto number = sent.aside ? std::optional(sent.aside->number) : std::nullopt;
  post->awaited[way].said(std::move(sent.message), number, kBodyBytes);
  go_on(to, post, way);
}

void Room::go_on(HostNumber to, const PostPtr& post, const Way& way) {
  for (;;) {
    const auto awaited = post->awaited.find(way);
    if (awaited == post->awaited.end()) return;
    auto next = awaited->second.take();
    if (!next) {
      if (awaited->second.is_empty()) {
        post->awaited.erase(awaited);
      } else if (awaited->second.is_too_much()) {
        (void)drop_awaited(*post, way);
      }
      return;
    }
    if (next->body) *body_place(next->message) = give_from_peer(*post, *next->body);
    feed(to, post, post_event::PeerSaid{HostId(static_cast<std::uint32_t>(way.first)), std::move(next->message)});
  }
}

std::optional<LineEnds> Room::drop_awaited(Post& post, const Way& way) {
  const auto awaited = post.awaited.find(way);
  if (awaited == post.awaited.end()) return std::nullopt;
  std::optional<LineEnds> first;
  for (post_event::PeerMessage& message : awaited->second.lost()) {
    if (!first) first = std::visit([](const auto& one) { return one.ends; }, message);
    if (is(Bug::kDroppedBodiesStay)) continue;
    std::visit([&](const auto& one) { each_body(one, [&](const CallBody& body) { drop_body(post, body.at); }); },
               message);
  }
  post.awaited.erase(awaited);
  return first;
}

// Both ends see it.
void Room::lose_bodies(Connection& connection) {
  ++connection.body_link;
  lose_bodies_at(connection.from, connection.dialler, {connection.to, PeerVia::kOurs});
  lose_bodies_at(connection.to, connection.target, {connection.from, PeerVia::kTheirs});
}

void Room::lose_bodies_at(HostNumber at, const PostStart& start, const Way& way) {
  const PostPtr post = hosts_[at].post;
  if (!post || post->start != start) return;
  send_after(scheduler_, kSoon, post->life, [this, at, post, way] {
    if (const auto first = drop_awaited(*post, way)) resume_later(at, post, way, *first);
  });
}

void Room::resume_later(HostNumber at, const PostPtr& post, const Way& way, const LineEnds& ends) {
  send_after(scheduler_, kResumeAfter, post->life, [this, at, post, way, ends] {
    const HostId other(static_cast<std::uint32_t>(way.first));
    if (way.second == PeerVia::kOurs) return perform(at, post, post_action::Dial{other});
    perform(at, post, post_action::ToPeer{other, way.second, LineResync{ends}});
  });
}

}  // namespace monarch::sim::calls
