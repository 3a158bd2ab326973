#include "supervisor/launch/ssh/session/libssh_key.h"

#include <fcntl.h>
#include <libssh/libssh.h>
#include <sys/stat.h>

#include <utility>

#include "supervisor/launch/ssh/session/ssh_wire.h"
#include "transport/base/base64.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

std::string take(char* made) {
  std::string out = made == nullptr ? "" : made;
  ssh_string_free_char(made);
  return out;
}

// A FIFO must not wait.
UniqueFd open_regular(const std::string& path) {
  UniqueFd opened(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  const bool regular = opened.valid() && ::fstat(opened.get(), &status) == 0 && S_ISREG(status.st_mode);
  return regular ? std::move(opened) : UniqueFd();
}

// For libssh, which opens files by name.
std::string path_of(const UniqueFd& opened) { return text("/proc/self/fd/", opened.get()); }

}  // namespace

std::optional<HostKey> describe_key(ssh_key_struct* key) {
  HostKey described;
  described.type = ssh_key_type_to_char(ssh_key_type(key));
  char* base64 = nullptr;
  if (ssh_pki_export_pubkey_base64(key, &base64) != SSH_OK) return std::nullopt;
  described.base64 = take(base64);
  unsigned char* hash = nullptr;
  std::size_t size = 0;
  if (ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &size) != 0) return std::nullopt;
  described.fingerprint = take(ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, size));
  ssh_clean_pubkey_hash(&hash);
  return described;
}

SshKey read_certificate(const std::string& file) {
  ssh_key key = nullptr;
  const UniqueFd opened = open_regular(file);
  if (opened.valid() && ssh_pki_import_cert_file(path_of(opened).c_str(), &key) != SSH_OK) key = nullptr;
  return {key, ssh_key_free};
}

// WARNING: ssh_key_cmp() of libssh 0.10.6 calls them different.
bool is_certificate_of(const SshKey& certificate, const SshKey& key) {
  const auto of = describe_key(certificate.get());
  const auto own = describe_key(key.get());
  const auto blob = of ? from_base64(of->base64) : std::nullopt;
  return blob && own && to_base64(ssh_wire::plain_key(*blob)) == own->base64;
}

std::string public_key_of(const std::string& file) {
  for (const std::string& path : {file + ".pub", file}) {
    const UniqueFd opened = open_regular(path);
    ssh_key key = nullptr;
    if (!opened.valid() || ssh_pki_import_pubkey_file(path_of(opened).c_str(), &key) != SSH_OK) continue;
    const SshKey owner(key, ssh_key_free);
    if (const auto described = describe_key(key)) return described->base64;
  }
  return "";
}

}  // namespace monarch
