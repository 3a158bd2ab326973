#pragma once

// The login: the keys of ssh-agent, then key files. No passwords, no questions, no agent forwarding.
//
// Thread: the session's.

#include <optional>

#include "supervisor/launch/ssh/session/dial.h"
#include "supervisor/launch/ssh/session/raw_session.h"
#include "supervisor/launch/ssh/session/ssh_target.h"

namespace monarch {

// Nothing, or why nobody is let in: which keys were tried, what became of each, and which methods the server takes.
std::optional<SshFailure> authenticate(const SshTarget& target, VerifiedSession& session, const Patience& patience);

}  // namespace monarch
