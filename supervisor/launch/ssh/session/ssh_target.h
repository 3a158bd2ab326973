#pragma once

// SshTarget: one machine to open a session on, with all that decides how. Nothing else does: no configuration file is
// read unless the spec names one, and the environment is not looked at.
//
// Thread: values.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/core/state/launch_failure.h"
#include "transport/base/time.h"

namespace monarch {

struct SshTarget {
  std::string name;     // as the spec has it, for messages
  std::string address;  // what is dialled, and looked up in known_hosts: a name, or a numeric address
  std::uint16_t port = 22;
  std::string user;
  std::string agent_socket;  // of ssh-agent; empty: none is asked
  // Files of private keys. The agent's keys that belong to them are tried first, then they in this order, then the
  // agent's other keys.
  std::vector<std::string> identities;
  // Files of certificates, besides FILE-cert.pub of each of those; each is shown with the key that it is of.
  std::vector<std::string> certificates;
  bool identities_only = false;          // the agent's others are not tried
  std::vector<std::string> known_hosts;  // a new key is written to the first
  std::string host_key;                  // "SHA256:…": this one and no other; empty: what known_hosts has
  bool accept_new_host_keys = false;
  Duration connect_timeout = Duration::seconds(10);  // until the keys are exchanged, and again until the login
};

// The host is the last; each before it forwards the connection to the next.
using SshRoute = std::vector<SshTarget>;

// Why no session can be opened on it, before anything is dialled: names and addresses have a grammar, since they go
// into messages, files and commands to copy.
std::optional<std::string> objection_to(const SshTarget& target);
bool is_ssh_user(std::string_view user);
bool is_ssh_address(std::string_view address);

std::string endpoint_text(const SshTarget& target);  // "10.0.0.7:22", "[fe80::1]:22"
std::string where_text(const SshTarget& target);     // "gpu7 (10.0.0.7:22)"

// For a person to run: the same connection, and a command there, by OpenSSH.
std::string reproducer(const SshRoute& route, const std::string& command = "true");
// What to run there to see why a worker does not start; `installed` is launch.ssh.worker, or empty.
std::string shown_by(LaunchFailureKind kind, const std::string& installed);

// A failure and what follows from it.
struct SshFailure {
  LaunchFailure failure;
  // The far side may just have too many strangers at its door (MaxStartups): it closed, or was silent, before its first
  // word.
  bool worth_retrying = false;
};
SshFailure ssh_failure(LaunchFailureKind kind, const char* phase, std::string message);

}  // namespace monarch
