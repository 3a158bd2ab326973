#pragma once

// The grammar of what reaches other machines: addresses, user names, host keys, interfaces. All of it may become an
// argument of another program or a part of a path, so it is strict.
//
// Thread: pure functions.

#include <optional>
#include <string>
#include <string_view>

#include "supervisor/core/spec/launch_spec.h"
#include "supervisor/launch/ssh/ssh_spec.h"

namespace monarch {

bool is_user_name(std::string_view name);
bool is_interface_name(std::string_view name);

enum class NumericAddress : std::uint8_t { kNone, kUnspecified, kLoopback, kOther };
// kNone: a name, or nothing that could be an address.
NumericAddress numeric_address(std::string_view text);

// The name of a host, or an address of IPv4 or IPv6.
bool is_address(std::string_view text);

// The fingerprint of a host's key, "SHA256:…", as ssh and ssh-keygen show it.
bool is_key_fingerprint(std::string_view text);

// "[user@]host[:port]", an IPv6 address in brackets.
std::optional<SshJump> read_jump(std::string_view text);

}  // namespace monarch
