#pragma once

// A real sshd on 127.0.0.1 with its own configuration, keys and log in a folder of the test, for the user who runs the
// test; and the keys and ssh-agent of that user's, which are not the real ones either.
//
// Thread: the test's. Lifetime: its processes end with it.

#include <sys/types.h>

#include <string>
#include <vector>

#include "supervisor/launch/ssh/session/ssh_target.h"
#include "tests/supervisor/client/scratch.h"

namespace monarch {

// Runs to its end; its exit code, or -1.
int run_command(const std::vector<std::string>& command, const std::vector<std::string>& environment = {});

class SshServer {
 public:
  // What this machine lacks; empty: nothing.
  static std::string lacks();

  // The type of its host key, and lines to add to its configuration.
  explicit SshServer(const std::string& key_type = "ed25519", const std::string& configuration = "");
  SshServer(const SshServer&) = delete;
  SshServer& operator=(const SshServer&) = delete;
  ~SshServer();

  std::string failure() const { return failure_; }  // why it does not run; empty: it does
  std::uint16_t port() const { return port_; }
  const Scratch& folder() const { return folder_; }
  std::string log() const;
  std::string host_key_line() const;  // type and key
  std::string fingerprint() const;
  std::string known_hosts() const;  // a file that has its key
  std::string identity() const { return folder_.path() + "/login"; }
  // With the keys of these files, or that of identity(); the path of its socket.
  std::string start_agent(const std::vector<std::string>& keys = {});

  // All that a login needs, by the key file.
  SshTarget target() const;

 private:
  bool start(const std::string& configuration);

  Scratch folder_;
  std::uint16_t port_ = 0;
  std::vector<pid_t> children_;
  std::string failure_;
};

// A new pair of keys without a passphrase, or with one.
bool make_key(const std::string& path, const std::string& type = "ed25519", const std::string& phrase = "");

std::string read_text(const std::string& path);

}  // namespace monarch
