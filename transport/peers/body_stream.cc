#include "transport/peers/body_stream.h"

#include <sodium.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/little_endian.h"
#include "transport/base/sha256.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kTagBytes = 16;
static_assert(crypto_aead_aes256gcm_ABYTES == kTagBytes && crypto_aead_chacha20poly1305_ietf_ABYTES == kTagBytes);
static_assert(crypto_aead_aes256gcm_NPUBBYTES == 12 && crypto_aead_chacha20poly1305_ietf_NPUBBYTES == 12);
static_assert(crypto_aead_aes256gcm_KEYBYTES == 32 && crypto_aead_chacha20poly1305_ietf_KEYBYTES == 32);

// A key is of one direction of one connection, so a count is never used twice with it.
std::array<unsigned char, 12> nonce_of(std::uint64_t count) {
  std::array<unsigned char, 12> nonce{};
  for (std::size_t i = 0; i < 8; ++i) nonce[i] = static_cast<unsigned char>(count >> (8 * i));
  return nonce;
}

const unsigned char* bytes_of(const char* text) { return reinterpret_cast<const unsigned char*>(text); }

std::array<unsigned char, 32> direction_key(const std::string& secret, const char* direction) {
  std::array<unsigned char, 32> key{};
  const std::string made = hmac_sha256(secret, direction);
  MONARCH_ASSERT(made.size() == key.size());
  std::memcpy(key.data(), made.data(), key.size());
  return key;
}

// 0: not now.
Result<std::size_t> as_result(ssize_t done) {
  if (done > 0) return static_cast<std::size_t>(done);
  if (done == 0 || errno == ECONNRESET || errno == EPIPE) return Error{ErrorCode::kGone, "its other side has ended"};
  if (errno == EAGAIN || errno == EINTR) return std::size_t{0};
  return errno_error("a connection for bodies", errno);
}

}  // namespace

bool BodyStream::has_aes() { return ::sodium_init() >= 0 && ::crypto_aead_aes256gcm_is_available() == 1; }

BodyStream::BodyStream(UniqueFd socket, MemoryPool& pool, const Options& options)
    : socket_(std::move(socket)), pool_(pool), options_(options) {
  MONARCH_ASSERT(options_.secret.size() == kBodySecretBytes && ::sodium_init() >= 0);
  to_.bytes = direction_key(options_.secret, options_.dials ? "dialled" : "answered");
  from_.bytes = direction_key(options_.secret, options_.dials ? "answered" : "dialled");
  out_.push_back({});
}

BodyStream::~BodyStream() {
  if (coming_) pool_.give_back(std::move(coming_->memory));
}

// ---- Sending.

void BodyStream::send(std::uint64_t number, std::shared_ptr<const MappedMemory> body) {
  waiting_ += body->bytes().size();
  out_.push_back({.number = number, .body = std::move(body)});
}

void BodyStream::seal(Piece kind, std::string_view plain) {
  sealed_.clear();
  written_ = 0;
  little_endian::put(sealed_, static_cast<std::uint32_t>(plain.size() + kTagBytes));
  little_endian::put(sealed_, static_cast<std::uint32_t>(kind));
  const std::size_t head = sealed_.size();
  sealed_.resize(head + plain.size() + kTagBytes);
  const auto nonce = nonce_of(to_.used++);
  auto* const into = reinterpret_cast<unsigned char*>(sealed_.data());
  unsigned long long size = 0;
  const auto encrypt =
      options_.with_aes ? &::crypto_aead_aes256gcm_encrypt : &::crypto_aead_chacha20poly1305_ietf_encrypt;
  const int failed = encrypt(into + head, &size, bytes_of(plain.data()), plain.size(), into, head, nullptr,
                             nonce.data(), to_.bytes.data());
  MONARCH_ASSERT(failed == 0 && size == plain.size() + kTagBytes);
}

void BodyStream::seal_next() {
  Outgoing& next = out_.front();
  if (next.body == nullptr) {
    seal(Piece::kHello, {});
    out_.pop_front();
    return;
  }
  const std::string_view bytes = next.body->bytes();
  if (!next.begun) {
    std::string words;
    little_endian::put(words, next.number);
    little_endian::put(words, static_cast<std::uint64_t>(bytes.size()));
    seal(Piece::kBody, words);
    next.begun = true;
    waiting_ -= bytes.size();
    return;
  }
  const std::string_view piece = bytes.substr(next.at, kPieceBytes);
  seal(Piece::kBytes, piece);
  next.at += piece.size();
  if (next.at == bytes.size()) out_.pop_front();
}

