#pragma once

// ListenerDoor: whether a listening TCP socket takes new connections. While it is closed the kernel drops the first
// packet of whoever asks for one, who asks again a second later and then more seldom; what is connected does not
// notice. libzmq has no such thing: its listener accepts whatever comes, and where no descriptor is left it spins.
//
// Thread: any one; the socket may be another thread's. Lifetime: its own, for it holds a duplicate of the socket: so
// nobody else can listen at that port before it has ended.

#include <cstddef>
#include <cstdint>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

class ListenerDoor {
 public:
  static Result<ListenerDoor> of(int listener);

  // Does this socket listen, at this port?
  static bool listens_at(int socket, std::uint16_t port);

  Status close();
  Status open();
  // Another descriptor of the socket, which stays one that listens for as long as there is any.
  Result<UniqueFd> duplicate() const;
  // Ends the connections that nobody has accepted yet; how many. It needs no free descriptor of this process: libzmq's
  // threads spin for each that becomes free, and are quicker. Waits for a thread that does it, which never waits.
  std::size_t turn_away() const;

 private:
  explicit ListenerDoor(UniqueFd listener) : listener_(std::move(listener)) {}

  UniqueFd listener_;
};

}  // namespace monarch
