#pragma once

// Stream sockets from host to host: small words are not kept back, and a host that is lost is not waited for for ever.
//
// Thread: any. All of them are non-blocking.

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

struct HostListener {
  UniqueFd socket;
  std::uint16_t port = 0;
};

// Whether no socket has that port, be it to listen there later. What an earlier listener has just left is not free yet.
bool is_free(std::uint16_t port);
// At that numeric address, at the highest free port of first to last: what a spec names otherwise are mostly its first;
// 0: any. `what`: who comes there, in words.
Result<HostListener> listen_for_hosts(const std::string& address, std::uint16_t first, std::uint16_t last,
                                      const std::string& what);
// EAGAIN: nobody waits any more.
Result<UniqueFd> accept_host(const UniqueFd& listener);

// The connection may still be on its way: its socket is writable once that is known. kGone: nobody listens there.
// kBusy: he let go.
Result<UniqueFd> connect_to_host(const std::string& address, std::uint16_t port);
// What has become of it; false: nothing yet. Of any stream socket.
Result<bool> connected(const UniqueFd& socket);

// What the others are made of, for sockets of other families.
Result<UniqueFd> make_stream_socket(int family);
Result<UniqueFd> begin_connect(UniqueFd socket, const sockaddr* address, socklen_t size, const std::string& where);

}  // namespace monarch
