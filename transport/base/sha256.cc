#include "transport/base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::array<std::uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t word_at(const unsigned char* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

}  // namespace

void Sha256::take_block(const unsigned char* block) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i) w[i] = word_at(block + 4 * i);
  for (std::size_t i = 16; i < w.size(); ++i) {
    const std::uint32_t low = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const std::uint32_t high = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + low + w[i - 7] + high;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const std::uint32_t high = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t first = h + high + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    const std::uint32_t low = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t second = low + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const std::array<std::uint32_t, 8> added = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state_.size(); ++i) state_[i] += added[i];
}

void Sha256::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t begun = size_ % kBlockBytes;
    const std::size_t taken = std::min(bytes.size(), kBlockBytes - begun);
    std::memcpy(block_.data() + begun, bytes.data(), taken);
    size_ += taken;
    bytes.remove_prefix(taken);
    if (begun + taken == kBlockBytes) take_block(block_.data());
  }
}

std::string Sha256::finish() { return to_hex(finish_bytes()); }

std::string Sha256::finish_bytes() {
  const std::uint64_t bits = size_ * 8;
  const std::size_t begun = size_ % kBlockBytes;
  constexpr std::size_t kLengthBytes = 8;
  std::string end(begun < kBlockBytes - kLengthBytes ? kBlockBytes - begun : 2 * kBlockBytes - begun, '\0');
  end.front() = '\x80';
  for (std::size_t i = 0; i < kLengthBytes; ++i) end[end.size() - 1 - i] = static_cast<char>(bits >> (8 * i));
  add(end);
  std::string digest;
  for (const std::uint32_t word : state_) {
    for (int shift = 24; shift >= 0; shift -= 8) digest += static_cast<char>(word >> shift);
  }
  return digest;
}

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

std::string hmac_sha256(std::string_view key, std::string_view bytes) {
  std::string block(key);
  if (block.size() > Sha256::kBlockBytes) {
    Sha256 shorter;
    shorter.add(key);
    block = shorter.finish_bytes();
  }
  block.resize(Sha256::kBlockBytes, '\0');
  const auto padded = [&block](unsigned char pad) {
    std::string other = block;
    for (char& byte : other) byte = static_cast<char>(static_cast<unsigned char>(byte) ^ pad);
    return other;
  };
  Sha256 inner;
  inner.add(padded(0x36));
  inner.add(bytes);
  Sha256 outer;
  outer.add(padded(0x5c));
  outer.add(inner.finish_bytes());
  return outer.finish_bytes();
}

bool same_secret(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned int differs = 0;
  for (std::size_t i = 0; i < one.size(); ++i) differs |= static_cast<unsigned char>(one[i] ^ other[i]);
  return differs == 0;
}

// The name comes last: whatever it is, it is taken for no number.
std::string personal_secret(std::string_view key, std::string_view mesh, std::uint32_t rank, std::uint64_t generation) {
  return hmac_sha256(key, text("rank ", rank, " generation ", generation, " of ", mesh));
}

}  // namespace monarch
