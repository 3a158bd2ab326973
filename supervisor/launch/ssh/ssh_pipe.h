#pragma once

// SshPipe: a connection that came from a host as a channel, and its continuation to a port of this machine: bytes both
// ways, the end of each way passed on by itself, nothing lost before it. What is under way is bounded: a channel is
// read again only when all that came before has been taken here, and SSH's window (1.3 MB of libssh's) ends what the
// host may send until then.
//
// Thread: the session's. Lifetime: shorter than the session's.

#include <poll.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/launch/ssh/session/ssh_channel.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

class SshPipe {
 public:
  // To 127.0.0.1 of this machine, and nowhere else.
  static Result<std::unique_ptr<SshPipe>> open(std::unique_ptr<SshChannel> channel, std::uint16_t port);
  SshPipe(const SshPipe&) = delete;
  SshPipe& operator=(const SshPipe&) = delete;

  // `outward`: whether something may be written to the session now.
  // What to poll for before the next carry(); the session's own socket is the caller's.
  void watch(std::vector<pollfd>& watched, bool outward) const;
  // What can go further now, either way; whether anything did.
  bool carry(bool outward);
  // Both ways have ended, or it broke.
  bool ended() const { return broken_ || (told_channel_ && told_socket_); }

 private:
  SshPipe(std::unique_ptr<SshChannel> channel, UniqueFd socket)
      : channel_(std::move(channel)), socket_(std::move(socket)) {}
  bool carry_out();
  bool carry_in();
  bool read_channel();

  std::unique_ptr<SshChannel> channel_;
  UniqueFd socket_;
  std::string outward_;         // of the socket, not taken by the channel yet
  std::string inward_;          // of the channel, not taken by the socket yet
  bool connected_ = false;      // the socket
  bool socket_ended_ = false;   // nothing more comes of it
  bool channel_ended_ = false;  // nothing more comes of it
  bool told_channel_ = false;   // the end of the socket
  bool told_socket_ = false;    // the end of the channel
  bool broken_ = false;
};

}  // namespace monarch
