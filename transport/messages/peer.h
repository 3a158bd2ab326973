#pragma once

// The hosts of one job as those processes on them see each other that speak from host to host.
//
// Thread: values.

#include <cstdint>
#include <string>

#include "transport/base/ids.h"
#include "transport/messages/message.h"

namespace monarch {

// Another host's process of the same kind.
struct PeerAddress {
  HostId host;
  std::string name;
  std::string address;  // numeric
  std::uint16_t port = 0;
  std::string public_key;  // z85
  bool operator==(const PeerAddress&) const = default;
};
MONARCH_FIELDS(PeerAddress, host, name, address, port, public_key)

// Who opened the connection that a message came by, or goes by: we, or the other one.
enum class PeerVia : std::uint8_t { kOurs, kTheirs };

}  // namespace monarch
