#pragma once

// ViewerPort: the door for viewers on other machines that share the job's directory, such as the login node of a
// cluster. What comes over a link goes over a connection of its own to the supervisor's socket and back (FarPipe), so a
// far viewer is, to everything behind that, one of this machine. Only who has the key that endpoint.json holds gets in;
// it has a context and keys of its own, so a worker's key opens nothing here, and a viewer's key nothing there.
//
// Thread: start() and the destructor are the owner's; the rest is its own thread's.

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "supervisor/client/link/endpoint.h"
#include "transport/base/result.h"
#include "transport/loop/joining_thread.h"
#include "transport/zmq/server_link.h"

namespace monarch {

struct ViewerPortOptions {
  std::string address;   // numeric
  PortRange ports = {};  // the first free one is taken
  std::string socket;    // the supervisor's
};

class ViewerPort {
 public:
  static constexpr std::size_t kViewers = 64;  // connections; one more is turned away

  static Result<std::unique_ptr<ViewerPort>> start(const ViewerPortOptions& options);
  ViewerPort(const ViewerPort&) = delete;
  ViewerPort& operator=(const ViewerPort&) = delete;

  // For endpoint.json, once; `addresses` are those of this machine, without loopback.
  ViewerDoorAddress take_address() { return std::move(address_); }
  // To close it to new connections; it is gone before this is. Once.
  ListenerDoor take_door() { return std::move(*door_); }

 private:
  class Worker;
  ViewerPort() = default;

  ViewerDoorAddress address_;
  std::optional<ListenerDoor> door_;
  std::unique_ptr<JoiningThread> thread_;
};

}  // namespace monarch
