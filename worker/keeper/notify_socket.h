#pragma once

// NotifySocket: the datagram socket at which the processes of one rank speak (NOTIFY_SOCKET). It reads a bounded number
// of datagrams a turn, and rests after a full measure: a rank that floods it is slowed down by its own full queue, and
// delays nobody else. Of what it is handed it closes every descriptor: sd_notify_barrier(3) waits for that. Where
// somebody removes its file it is made anew.
//
// Thread: the loop's. Lifetime: shorter than the loop's; its handler may not destroy it.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/wire/socket_file.h"

namespace monarch {

struct NotifyDrops {
  std::uint64_t too_long = 0;
  std::uint64_t foreign = 0;  // of another user
};

class NotifySocket {
 public:
  using OnDatagram = std::function<void(std::string_view)>;
  using OnDrop = std::function<void()>;  // drops() has grown

  // At `path`, mode 0600; a socket that is there is replaced.
  static Result<std::unique_ptr<NotifySocket>> open(EventLoop& loop, std::string path, OnDatagram on_datagram,
                                                    OnDrop on_drop);
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;
  ~NotifySocket();

  // Reads what waits, as far as a bounded queue can hold.
  void drain();
  const NotifyDrops& drops() const { return drops_; }

 private:
  NotifySocket(EventLoop& loop, std::string path, OnDatagram on_datagram, OnDrop on_drop);
  Status bind();
  void look();
  void look_later();
  // False when none waits, or that cannot be told.
  bool receive_one();
  void on_readable();

  EventLoop& loop_;
  SocketFile file_;
  OnDatagram on_datagram_;
  OnDrop on_drop_;
  UniqueFd socket_;
  TimerId look_timer_ = 0;
  std::optional<WatchId> watch_;
  std::optional<TimerId> rest_;
  NotifyDrops drops_;
};

}  // namespace monarch
