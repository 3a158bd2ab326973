#pragma once

// The way from a host back to this machine, as its worker is told: an address of ours that it dials, or ports of its
// own loopback that a tunnel of this session leads here.
//
// Thread: the session's; SshWayBack is a value.

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/launch/ssh/ssh_tunnel.h"
#include "supervisor/launch/talk/way_back.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/launch.h"

namespace monarch {

struct SshWayBack {
  // Numeric. Empty: that by which this machine reached the host.
  std::string address;
  // Of control and bulk here, where a tunnel leads to. Empty: no tunnel, the host dials.
  std::vector<std::uint16_t> tunnel;
  SshSilence silence;  // of a tunnel's session
};

// Writes it into `there`, whose endpoints have the right ports. The tunnel is null where there is none.
std::variant<std::shared_ptr<SshTunnel>, LaunchFailure> point_back(SshSession& session, const SshRoute& route,
                                                                   const SshWayBack& way, Bootstrap& there,
                                                                   const Patience& patience);

// A command that tries by hand whether the host reaches the endpoint, or whether its sshd leads a port back.
std::string way_back_test(const SshRoute& route, const SshWayBack& way, const std::string& endpoint);

}  // namespace monarch
