#pragma once

// DaemonDoor: where a process that serves beside a daemon is found by it: a socket at a path, at which one counts as
// the daemon once it has proven that it is. The one before it has ended then, or is about to. A daemon's question
// whether the process still turns is answered here.
//
// Thread: the loop's. Lifetime: shorter than the loop's.

#include <functional>
#include <memory>
#include <string>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/wire/frame.h"
#include "transport/wire/messages.h"
#include "transport/wire/seqpacket_channel.h"
#include "transport/wire/seqpacket_listener.h"

namespace monarch {

class DaemonDoor {
 public:
  struct Handlers {
    std::function<bool(const Frame&)> is_proof;    // of the first word of who has come
    std::function<void()> on_daemon;               // it has proven it, and can be told
    std::function<Status(const Frame&)> on_frame;  // what it refuses is told, and passed over
  };
  static Result<std::unique_ptr<DaemonDoor>> open(EventLoop& loop, const std::string& path, Handlers handlers);
  DaemonDoor(const DaemonDoor&) = delete;
  DaemonDoor& operator=(const DaemonDoor&) = delete;

  // False: there is no daemon, or it does not take it.
  template <class Message>
  bool send(const Message& message, const JobUuid& job) {
    return daemon_ && daemon_->send(frame_of(message, {.job = job})).ok();
  }

 private:
  DaemonDoor(EventLoop& loop, Handlers handlers) : loop_(loop), handlers_(std::move(handlers)) {}
  void on_connection(UniqueFd socket);
  void answer(const Frame& ping);

  EventLoop& loop_;
  const Handlers handlers_;
  std::unique_ptr<SeqpacketListener> listener_;
  std::unique_ptr<SeqpacketChannel> coming_;  // who has not proven yet that it is the daemon
  std::unique_ptr<SeqpacketChannel> daemon_;
};

}  // namespace monarch