Status BodyStream::flush(std::uint64_t most) {
  for (std::uint64_t done = 0; done < most;) {
    if (written_ == sealed_.size()) {
      if (out_.empty()) return {};
      seal_next();
    }
    const ssize_t sent =
        ::send(socket_.get(), sealed_.data() + written_, sealed_.size() - written_, MSG_NOSIGNAL | MSG_DONTWAIT);
    MONARCH_ASSIGN(const std::size_t size, as_result(sent));
    if (size == 0) return {};
    written_ += size;
    done += size;
  }
  return {};
}

// ---- Receiving.

// Whether one is here whole.
Result<bool> BodyStream::read_piece(std::uint64_t& done) {
  while (header_here_ < header_.size()) {
    const ssize_t got =
        ::recv(socket_.get(), header_.data() + header_here_, header_.size() - header_here_, MSG_DONTWAIT);
    MONARCH_ASSIGN(const std::size_t size, as_result(got));
    if (size == 0) return false;
    header_here_ += size;
    if (header_here_ < header_.size()) continue;
    const auto length = little_endian::get<std::uint32_t>({header_.data(), header_.size()}, 0);
    if (length < kTagBytes || length > kPieceBytes + kTagBytes) {
      return Error{ErrorCode::kInvalid, text("a piece of ", length, " bytes")};
    }
    piece_.resize(length);
    piece_here_ = 0;
  }
  while (piece_here_ < piece_.size()) {
    const ssize_t got = ::recv(socket_.get(), piece_.data() + piece_here_, piece_.size() - piece_here_, MSG_DONTWAIT);
    MONARCH_ASSIGN(const std::size_t size, as_result(got));
    if (size == 0) return false;
    piece_here_ += size;
    done += size;
  }
  header_here_ = 0;
  return true;
}

bool BodyStream::open(char* into, std::size_t size) {
  const auto nonce = nonce_of(from_.used++);
  unsigned long long opened = 0;
  const auto decrypt =
      options_.with_aes ? &::crypto_aead_aes256gcm_decrypt : &::crypto_aead_chacha20poly1305_ietf_decrypt;
  return decrypt(reinterpret_cast<unsigned char*>(into), &opened, nullptr, bytes_of(piece_.data()), piece_.size(),
                 bytes_of(header_.data()), header_.size(), nonce.data(), from_.bytes.data()) == 0 &&
         opened == size;
}

Status BodyStream::begin_body(std::string_view words) {
  const auto number = little_endian::get<std::uint64_t>(words, 0);
  const auto bytes = little_endian::get<std::uint64_t>(words, 8);
  if (coming_ || bytes == 0 || bytes > options_.most) {
    return Error{ErrorCode::kInvalid, text("a body of ", bytes, " bytes")};
  }
  MONARCH_ASSIGN(MemoryPool::Filling memory, pool_.fill(bytes));
  coming_ = Coming{.number = number, .bytes = bytes, .here = 0, .memory = std::move(memory)};
  return {};
}

Result<BodyStream::Arrived> BodyStream::end_body() {
  Coming whole = *std::exchange(coming_, std::nullopt);
  MONARCH_ASSIGN(UniqueFd memory, pool_.lend(std::move(whole.memory)));
  return Arrived{.number = whole.number, .memory = std::move(memory), .bytes = whole.bytes};
}

Status BodyStream::open_piece(std::vector<Arrived>& arrived) {
  const Error none{ErrorCode::kInvalid, "a piece that is not its other side's"};
  const std::size_t size = piece_.size() - kTagBytes;
  switch (static_cast<Piece>(little_endian::get<std::uint32_t>({header_.data(), header_.size()}, 4))) {
    case Piece::kHello:
      if (size != 0 || proven_ || !open(nullptr, 0)) return none;
      proven_ = true;
      return {};
    case Piece::kBody: {
      std::array<char, 16> words{};
      if (size != words.size() || !proven_ || !open(words.data(), size)) return none;
      return begin_body({words.data(), words.size()});
    }
    case Piece::kBytes: {
      const bool fits = size > 0 && coming_ && size <= coming_->bytes - coming_->here;
      if (!fits || !open(coming_->memory.block->start() + coming_->here, size)) return none;
      coming_->here += size;
      if (coming_->here < coming_->bytes) return {};
      MONARCH_ASSIGN(Arrived whole, end_body());
      arrived.push_back(std::move(whole));
      return {};
    }
  }
  return none;
}

Result<std::vector<BodyStream::Arrived>> BodyStream::receive(std::uint64_t most) {
  std::vector<Arrived> arrived;
  for (std::uint64_t done = 0; done < most;) {
    MONARCH_ASSIGN(const bool whole, read_piece(done));
    if (!whole) break;
    MONARCH_TRY(open_piece(arrived));
  }
  return arrived;
}

}  // namespace monarch
