#pragma once

// own_address(): the numeric address by which this host reaches another one, as the kernel would choose it. Nothing is
// sent. interface_address(): that of one of its interfaces.
//
// Thread: any.

#include <cstdint>
#include <string>

#include "transport/base/result.h"

namespace monarch::daemon {

// `address` is numeric. Empty: there is no way to it.
std::string own_address(const std::string& address, std::uint16_t port);

// IPv4 before IPv6, and of that what has no scope before what has one. kNotFound: there is none; the message names
// those that there are.
Result<std::string> interface_address(const std::string& name);

}  // namespace monarch::daemon
