#pragma once

// Forward: a connection through a jump host: a channel of the session there, to the next host, whose bytes are carried
// to and from one end of a socket pair; the other end is the next session's socket. It is carried by whoever waits on
// that session, in the same thread.
//
// Thread: the session's. Lifetime: it owns the jump host's session, and outlives the session above it.

#include <poll.h>

#include <memory>
#include <string>
#include <vector>

#include "supervisor/launch/ssh/session/dial.h"
#include "supervisor/launch/ssh/session/ssh_channel.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

class RawSession;
class VerifiedSession;

class Forward {
 public:
  static Result<std::unique_ptr<Forward>> open(std::unique_ptr<VerifiedSession> jump, const std::string& address,
                                               std::uint16_t port, const Patience& patience);
  Forward(const Forward&) = delete;
  Forward& operator=(const Forward&) = delete;
  ~Forward();

  // For the next session; given once.
  UniqueFd take_far_end() { return std::move(far_); }

  // What to poll for before the next carry(), its own jump hosts' included.
  void watch(std::vector<pollfd>& watched) const;
  // All bytes that can go further now, either way.
  void carry();

 private:
  Forward(std::unique_ptr<VerifiedSession> jump, std::unique_ptr<SshChannel> channel, UniqueFd near, UniqueFd far);
  RawSession& raw() const;
  bool carry_out();
  bool carry_in();

  std::unique_ptr<VerifiedSession> jump_;
  std::unique_ptr<SshChannel> channel_;
  UniqueFd near_;
  UniqueFd far_;
  std::string outward_;  // read from the pair, not taken by the channel yet
  std::string inward_;   // read from the channel, not taken by the pair yet
  bool ended_ = false;   // of the channel; the pair is told once all of inward_ is in it
};

}  // namespace monarch
