#pragma once

// SshListener: ports of the host's own loopback that sshd there listens on for us (tcpip-forward); what connects to one
// comes as a channel. Who connects is any process of the host: nothing that it sends is trusted here, and how many
// there may be at a time is bounded.
//
// Thread: the session's. Lifetime: shorter than the session's; channels that were taken may outlive it.

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "supervisor/launch/ssh/session/dial.h"
#include "supervisor/launch/ssh/session/ssh_channel.h"
#include "transport/base/result.h"

struct ssh_message_struct;
struct ssh_session_struct;

namespace monarch {

class RawSession;

class SshListener {
 public:
  // Connections that nobody has taken yet, of all ports; one more is refused. They begin before anybody is told of the
  // ports.
  static constexpr std::size_t kWaiting = 32;

  // One port for each that is wanted; 0: any that is free there. kUnsupported: the host's sshd does not listen, by its
  // rules or because somebody has the port: it does not say which.
  static Result<std::unique_ptr<SshListener>> open(RawSession& session, const std::vector<std::uint16_t>& wanted,
                                                   const Patience& patience);
  SshListener(const SshListener&) = delete;
  SshListener& operator=(const SshListener&) = delete;
  ~SshListener();

  const std::vector<std::uint16_t>& ports() const { return ports_; }

  struct Connection {
    std::size_t port = 0;  // index into ports()
    std::unique_ptr<SshChannel> channel;
  };
  // What has connected. Reads from the session, for whomever it may be.
  std::deque<Connection> take();

 private:
  explicit SshListener(RawSession& session);
  static int on_message(ssh_session_struct* session, ssh_message_struct* message, void* self);
  Result<std::uint16_t> listen(std::uint16_t wanted, const Patience& patience);

  RawSession& session_;
  std::vector<std::uint16_t> ports_;
  std::deque<Connection> waiting_;
};

}  // namespace monarch
