#pragma once

// What a configuration file of OpenSSH says of a host, for specs that name one: HostName, User, Port, IdentityFile,
// CertificateFile, IdentitiesOnly, UserKnownHostsFile and ProxyJump. libssh's own reader runs commands (Match exec,
// ProxyCommand), so it is not used.
//
// Thread: pure functions; load_ssh_config reads files.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/result.h"

namespace monarch {

struct SshConfigLine {
  std::string keyword;  // in small letters
  std::vector<std::string> arguments;
  std::string place;  // "/home/a/.ssh/config:12"
};

// As it was read, Include replaced by what it names.
struct SshConfig {
  std::vector<SshConfigLine> lines;
};

// Empty or zero: the file does not say.
struct SshConfigAnswer {
  std::string host_name;
  std::string user;
  std::uint16_t port = 0;
  std::vector<std::string> identities;
  std::vector<std::string> certificates;
  bool identities_only = false;
  std::vector<std::string> known_hosts;
  std::vector<std::string> jumps;  // "[user@]host[:port]", in the order of dialling
};

// `home` stands for ~ and %d. Refused: what cannot be read, and Match but for `Match all`.
Result<SshConfig> load_ssh_config(const std::string& path, const std::string& home);
// The same of a text, whose Include is refused.
Result<SshConfig> parse_ssh_config(std::string_view all, const std::string& place);

// The first value of each keyword counts, as in OpenSSH. Refused: a ProxyCommand that applies to the host, and values
// that cannot be.
Result<SshConfigAnswer> look_up(const SshConfig& config, const std::string& host, const std::string& home);

}  // namespace monarch
