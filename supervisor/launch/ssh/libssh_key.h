#pragma once

// A public key of libssh as texts. For the files of this folder that include libssh.
//
// Thread: any.

#include <optional>

#include "supervisor/launch/ssh/known_hosts.h"

struct ssh_key_struct;

namespace monarch {

std::optional<HostKey> describe_key(ssh_key_struct* key);

}  // namespace monarch
