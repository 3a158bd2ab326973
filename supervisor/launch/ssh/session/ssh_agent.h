#pragma once

// ssh-agent, asked for its keys by us and for signatures by libssh. libssh talks to it without a deadline and offers
// whatever it has, which uses up a server's MaxAuthTries. So libssh talks to an AgentProxy: it shows the keys that are
// to be tried, in turns, passes everything else on, and ends the conversation when time is up or the launch is
// cancelled.
//
// Thread: one, beside which AgentProxy has one of its own: nothing else could end a read inside libssh.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "supervisor/launch/ssh/session/dial.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

struct AgentKey {
  std::string entry;   // as the agent told it: the public key, and a comment
  std::string base64;  // of the public key; of a certificate, of the key that it is of
};

struct AgentDoor {
  UniqueFd socket;
  std::vector<AgentKey> keys;
};

// Connected, and it told its keys.
Result<AgentDoor> open_agent(const std::string& path, const Patience& patience);

class AgentProxy {
 public:
  using Keys = std::vector<AgentKey>;

  // Whoever asks for the keys is told the first turn's, who asks again the second's, and so on.
  static Result<std::unique_ptr<AgentProxy>> start(UniqueFd agent, const std::vector<Keys>& turns,
                                                   const Patience& patience);
  AgentProxy(const AgentProxy&) = delete;
  AgentProxy& operator=(const AgentProxy&) = delete;
  ~AgentProxy();  // joins it

  // For libssh, which closes it once it has taken it; reads and writes of it wait.
  int socket() const { return socket_.get(); }
  void give_socket() { (void)socket_.release(); }

 private:
  AgentProxy(UniqueFd socket, UniqueFd near) : socket_(std::move(socket)), near_(std::move(near)) {}
  UniqueFd socket_;
  UniqueFd near_;  // its other end; the thread has a descriptor of its own of it
  std::thread thread_;
};

}  // namespace monarch
