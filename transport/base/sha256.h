#pragma once

// Sha256: the hash by which a shipped file is named and known to be whole. After FIPS 180-4; no library, since it runs
// in the static worker as in `monarch`.
//
// Thread: a value.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace monarch {

class Sha256 {
 public:
  void add(std::string_view bytes);
  // 64 hexadecimal digits. Nothing may be added after.
  std::string finish();
  // The same as 32 bytes.
  std::string finish_bytes();

  static constexpr std::size_t kBlockBytes = 64;

 private:
  void take_block(const unsigned char* block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, kBlockBytes> block_{};  // begun
  std::uint64_t size_ = 0;                          // of all that was added
};

std::string sha256(std::string_view bytes);

// HMAC-SHA256 (RFC 2104), 32 bytes: who does not know the key can make none for other bytes.
std::string hmac_sha256(std::string_view key, std::string_view bytes);
// Whether two such are the same, in a time that does not tell where they differ.
bool same_secret(std::string_view one, std::string_view other);

// What one rank alone is given of a key that its owner keeps: by it the rank proves who it is, and it can make none for
// another. For that start of that rank of the mesh; an empty mesh: for all who are no ranks of the job.
std::string personal_secret(std::string_view key, std::string_view mesh, std::uint32_t rank, std::uint64_t generation);
inline constexpr std::size_t kPersonalSecretBytes = 32;  // of the key, too

}  // namespace monarch
