#pragma once

// BodyStream: one connection between two processes by which large bodies go from memory of the one into memory of the
// other, encrypted and authenticated (body_cipher.h), with keys of this connection alone. Each body goes as pieces,
// each of which is opened whole before a byte of it is believed. A piece is sealed from where the body lies, and opened
// to where it is going to lie; or it is handed over as it comes, to who has a place of his own for it.
//
// Nothing here waits: who has it polls for what it wants.
//
// Thread: one. Lifetime: within that of the pool.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/peers/body_cipher.h"
#include "transport/wire/mapped_memory.h"
#include "transport/wire/memory_pool.h"

namespace monarch {

inline constexpr std::size_t kBodySecretBytes = 32;

class BodyStream {
 public:
  static constexpr std::size_t kPieceBytes = 256U << 10U;

  struct Arrived {
    std::uint64_t number = 0;
    UniqueFd memory;  // begins with the body, for reading; none where parts are handed over
    std::uint64_t bytes = 0;
    std::uint64_t block = 0;  // of the pool; 0: it is none
  };
  // What has come of a body, right behind what came before; it stays there only while it is being handed over.
  struct Part {
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;  // of the body
    std::uint64_t at = 0;
    std::string_view here;
  };
  struct Options {
    std::string secret;      // of kBodySecretBytes, that both have and nobody else
    bool dials = false;      // the two directions have a key each
    bool with_aes = true;    // both say whether they have it; else neither uses it
    std::uint64_t most = 0;  // bytes of one body
    // Where there is one it is given all bodies, and what has arrived has no memory. It must not use the stream.
    std::function<void(const Part&)> on_part = {};
  };

  // A connected, non-blocking socket. It begins with a hello of ours.
  BodyStream(UniqueFd socket, MemoryPool& pool, const Options& options);
  BodyStream(const BodyStream&) = delete;
  BodyStream& operator=(const BodyStream&) = delete;
  ~BodyStream();

  int descriptor() const { return socket_.get(); }
  // The other side has the secret, and has said so.
  bool is_proven() const { return proven_; }
  // `bytes`: at least one. Owners of what holds them: this, and whoever has them besides.
  void send(std::uint64_t number, std::string_view bytes, std::shared_ptr<const void> memory);
  void send(std::uint64_t number, std::shared_ptr<const MappedMemory> body) {
    const std::string_view bytes = body->bytes();
    send(number, bytes, std::move(body));
  }
  // Bytes of bodies that have not begun to go.
  std::uint64_t waiting() const { return waiting_; }
  bool wants_to_write() const { return !out_.empty() || written_ < sealed_; }
  // About so many bytes, or as many as the socket takes. kGone: the other side has ended.
  Status flush(std::uint64_t most);
  // The same, of what comes; nothing twice. kInvalid: what comes is none of the other side's.
  Result<std::vector<Arrived>> receive(std::uint64_t most);

 private:
  enum class Piece : std::uint32_t { kHello = 1, kBody, kBytes };
  static constexpr std::size_t kHeadBytes = 8;  // before a piece, in the clear: its length and its kind
  static constexpr std::size_t kMostSealed = kPieceBytes + BodyCipher::kTagBytes;
  struct Outgoing {
    std::uint64_t number = 0;
    std::string_view bytes;  // none: a hello
    std::shared_ptr<const void> memory;
    bool begun = false;
    std::size_t at = 0;
  };
  // The key of one direction, and how many pieces it has been used for.
  struct Direction {
    std::unique_ptr<BodyCipher> cipher;
    std::uint64_t used = 0;
  };

  void seal_next();
  void seal(Piece kind, std::string_view plain);
  Result<bool> read_piece(std::uint64_t& done);
  Status open_piece(std::vector<Arrived>& arrived);
  Status begin_body(std::string_view words);
  bool open_part(std::size_t size);
  Result<Arrived> end_body();
  bool open(char* into);

  const UniqueFd socket_;
  MemoryPool& pool_;
  const Options options_;
  Direction to_;
  Direction from_;
  std::deque<Outgoing> out_;
  std::uint64_t waiting_ = 0;
  const std::unique_ptr<char[]> out_piece_;  // the one that is being written, with its head
  std::size_t sealed_ = 0;
  std::size_t written_ = 0;

  bool proven_ = false;
  std::array<char, kHeadBytes> header_{};
  std::size_t header_here_ = 0;
  const std::unique_ptr<char[]> in_piece_;  // sealed
  std::size_t piece_size_ = 0;
  std::size_t piece_here_ = 0;
  struct Coming {
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;
    std::uint64_t here = 0;
    std::optional<MemoryPool::Filling> memory;  // none where parts are handed over
  };
  std::optional<Coming> coming_;
};

}  // namespace monarch
