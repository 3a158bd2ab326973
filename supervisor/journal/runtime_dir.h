#pragma once

// The runtime_directory() of transport/wire as a supervisor has it, for the sockets of this user's jobs. A socket's
// address has 107 bytes, which is why they are not in the state directory.
//
// Thread: any; touches the file system.

#include <string>

#include "supervisor/journal/secure_directory.h"
#include "supervisor/journal/state_dir.h"
#include "transport/base/result.h"

namespace monarch {

inline constexpr std::size_t kSocketPathBytes = 107;  // sizeof sockaddr_un.sun_path less the final zero (unix(7))

std::string runtime_dir_path(const StateEnvironment& environment);
// Made where missing. Refused, with the path, if somebody else owns what is there or may write to it.
Result<SecureDirectory> open_runtime_dir(const StateEnvironment& environment);

// kInvalid if it does not fit an address.
Result<std::string> socket_path(const SecureDirectory& runtime, const std::string& name);

}  // namespace monarch
