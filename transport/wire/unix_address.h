#pragma once

// unix_address(): a path as the kernel wants it.
//
// Thread: a pure function.

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <string>

#include "transport/base/result.h"
#include "transport/base/text.h"
#include "transport/wire/seqpacket_socket.h"

namespace monarch {

inline Result<sockaddr_un> unix_address(const std::string& path) {
  if (path.empty() || path.size() > kUnixPathBytes || path.find('\0') != std::string::npos) {
    return Error{ErrorCode::kInvalid, text("a socket's path has 1 to ", kUnixPathBytes,
                                           " bytes and no NUL; this one has ", path.size(), ": ", printable(path))};
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

}  // namespace monarch
