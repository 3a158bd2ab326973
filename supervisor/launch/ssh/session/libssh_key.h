#pragma once

// A public key of libssh as texts. For the files of this folder that include libssh.
//
// Thread: any.

#include <memory>
#include <optional>
#include <string>

#include "supervisor/launch/ssh/session/known_hosts.h"

struct ssh_key_struct;

namespace monarch {

using SshKey = std::unique_ptr<ssh_key_struct, void (*)(ssh_key_struct*)>;

std::optional<HostKey> describe_key(ssh_key_struct* key);

// What ssh-keygen -s wrote of a user's key. Null: the file is not there, or has no certificate.
SshKey read_certificate(const std::string& file);
bool is_certificate_of(const SshKey& certificate, const SshKey& key);

// The public half of a key file in base64: of FILE.pub, else of the file itself, which tells it without its passphrase
// in OpenSSH's format. Empty: neither does.
std::string public_key_of(const std::string& file);

}  // namespace monarch
