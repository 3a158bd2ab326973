// A build without OpenSSL.

#include "transport/peers/body_cipher.h"

namespace monarch {

std::unique_ptr<BodyCipher> BodyCipher::openssl(const BodyKey& /*key*/) { return nullptr; }

}  // namespace monarch
