#pragma once

// BodyStream: one connection between two processes by which large bodies go from memory of the one into memory of the
// other, encrypted and authenticated: AES-256-GCM where the processor has it, else ChaCha20-Poly1305, with keys of this
// connection alone. Each body goes as pieces, each of which is opened whole before a byte of it is believed.
//
// Nothing here waits: who has it polls for what it wants.
//
// Thread: one. Lifetime: within that of the pool.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/wire/mapped_memory.h"
#include "transport/wire/memory_pool.h"

namespace monarch {

inline constexpr std::size_t kBodySecretBytes = 32;

class BodyStream {
 public:
  static constexpr std::size_t kPieceBytes = 256U << 10U;

  struct Arrived {
    std::uint64_t number = 0;
    UniqueFd memory;  // begins with the body, for reading
    std::uint64_t bytes = 0;
  };
  struct Options {
    std::string secret;      // of kBodySecretBytes, that both have and nobody else
    bool dials = false;      // the two directions have a key each
    bool with_aes = true;    // both say whether they have it; else neither uses it
    std::uint64_t most = 0;  // bytes of one body
  };

  // Whether this processor has AES-256-GCM.
  static bool has_aes();

  // A connected, non-blocking socket. It begins with a hello of ours.
  BodyStream(UniqueFd socket, MemoryPool& pool, const Options& options);
  BodyStream(const BodyStream&) = delete;
  BodyStream& operator=(const BodyStream&) = delete;
  ~BodyStream();

  int descriptor() const { return socket_.get(); }
  // The other side has the secret, and has said so.
  bool is_proven() const { return proven_; }
  void send(std::uint64_t number, std::shared_ptr<const MappedMemory> body);
  // Bytes of bodies that have not begun to go.
  std::uint64_t waiting() const { return waiting_; }
  bool wants_to_write() const { return !out_.empty() || written_ < sealed_.size(); }
  // About so many bytes, or as many as the socket takes. kGone: the other side has ended.
  Status flush(std::uint64_t most);
  // The same, of what comes; nothing twice. kInvalid: what comes is none of the other side's.
  Result<std::vector<Arrived>> receive(std::uint64_t most);

 private:
  enum class Piece : std::uint32_t { kHello = 1, kBody, kBytes };
  struct Outgoing {
    std::uint64_t number = 0;
    std::shared_ptr<const MappedMemory> body;  // owners: this, and whoever has it mapped; nullptr: a hello
    bool begun = false;
    std::size_t at = 0;
  };
  struct Key {
    std::array<unsigned char, 32> bytes{};
    std::uint64_t used = 0;  // pieces
  };

  void seal_next();
  void seal(Piece kind, std::string_view plain);
  Result<bool> read_piece(std::uint64_t& done);
  Status open_piece(std::vector<Arrived>& arrived);
  Status begin_body(std::string_view words);
  Result<Arrived> end_body();
  bool open(char* into, std::size_t size);

  const UniqueFd socket_;
  MemoryPool& pool_;
  const Options options_;
  Key to_;
  Key from_;
  std::deque<Outgoing> out_;
  std::uint64_t waiting_ = 0;
  std::string sealed_;  // the piece that is being written
  std::size_t written_ = 0;

  bool proven_ = false;
  std::array<char, 8> header_{};
  std::size_t header_here_ = 0;
  std::string piece_;  // sealed
  std::size_t piece_here_ = 0;
  struct Coming {
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;
    std::uint64_t here = 0;
    MemoryPool::Filling memory;
  };
  std::optional<Coming> coming_;
};

}  // namespace monarch
