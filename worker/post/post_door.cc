#include "worker/post/post_door.h"

#include <utility>

#include "transport/base/log.h"
#include "transport/base/text.h"

namespace monarch::post {

namespace {

constexpr Duration kLastWords = Duration::seconds(2);  // for what a closed connection is to hear

}  // namespace

Result<std::unique_ptr<PostDoor>> PostDoor::open(EventLoop& loop, const std::string& path, Handlers handlers) {
  std::unique_ptr<PostDoor> door(new PostDoor(loop, std::move(handlers)));
  PostDoor* const self = door.get();
  MONARCH_ASSIGN(door->listener_,
                 SeqpacketListener::create(loop, path, [self](UniqueFd socket, const PeerCredentials& /*peer*/) {
                   self->accept(std::move(socket));
                 }));
  door->listener_->on_no_descriptor(door->handlers_.make_room);
  return door;
}

PostDoor::~PostDoor() {
  for (const auto& [id, connection] : connections_) loop_.cancel(connection.drop_timer);
}

void PostDoor::accept(UniqueFd socket) {
  if (connections_.size() >= kConnections) {
    return log_warn("more than ", kConnections, " connections at the post's door: one is closed");
  }
  const DoorId door(next_door_++);
  ChannelHandlers handlers;
  handlers.on_frame = [this, door](Frame frame, std::vector<UniqueFd> descriptors) {
    handlers_.on_frame(door, std::move(frame), std::move(descriptors));
  };
  handlers.on_closed = [this, door](const Error& why) {
    if (why.code == ErrorCode::kInvalid) log_warn("a connection at the post's door ends: ", why.message);
    drop(door);
  };
  auto channel = SeqpacketChannel::create(loop_, std::move(socket), std::move(handlers),
                                          {.queue_frames = kUnreadFrames, .queue_bytes = kUnreadBytes});
  if (!channel.ok()) return log_warn("a connection at the post's door: ", channel.error().message);
  connections_[door].channel = std::move(*channel);
}

void PostDoor::send(DoorId door, const Frame& frame, LateDescriptor beside) {
  const auto found = connections_.find(door);
  if (found == connections_.end()) return;
  const Status sent = found->second.channel->send(frame, {}, std::move(beside));
  if (sent.ok() || sent.error().code == ErrorCode::kGone) return;  // its end is told by itself
  log_warn("a process does not read what the post has for it, and its connection ends: ", sent.error().message);
  drop_later(door, Duration::zero());
}

void PostDoor::close(DoorId door, const Frame& last) {
  const auto found = connections_.find(door);
  if (found == connections_.end()) return;
  (void)found->second.channel->send(last);  // a courtesy
  found->second.channel->close();
  drop_later(door, kLastWords);
}

void PostDoor::hold(DoorId door) {
  const auto found = connections_.find(door);
  if (found != connections_.end()) found->second.channel->pause();
}

void PostDoor::read(DoorId door) {
  const auto found = connections_.find(door);
  if (found != connections_.end()) found->second.channel->resume();
}

void PostDoor::drop_later(DoorId door, Duration patience) {
  TimerId& timer = connections_.at(door).drop_timer;
  loop_.cancel(timer);
  timer = loop_.at(loop_.now() + patience, [this, door] { drop(door); });
}

void PostDoor::drop(DoorId door) {
  const auto found = connections_.find(door);
  if (found == connections_.end()) return;
  loop_.cancel(found->second.drop_timer);
  connections_.erase(found);
  handlers_.on_left(door);
}

}  // namespace monarch::post
