#include "transport/base/personal_secret.h"

#include "transport/base/sha256.h"
#include "transport/base/text.h"

namespace monarch {

// The name comes last: whatever it is, it is taken for no number.
std::string personal_secret(std::string_view key, std::string_view mesh, std::uint32_t rank, std::uint64_t generation) {
  return hmac_sha256(key, text("rank ", rank, " generation ", generation, " of ", mesh));
}

}  // namespace monarch
