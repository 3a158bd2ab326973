#include "transport/peers/body_stream.h"

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

// A key is of one direction of one connection, so a count is never used twice with it.
BodyNonce nonce_of(std::uint64_t count) {
  BodyNonce nonce{};
  for (std::size_t i = 0; i < 8; ++i) nonce[i] = static_cast<unsigned char>(count >> (8 * i));
  return nonce;
}

std::unique_ptr<BodyCipher> direction_cipher(const BodyStream::Options& options, const char* direction) {
  BodyKey key{};
  const std::string made = hmac_sha256(options.secret, direction);
  MONARCH_ASSERT(made.size() == key.size());
  std::memcpy(key.data(), made.data(), key.size());
  return BodyCipher::make(key, options.with_aes);
}

// 0: not now.
Result<std::size_t> as_result(ssize_t done) {
  if (done > 0) return static_cast<std::size_t>(done);
  if (done == 0 || errno == ECONNRESET || errno == EPIPE) return Error{ErrorCode::kGone, "its other side has ended"};
  if (errno == EAGAIN || errno == EINTR) return std::size_t{0};
  return errno_error("a connection for bodies", errno);
}

}  // namespace

// What pieces are made in is not cleared: all of it that goes anywhere is written first.
BodyStream::BodyStream(UniqueFd socket, MemoryPool& pool, const Options& options)
    : socket_(std::move(socket)),
      pool_(pool),
      options_(options),
      out_piece_(new char[kHeadBytes + kMostSealed]),
      in_piece_(new char[kMostSealed]) {
  MONARCH_ASSERT(options_.secret.size() == kBodySecretBytes);
  to_.cipher = direction_cipher(options_, options_.dials ? "dialled" : "answered");
  from_.cipher = direction_cipher(options_, options_.dials ? "answered" : "dialled");
  out_.push_back({});
}

BodyStream::~BodyStream() {
  if (coming_ && coming_->memory) pool_.give_back(std::move(*coming_->memory));
}

// ---- Sending.

void BodyStream::send(std::uint64_t number, std::string_view bytes, std::shared_ptr<const void> memory) {
  MONARCH_ASSERT(!bytes.empty());
  waiting_ += bytes.size();
  out_.push_back({.number = number, .bytes = bytes, .memory = std::move(memory)});
}

void BodyStream::seal(Piece kind, std::string_view plain) {
  std::string head;
  little_endian::put(head, static_cast<std::uint32_t>(plain.size() + BodyCipher::kTagBytes));
  little_endian::put(head, static_cast<std::uint32_t>(kind));
  std::memcpy(out_piece_.get(), head.data(), kHeadBytes);
  to_.cipher->seal(nonce_of(to_.used++), head, plain, out_piece_.get() + kHeadBytes);
  sealed_ = kHeadBytes + plain.size() + BodyCipher::kTagBytes;
  written_ = 0;
}

void BodyStream::seal_next() {
  Outgoing& next = out_.front();
  if (next.bytes.empty()) {
    seal(Piece::kHello, {});
    out_.pop_front();
    return;
  }
  if (!next.begun) {
    std::string words;
    little_endian::put(words, next.number);
    little_endian::put(words, static_cast<std::uint64_t>(next.bytes.size()));
    seal(Piece::kBody, words);
    next.begun = true;
    waiting_ -= next.bytes.size();
    return;
  }
  const std::string_view piece = next.bytes.substr(next.at, kPieceBytes);
  seal(Piece::kBytes, piece);
  next.at += piece.size();
  if (next.at == next.bytes.size()) out_.pop_front();
}

Status BodyStream::flush(std::uint64_t most) {
  for (std::uint64_t done = 0; done < most;) {
    if (written_ == sealed_) {
      if (out_.empty()) return {};
      seal_next();
    }
    const ssize_t sent =
        ::send(socket_.get(), out_piece_.get() + written_, sealed_ - written_, MSG_NOSIGNAL | MSG_DONTWAIT);
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
    if (length < BodyCipher::kTagBytes || length > kMostSealed) {
      return Error{ErrorCode::kInvalid, text("a piece of ", length, " bytes")};
    }
    piece_size_ = length;
    piece_here_ = 0;
  }
  while (piece_here_ < piece_size_) {
    const ssize_t got = ::recv(socket_.get(), in_piece_.get() + piece_here_, piece_size_ - piece_here_, MSG_DONTWAIT);
    MONARCH_ASSIGN(const std::size_t size, as_result(got));
    if (size == 0) return false;
    piece_here_ += size;
    done += size;
  }
  header_here_ = 0;
  return true;
}

bool BodyStream::open(char* into) {
  return from_.cipher->open(nonce_of(from_.used++), {header_.data(), header_.size()}, {in_piece_.get(), piece_size_},
                            into);
}

Status BodyStream::begin_body(std::string_view words) {
  const auto number = little_endian::get<std::uint64_t>(words, 0);
  const auto bytes = little_endian::get<std::uint64_t>(words, 8);
  if (coming_ || bytes == 0 || bytes > options_.most) {
    return Error{ErrorCode::kInvalid, text("a body of ", bytes, " bytes")};
  }
  Coming coming{.number = number, .bytes = bytes, .here = 0, .memory = {}};
  if (!options_.on_part) {
    MONARCH_ASSIGN(coming.memory, pool_.fill(bytes));
  }
  coming_ = std::move(coming);
  return {};
}

// A part is opened where it has come, and handed over from there.
bool BodyStream::open_part(std::size_t size) {
  if (coming_->memory) return open(coming_->memory->block->start() + coming_->here);
  if (!open(in_piece_.get())) return false;
  options_.on_part(
      {.number = coming_->number, .bytes = coming_->bytes, .at = coming_->here, .here = {in_piece_.get(), size}});
  return true;
}

Result<BodyStream::Arrived> BodyStream::end_body() {
  Coming whole = *std::exchange(coming_, std::nullopt);
  Arrived arrived{.number = whole.number, .memory = {}, .bytes = whole.bytes};
  if (whole.memory) {
    arrived.block = whole.memory->number;
    MONARCH_ASSIGN(arrived.memory, pool_.lend(std::move(*whole.memory)));
  }
  return arrived;
}

Status BodyStream::open_piece(std::vector<Arrived>& arrived) {
  const Error none{ErrorCode::kInvalid, "a piece that is not its other side's"};
  const std::size_t size = piece_size_ - BodyCipher::kTagBytes;
  switch (static_cast<Piece>(little_endian::get<std::uint32_t>({header_.data(), header_.size()}, 4))) {
    case Piece::kHello:
      if (size != 0 || proven_ || !open(nullptr)) return none;
      proven_ = true;
      return {};
    case Piece::kBody: {
      std::array<char, 16> words{};
      if (size != words.size() || !proven_ || !open(words.data())) return none;
      return begin_body({words.data(), words.size()});
    }
    case Piece::kBytes: {
      const bool fits = size > 0 && coming_ && size <= coming_->bytes - coming_->here;
      if (!fits || !open_part(size)) return none;
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
