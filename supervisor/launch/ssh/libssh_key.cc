#include "supervisor/launch/ssh/libssh_key.h"

#include <libssh/libssh.h>

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

}  // namespace monarch
