#pragma once

// connect_viewer(): a connection to a job's supervisor, as a SEQPACKET socket: to its own socket on this machine, or,
// over TCP with CURVE, to its ViewerPort on another. A far one has a thread that carries it, which ends when the socket
// is closed or the link is lost; both are told alike, for the socket's other end is closed then.
//
// Thread: the caller's; a far one waits until it stands. Lifetime: the socket first, then what carries it.

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "supervisor/client/link/endpoint.h"
#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/joining_thread.h"

namespace monarch {

// Where a supervisor is asked.
struct ViewerAddress {
  ViewerAddress() = default;
  // Implicit on purpose: the path of a socket is the address of most supervisors.
  ViewerAddress(std::string path) : socket(std::move(path)) {}  // NOLINT(google-explicit-constructor)
  ViewerAddress(const char* path) : socket(path) {}             // NOLINT(google-explicit-constructor)

  std::string socket;
  std::string host;                           // of a far one, for messages
  std::optional<ViewerDoorAddress> far = {};  // it is on another machine
};

// As seen from this machine.
ViewerAddress viewer_address(const Endpoint& endpoint);

class FarLink {
 public:
  // `deadline`: for all addresses together. kGone: nobody answers there, who does has other keys by now, or lets us in
  // no more.
  static Result<std::unique_ptr<FarLink>> connect(const ViewerAddress& address, Duration deadline);
  FarLink(const FarLink&) = delete;
  FarLink& operator=(const FarLink&) = delete;

  // Once: the end that is the viewer's.
  UniqueFd take_socket() { return std::move(socket_); }

 private:
  explicit FarLink(UniqueFd socket) : socket_(std::move(socket)) {}

  UniqueFd socket_;
  std::unique_ptr<JoiningThread> thread_;
};

struct ViewerSocket {
  std::unique_ptr<FarLink> far;  // null: on this machine
  UniqueFd socket;
};
Result<ViewerSocket> connect_viewer(const ViewerAddress& address);

}  // namespace monarch
