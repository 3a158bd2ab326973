#pragma once

// own_address(): the numeric address by which this host reaches another one, as the kernel would choose it. Nothing is sent.
//
// Thread: any.

#include <cstdint>
#include <string>

namespace monarch::daemon {

// `address` is numeric. Empty: there is no way to it.
std::string own_address(const std::string& address, std::uint16_t port);

}  // namespace monarch::daemon
