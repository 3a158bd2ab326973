#pragma once

// SshTunnel: what connects to ports of a host's loopback is carried to ports of this machine's, through a session that
// stays open for it. Each listening port there belongs to one port here: nothing that a host says names another place.
//
// Several connections share one session. Those of the first port (beats and commands) go first: others write only when
// nothing waits to be sent, so that no more than a piece of theirs is ever ahead; towards here each connection has
// SSH's window of its own.
//
// Thread: the session's. Lifetime: shorter than the session's.

#include <cstdint>
#include <memory>
#include <vector>

#include "supervisor/launch/ssh/session/ssh_session.h"
#include "supervisor/launch/ssh/ssh_listener.h"
#include "supervisor/launch/ssh/ssh_pipe.h"
#include "transport/base/result.h"
#include "transport/base/time.h"

namespace monarch {

// Of a connection, in which nothing ends and nothing comes.
struct SshSilence {
  Duration ask_after = Duration::seconds(1);   // for a sign of life
  Duration dead_after = Duration::seconds(3);  // without one
};

struct SshTunnelOptions {
  std::vector<std::uint16_t> wanted;  // there; 0: any that is free
  std::vector<std::uint16_t> ports;   // here, in the same order
  SshSilence silence;
};

class SshTunnel {
 public:
  // Connections of each port. A worker has one; another process of the host that takes the rest keeps it waiting no
  // longer than the supervisor lets strangers stay.
  static constexpr std::size_t kConnections = 16;

  // Errors as SshListener's.
  static Result<std::unique_ptr<SshTunnel>> open(SshSession& session, SshTunnelOptions options,
                                                 const Patience& patience);
  SshTunnel(const SshTunnel&) = delete;
  SshTunnel& operator=(const SshTunnel&) = delete;

  // There, in the order of the options.
  const std::vector<std::uint16_t>& there() const { return listener_->ports(); }

  // Carries until `cancel` is readable (kBusy), the connection ends (kGone), or the host is silent for too long
  // (kTimeout).
  Error carry(int cancel);

 private:
  struct Pipe {
    std::size_t port = 0;
    std::unique_ptr<SshPipe> pipe;
  };

  SshTunnel(RawSession& session, SshTunnelOptions options, std::unique_ptr<SshListener> listener)
      : session_(session), options_(std::move(options)), listener_(std::move(listener)) {}
  void take_connections();
  bool may_write(const Pipe& pipe) const;
  bool carry_once();
  bool carry_all();

  RawSession& session_;
  SshTunnelOptions options_;
  std::unique_ptr<SshListener> listener_;
  std::vector<Pipe> pipes_;
};

}  // namespace monarch
