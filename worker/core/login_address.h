#pragma once

// login_address(): the address at which a user logged in on this host, for a worker whose way to the supervisor says
// nothing of how its ranks are reached: it begins on the host's own loopback, where a tunnel of the login's session is
// entered.
//
// Thread: pure functions.

#include <string>

#include "transport/messages/bootstrap.h"
#include "worker/core/environment.h"

namespace monarch {

// Of the words that sshd leaves in SSH_CONNECTION; numeric. Empty: they say none, or a loopback one.
std::string login_address(const std::string& connection);

// Into a bootstrap whose control endpoint is on this host's loopback, before what the launcher saw from afar: behind a
// jump host that saw nothing. Others are left as they are.
void settle_address(Bootstrap& bootstrap, const Environment& environment);

}  // namespace monarch
