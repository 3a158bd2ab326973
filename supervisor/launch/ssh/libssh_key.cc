#include "supervisor/launch/ssh/libssh_key.h"

#include <fcntl.h>
#include <libssh/libssh.h>
#include <sys/stat.h>

#include <memory>

#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

std::string take(char* made) {
  std::string out = made == nullptr ? "" : made;
  ssh_string_free_char(made);
  return out;
}

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

std::string public_key_of(const std::string& file) {
  for (const std::string& path : {file + ".pub", file}) {
    const UniqueFd opened(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));  // a FIFO must not wait
    struct stat status {};
    if (!opened.valid() || ::fstat(opened.get(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    ssh_key key = nullptr;
    if (ssh_pki_import_pubkey_file(text("/proc/self/fd/", opened.get()).c_str(), &key) != SSH_OK) continue;
    const std::unique_ptr<ssh_key_struct, void (*)(ssh_key)> owner(key, ssh_key_free);
    if (const auto described = describe_key(key)) return described->base64;
  }
  return "";
}

}  // namespace monarch
