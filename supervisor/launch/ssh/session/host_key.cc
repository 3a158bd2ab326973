#include "supervisor/launch/ssh/session/host_key.h"

#include <algorithm>

#include "transport/base/text.h"

namespace monarch {

namespace {

// No ssh-rsa (SHA-1) and no DSA.
struct Algorithm {
  std::string_view name;
  std::string_view type;  // of the key that it signs with
};
constexpr Algorithm kAlgorithms[] = {
    {"ssh-ed25519", "ssh-ed25519"},
    {"ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256"},
    {"ecdsa-sha2-nistp384", "ecdsa-sha2-nistp384"},
    {"ecdsa-sha2-nistp521", "ecdsa-sha2-nistp521"},
    {"rsa-sha2-512", "ssh-rsa"},
    {"rsa-sha2-256", "ssh-rsa"},
};

std::string key_text(const HostKey& key) { return text(key.type, " ", key.fingerprint); }

HostKeyRefusal changed(const SshTarget& target, const HostKey& presented, const KnownKey& listed) {
  return {
      LaunchFailureKind::kHostKeyChanged,
      text(where_text(target), " presents ", key_text(presented), ", but ", listed.place, " has ", key_text(listed.key),
           ": the host was installed anew, or somebody stands between. If the new key is right, remove the old one "
           "(ssh-keygen -f '",
           listed.file, "' -R '", known_hosts_name(target),
           "') and take the new one once (--accept-new), or pin it as host_key")};
}

HostKeyRefusal unknown(const SshTarget& target, const HostKey& presented, const KnownKey* authority) {
  const std::string where =
      target.known_hosts.empty() ? "no known_hosts file is given" : text("not in ", join(target.known_hosts, ", "));
  if (authority != nullptr) {
    return {LaunchFailureKind::kHostKeyUnknown,
            text(where_text(target), " presents ", key_text(presented), ", and ", authority->place,
                 " trusts a @cert-authority for it. monarch does not read certificates of hosts (libssh has no support "
                 "for them): it wants the host's own key, which is ",
                 where,
                 ". `launch.command` takes your own ssh, which reads them; or, if this key is right, take it once "
                 "(--accept-new), or pin it as host_key")};
  }
  return {LaunchFailureKind::kHostKeyUnknown,
          text(where_text(target), " presents ", key_text(presented), ", which nothing vouches for: ", where,
               ". If it is right, take it once (--accept-new), or pin it as host_key")};
}

}  // namespace

std::variant<HostKeyTrust, HostKeyRefusal> judge_host_key(const SshTarget& target, const HostKey& presented,
                                                          const std::vector<KnownKey>& known) {
  const KnownKey* authority = nullptr;
  const KnownKey* other = nullptr;  // of the same type, or else the first
  bool listed = false;
  for (const KnownKey& entry : known) {
    const bool same = entry.key.base64 == presented.base64;
    if (entry.as == KnownAs::kRevoked && same) {
      return HostKeyRefusal{LaunchFailureKind::kHostKeyRevoked,
                            text(where_text(target), " presents ", key_text(presented), ", which ", entry.place,
                                 " marks as @revoked: whoever has that key may pose as this host")};
    }
    if (entry.as == KnownAs::kAuthority && authority == nullptr) authority = &entry;
    if (entry.as != KnownAs::kHost) continue;
    listed = listed || same;
    if (other == nullptr || (other->key.type != presented.type && entry.key.type == presented.type)) other = &entry;
  }
  if (!target.host_key.empty()) {
    if (target.host_key == presented.fingerprint) return HostKeyTrust::kKnown;
    return HostKeyRefusal{LaunchFailureKind::kHostKeyChanged,
                          text(where_text(target), " presents ", key_text(presented), ", but the spec pins ",
                               target.host_key, ": the host was installed anew, or somebody stands between")};
  }
  if (listed) return HostKeyTrust::kKnown;
  if (other != nullptr) return changed(target, presented, *other);
  if (target.accept_new_host_keys) return HostKeyTrust::kNew;
  return unknown(target, presented, authority);
}

std::string host_key_algorithms(const std::vector<KnownKey>& known) {
  const auto is_known = [&](const Algorithm& algorithm) {
    return std::any_of(known.begin(), known.end(), [&](const KnownKey& entry) {
      return entry.as == KnownAs::kHost && entry.key.type == algorithm.type;
    });
  };
  std::vector<std::string> names;
  for (const bool first : {true, false}) {
    for (const Algorithm& algorithm : kAlgorithms) {
      if (is_known(algorithm) == first) names.emplace_back(algorithm.name);
    }
  }
  return join(names, ",");
}

}  // namespace monarch
