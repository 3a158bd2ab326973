#pragma once

// LaunchSsh: what a spec says of machines that SSH reaches.
//
// Thread: values.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/spec/launch_facts.h"
#include "transport/base/time.h"

namespace monarch {

// A machine that SSH reaches, by what its user wrote of it.
struct SshHost {
  std::string name;                   // how the job calls it; distinct within the pool, and fit for a path
  std::string address;                // what is dialled: a name or a numeric address
  std::string user;                   // empty: who runs the supervisor, or what an ssh_config says
  std::optional<std::uint16_t> port;  // nothing: 22, or what an ssh_config says
  std::string host_key;               // pinned, "SHA256:…": the only one taken; empty: known_hosts decides
  bool operator==(const SshHost&) const = default;
};

// A host on the way to the others.
struct SshJump {
  std::string address;
  std::string user;                   // empty: who runs the supervisor
  std::optional<std::uint16_t> port;  // nothing: 22
  bool operator==(const SshJump&) const = default;
};

struct LaunchSsh {
  std::vector<SshHost> hosts;  // the pool
  std::uint32_t spares = 0;
  PrepareSpec prepare = {};
  std::string identity;               // absolute; a private key
  std::string known_hosts;            // absolute
  std::optional<std::string> config;  // absolute; an ssh_config; nothing: none is read
  std::vector<SshJump> jump;          // the first is dialled from here, each next one through those before it
  Duration connect_timeout = Duration::seconds(10);
  std::uint32_t parallel = 64;        // sessions at a time
  std::optional<std::string> worker;  // absolute, on each host; nothing: ours is copied
  bool operator==(const LaunchSsh&) const = default;
};

inline LaunchFacts facts_of(const LaunchSsh& ssh) {
  LaunchFacts facts;
  facts.name = "ssh";
  for (const SshHost& host : ssh.hosts) facts.hosts.push_back(host.name);
  facts.pool = static_cast<std::uint32_t>(ssh.hosts.size());
  facts.spares = ssh.spares;
  facts.prepare = ssh.prepare;
  facts.one_machine = facts.proves_ends = false;
  facts.tunnels = facts.outlasts = facts.has_host_keys = true;
  facts.no_call_back = "; where hosts cannot call back, `control: {via: ssh}` takes the way of the SSH session";
  return facts;
}

}  // namespace monarch
