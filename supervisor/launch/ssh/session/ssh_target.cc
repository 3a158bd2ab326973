#include "supervisor/launch/ssh/session/ssh_target.h"

#include <algorithm>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kLongestUser = 64;
constexpr std::size_t kLongestAddress = 253;

bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool consists_of(std::string_view word, std::string_view others) {
  return std::all_of(word.begin(), word.end(),
                     [&](char c) { return is_alphanumeric(c) || others.find(c) != std::string_view::npos; });
}

std::string destination(const SshTarget& target) {
  return target.user.empty() ? target.address : text(target.user, "@", target.address);
}

}  // namespace

bool is_ssh_user(std::string_view user) {
  return !user.empty() && user.size() <= kLongestUser && user[0] != '-' && consists_of(user, "._-@+");
}

bool is_ssh_address(std::string_view address) {
  return !address.empty() && address.size() <= kLongestAddress && (is_alphanumeric(address[0]) || address[0] == ':') &&
         consists_of(address, "._-:%");
}

std::optional<std::string> objection_to(const SshTarget& target) {
  if (!is_ssh_address(target.address)) return text("`", printable(target.address), "` is no address of a host");
  if (target.port == 0) return text(target.address, ": 0 is no port");
  if (!is_ssh_user(target.user)) {
    return text(target.address, ": `", printable(target.user),
                "` is no name of a user (letters, digits, `.`, `_`, `-`, `@`, `+`; no dash first)");
  }
  return std::nullopt;
}

std::string endpoint_text(const SshTarget& target) {
  const bool numeric_6 = target.address.find(':') != std::string::npos;
  return numeric_6 ? text("[", target.address, "]:", target.port) : text(target.address, ":", target.port);
}

std::string where_text(const SshTarget& target) {
  return target.name.empty() || target.name == target.address ? endpoint_text(target)
                                                              : text(target.name, " (", endpoint_text(target), ")");
}

std::string reproducer(const SshRoute& route, const std::string& command) {
  if (route.empty()) return "";
  const SshTarget& target = route.back();
  std::string ssh = text("ssh -o BatchMode=yes -o ConnectTimeout=",
                         std::max<std::int64_t>(target.connect_timeout.count_milliseconds() / 1'000, 1));
  std::vector<std::string> jumps;
  for (std::size_t i = 0; i + 1 < route.size(); ++i) {
    const std::string user = route[i].user.empty() ? "" : route[i].user + "@";
    jumps.push_back(user + endpoint_text(route[i]));
  }
  if (!jumps.empty()) ssh += " -J " + shell_word(join(jumps, ","));
  if (target.port != 22) ssh += text(" -p ", target.port);
  for (const std::string& identity : target.identities) ssh += " -i " + shell_word(identity);
  for (const std::string& file : target.certificates) ssh += " -o CertificateFile=" + shell_word(file);
  if (!target.known_hosts.empty()) ssh += " -o UserKnownHostsFile=" + shell_word(target.known_hosts.front());
  return text(ssh, " ", shell_word(destination(target)), " ", shell_word(command));
}

std::string shown_by(LaunchFailureKind kind, const std::string& installed) {
  using Kind = LaunchFailureKind;
  const bool of_file = kind == Kind::kNotExecutable || kind == Kind::kExec || kind == Kind::kVersion;
  if (of_file && !installed.empty()) return text("ls -l ", shell_word(installed), "; df ", shell_word(installed));
  if (kind == Kind::kDiskFull) return "df -h ~ ~/.cache ~/.local/state";
  if (kind == Kind::kNotWritable) return "ls -ld ~ ~/.cache ~/.local/state; grep -w ro /proc/mounts";
  if (kind == Kind::kNotExecutable) return "ls -ld ~ ~/.cache; grep noexec /proc/mounts";
  if (kind == Kind::kArchitecture) return "uname -m";
  if (kind == Kind::kInterface) return "ip -brief address";
  return "true";
}

SshFailure ssh_failure(LaunchFailureKind kind, const char* phase, std::string message) {
  return SshFailure{.failure = {.kind = kind, .phase = phase, .message = std::move(message)}};
}

}  // namespace monarch
