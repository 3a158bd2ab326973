#pragma once

// The hosts of `launch.ssh.hosts`: a compressed list, or a list of names and of {name, address, user, port, host_key}.
//
// Thread: pure functions.

#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/spec/launch_spec.h"
#include "supervisor/launch/ssh/ssh_spec.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

// Of a host that does not say it itself.
struct SshDefaults {
  std::string user{};
  std::optional<std::uint16_t> port{};
};

// In the order of writing. What is wrong is reported and left out; `path` is how messages call the value.
std::vector<SshHost> read_ssh_hosts(const YamlNode& node, const std::string& path, const SshDefaults& defaults,
                                    Report& report);

}  // namespace monarch
