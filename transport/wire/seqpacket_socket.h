#pragma once

// AF_UNIX SOCK_SEQPACKET sockets: made, connected, asked who is at the other end. What travels over them is
// seqpacket_message.h's business.
//
// Thread: any.

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

inline constexpr std::size_t kUnixPathBytes = 107;  // sun_path without its terminator

struct PeerCredentials {
  pid_t pid = 0;  // at the time of connect() or socketpair(); that process may have ended since
  uid_t uid = 0;
  gid_t gid = 0;
};

struct ChannelPair {
  UniqueFd first;
  UniqueFd second;
};

// Both ends close-on-exec and non-blocking. Whoever hands one to a child clears close-on-exec there.
Result<ChannelPair> make_channel_pair();

// Connects without waiting: kNotFound without a socket, kGone when nobody listens, kBusy when its backlog is full,
// kInvalid when the path is too long or the listener runs under another uid.
Result<UniqueFd> connect_seqpacket(const std::string& path);

Result<PeerCredentials> peer_credentials(int fd);

}  // namespace monarch
