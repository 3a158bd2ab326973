#pragma once

// The policy of host keys: which key that a server presented is trusted, and what is said of one that is not. Values
// in, verdict out.
//
// Thread: pure functions.

#include <string>
#include <variant>
#include <vector>

#include "supervisor/core/state/launch_failure.h"
#include "supervisor/launch/ssh/session/known_hosts.h"
#include "supervisor/launch/ssh/session/ssh_target.h"

namespace monarch {

enum class HostKeyTrust : std::uint8_t {
  kKnown,  // pinned by the spec, or listed
  kNew,    // accepted because new ones are; to be remembered
};

struct HostKeyRefusal {
  LaunchFailureKind kind = LaunchFailureKind::kHostKeyUnknown;
  std::string message;  // both fingerprints, the place, and what to do
};

std::variant<HostKeyTrust, HostKeyRefusal> judge_host_key(const SshTarget& target, const HostKey& presented,
                                                          const std::vector<KnownKey>& known);

// For the negotiation, comma between them: those of the known keys first, so that a server with keys of several types
// presents one that can be compared.
std::string host_key_algorithms(const std::vector<KnownKey>& known);

}  // namespace monarch
