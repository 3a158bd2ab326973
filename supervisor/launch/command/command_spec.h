#pragma once

// LaunchCommand: what a spec says of hosts on which a command of the user's opens a shell.
//
// Thread: values.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/spec/launch_facts.h"
#include "transport/base/time.h"

namespace monarch {

struct CommandHost {
  std::string name;                  // how the job calls it; distinct within the pool
  std::vector<std::string> command;  // its standard input and output are a shell on that host
  bool operator==(const CommandHost&) const = default;
};

struct LaunchCommand {
  std::vector<CommandHost> hosts;  // the pool
  std::uint32_t spares = 0;
  PrepareSpec prepare = {};
  Duration connect_timeout = Duration::seconds(10);  // until that shell answers
  std::uint32_t parallel = 64;                       // commands at a time
  std::optional<std::string> worker;                 // absolute, on each host; nothing: ours is copied
  bool operator==(const LaunchCommand&) const = default;
};

inline LaunchFacts facts_of(const LaunchCommand& command) {
  LaunchFacts facts;
  facts.name = "command";
  for (const CommandHost& host : command.hosts) facts.hosts.push_back(host.name);
  facts.pool = static_cast<std::uint32_t>(command.hosts.size());
  facts.spares = command.spares;
  facts.prepare = command.prepare;
  facts.one_machine = facts.proves_ends = false;
  facts.no_call_back = "; may hosts call it there (control.address, control.ports)?";
  return facts;
}

}  // namespace monarch
