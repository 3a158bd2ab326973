#pragma once

// PostDoor: the SEQPACKET socket at which processes of a host speak to its post (MONARCH_POST): frames and descriptors,
// both ways. Who it is that speaks is its own word: all are processes of one user.
//
// Thread: the loop's. Lifetime: shorter than the loop's; a handler may not destroy it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/wire/frame.h"
#include "transport/wire/seqpacket_channel.h"
#include "transport/wire/seqpacket_listener.h"
#include "worker/core/post/post_steps.h"

namespace monarch::post {

class PostDoor {
 public:
  static constexpr std::size_t kConnections = 4'096;  // one more is closed at once
  // What waits for a process that does not read; with more of it its connection ends.
  static constexpr std::size_t kUnreadFrames = 256U * 1'024U;
  static constexpr std::size_t kUnreadBytes = 256U << 20U;

  struct Handlers {
    std::function<void(DoorId, Frame, std::vector<UniqueFd>)> on_frame;
    std::function<void(DoorId)> on_left;
    std::function<bool()> make_room;  // a descriptor for who comes, where there is none: whether there is one now
  };
  static Result<std::unique_ptr<PostDoor>> open(EventLoop& loop, const std::string& path, Handlers handlers);
  PostDoor(const PostDoor&) = delete;
  PostDoor& operator=(const PostDoor&) = delete;
  ~PostDoor();

  // To one that has left it is nothing.
  void send(DoorId door, const Frame& frame, LateDescriptor beside);
  // After `last`; on_left follows, later.
  void close(DoorId door, const Frame& last);
  // Nothing of it is read, until it is.
  void hold(DoorId door);
  void read(DoorId door);

  std::size_t size() const { return connections_.size(); }

 private:
  PostDoor(EventLoop& loop, Handlers handlers) : loop_(loop), handlers_(std::move(handlers)) {}
  void accept(UniqueFd socket);
  void drop_later(DoorId door, Duration patience);
  void drop(DoorId door);

  struct Connection {
    std::unique_ptr<SeqpacketChannel> channel;
    TimerId drop_timer = 0;
  };
  EventLoop& loop_;
  const Handlers handlers_;
  std::unique_ptr<SeqpacketListener> listener_;
  std::map<DoorId, Connection> connections_;
  std::uint64_t next_door_ = 1;
};

}  // namespace monarch::post
