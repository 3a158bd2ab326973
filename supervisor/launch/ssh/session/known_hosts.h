#pragma once

// What known_hosts files say of a host: each line's host pattern, plain or hashed, is matched by libssh, the rest is
// read here, since libssh 0.10 overlooks @revoked, gives up at a line that it cannot read, and does not say which line
// it went by.
//
// Thread: any; reads and writes files.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/launch/ssh/session/ssh_target.h"
#include "transport/base/result.h"

namespace monarch {

struct HostKey {
  std::string type;         // "ssh-ed25519"
  std::string base64;       // the public key as known_hosts has it
  std::string fingerprint;  // "SHA256:…"
};

enum class KnownAs : std::uint8_t {
  kHost,
  kRevoked,    // @revoked
  kAuthority,  // @cert-authority: it signs hosts' certificates, which libssh 0.10 does not read
};

struct KnownKey {
  HostKey key;
  KnownAs as = KnownAs::kHost;
  std::string place;  // "/home/a/.ssh/known_hosts:12"
  std::string file;
};

// As files name it: "10.0.0.7", "[10.0.0.7]:2222".
std::string known_hosts_name(const SshTarget& target);

// Of one file's text.
std::vector<KnownKey> parse_known_hosts(std::string_view all, const std::string& file, const std::string& host);

// Of all files, in order. A file that is not there has none; one that cannot be read is an error. Lines that cannot be
// read are passed over.
Result<std::vector<KnownKey>> known_keys(const std::vector<std::string>& files, const std::string& host);

// Appends a line, and makes the file, and its folder, where they are missing, for their owner alone.
Status remember_key(const std::string& file, const std::string& host, const HostKey& key);

}  // namespace monarch
