#pragma once

// resolve(): the addresses of a host, by a deadline. getaddrinfo knows none: with a resolver that hangs (a dead name
// server with a long time-out, a directory service on a mount that is gone) it comes back late or never. So it is
// called in a thread of its own, which is left to itself when time is up or the launch is cancelled; how many of those
// there may be has a limit.
//
// Thread: any, and it waits there. The thread that was left ends when the resolver answers, or with the process.

#include <netdb.h>

#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "supervisor/launch/ssh/session/dial.h"
#include "supervisor/launch/ssh/session/ssh_target.h"

namespace monarch {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// As getaddrinfo(3), in a thread of its own, and maybe after resolve() has returned: it owns what it needs.
using LookUp = std::function<int(const std::string& name, const std::string& port, addrinfo** found)>;
int look_up(const std::string& name, const std::string& port, addrinfo** found);

std::variant<Addresses, DialFailure> resolve(const SshTarget& target, const Patience& patience,
                                             const LookUp& ask = look_up);

}  // namespace monarch
