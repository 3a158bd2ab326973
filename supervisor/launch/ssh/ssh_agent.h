#pragma once

// The socket of ssh-agent. libssh talks to it without a deadline; so it is asked once here whether it answers at all, and while libssh has
// it a watcher ends the socket when time is up or the launch is cancelled.
//
// Thread: one, beside which AgentWatch has one of its own: nothing else could end a read inside libssh.

#include <memory>
#include <string>
#include <thread>

#include "supervisor/launch/ssh/dial.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

struct AgentDoor {
  UniqueFd socket;
  std::uint32_t keys = 0;
};

// Connected, and it said how many keys it has.
Result<AgentDoor> open_agent(const std::string& path, const Patience& patience);

class AgentWatch {
 public:
  static Result<std::unique_ptr<AgentWatch>> start(int agent_socket, const Patience& patience);
  AgentWatch(const AgentWatch&) = delete;
  AgentWatch& operator=(const AgentWatch&) = delete;
  ~AgentWatch();  // joins it

 private:
  explicit AgentWatch(UniqueFd stop) : stop_(std::move(stop)) {}
  UniqueFd stop_;
  std::thread thread_;
};

}  // namespace monarch
