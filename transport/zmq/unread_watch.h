#pragma once

// UnreadWatch: bounds what peers have libzmq keep for us. It hands out whole messages, and all frames of one lie in our
// memory until the last has come; how many these are nothing of its own bounds (ZMQ_MAXMSGSIZE is for each frame). So
// what the kernel has received of a connection is compared with what was handed out of it, and a connection that has
// too much between the two is ended: what it has sent goes with it.
//
// WARNING: the descriptors are libzmq's, which closes them on a thread of its own, whereupon something else may get
// their numbers. Each counts by the cookie of its socket (SO_COOKIE, socket(7)), and is ended by a duplicate.
//
// Thread: the loop's. Lifetime: longer than its ports'.

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "transport/base/time.h"
#include "transport/base/unique_fd.h"
#include "transport/zmq/socket.h"

namespace monarch {

class UnreadWatch;

// What connections of one kind, a port's or one that we have opened, may have libzmq keep.
class UnreadPort {
 public:
  // `most`: bytes, of each.
  UnreadPort(UnreadWatch& watch, std::uint64_t most) : watch_(watch), most_(most) {}
  ~UnreadPort();
  UnreadPort(const UnreadPort&) = delete;
  UnreadPort& operator=(const UnreadPort&) = delete;

  void opened(int descriptor);
  void handed_out(const ZmqArrival& arrival);
  std::uint64_t most() const { return most_; }
  std::uint64_t ended() const { return ended_; }  // connections

 private:
  friend class UnreadWatch;
  UnreadWatch& watch_;
  const std::uint64_t most_;
  std::uint64_t ended_ = 0;
};

class UnreadWatch {
 public:
  static constexpr Duration kEvery = Duration::milliseconds(100);
  static constexpr std::uint64_t kOfAll = 512U << 20U;  // of all connections together; then those with most are ended

  // When to look again.
  Instant next_due() const { return connections_.empty() ? Instant::never() : due_; }
  void look(Instant now);
  // What is unread of all connections, as it was looked at last.
  std::uint64_t unread() const { return unread_; }

 private:
  friend class UnreadPort;
  struct Connection {
    UnreadPort* port = nullptr;
    std::uint64_t cookie = 0;
    Instant since;
    std::uint64_t handed_out = 0;  // bytes
    std::uint64_t unread = 0;      // as it was looked at last
    bool ended = false;            // by us
  };
  using Connections = std::map<int, Connection>;

  Connection* opened(UnreadPort& port, int descriptor);
  void forget(const UnreadPort& port);
  bool has_grown(Instant now);
  bool measure(int descriptor, Connection& connection, Instant now) const;
  void end(int descriptor, Connection& connection);
  void tell(const std::string& peer, std::uint64_t bytes);

  Connections connections_;  // by descriptor
  Instant due_;
  std::uint64_t unread_ = 0;
  UniqueFd statm_;
  std::uint64_t resident_ = std::numeric_limits<std::uint64_t>::max();  // pages, when all were looked at last
  Instant all_due_;
  Instant tell_at_;
  std::uint64_t untold_ = 0;
};

}  // namespace monarch
