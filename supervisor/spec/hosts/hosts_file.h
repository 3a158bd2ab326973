#pragma once

// The file of `launch.ssh.hosts_file`: a host, or a compressed list of hosts, on each line, `#` before a comment;
// behind a single host may stand address=, user= and port=.
//
// Thread: pure functions.

#include <cstdint>
#include <string_view>

#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/yaml.h"

namespace monarch {

// The same as a list of `launch.ssh.hosts`, with places in the file. `number` is what places call it. What is wrong is
// reported and left out; what a host may be is left to the reader of that list.
YamlNode read_hosts_file(std::string_view text, Report& report, std::uint32_t number);

}  // namespace monarch
