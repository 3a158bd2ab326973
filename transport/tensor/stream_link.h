#pragma once

// StreamLink: one connection between a reader and an owner, after its hello: frames, what is behind them, and on a unix
// socket a descriptor beside them. Rows go from the slot itself, as it is when they are sent; a word is looked at when
// all that was to be sent before it is on its way. Nothing here waits: who has it polls for what it wants.
//
// Thread: one. Lifetime: slots are held for as long as rows of them are to be sent.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/tensor/frames.h"
#include "transport/tensor/slot.h"

namespace monarch::tensor {

class StreamLink {
 public:
  static constexpr std::size_t kUnsent = 16'384;  // frames that wait; a peer that does not read has no more of them

  struct Received {
    LinkFrame frame;
    std::string behind;
    UniqueFd descriptor;
  };

  // A stream socket, which becomes non-blocking.
  static Result<std::unique_ptr<StreamLink>> make(UniqueFd socket);
  StreamLink(const StreamLink&) = delete;
  StreamLink& operator=(const StreamLink&) = delete;

  int descriptor() const { return socket_.get(); }

  // They are queued, and sent by flush(). kBusy: the peer does not read.
  Status send(LinkFrame frame, std::string behind = {});
  // With a descriptor of the slot, which is opened when its turn comes: who does not read has none of this process's.
  Status send_slot(const LinkFrame& frame, std::shared_ptr<const Slot> slot);
  // `asked`: a kRows that fits the slot.
  Status send_rows(const LinkFrame& asked, std::shared_ptr<const Slot> slot);
  Status send_word(const LinkFrame& asked, std::shared_ptr<const Slot> slot);
  // As much as the socket takes, and about `most` bytes. kGone: the peer has ended.
  Status flush(std::uint64_t most = UINT64_MAX);
  bool wants_to_write() const { return !queue_.empty(); }

  // The next frame with all that is behind it; nothing: it is not here yet. What is behind rows read_rows() reads,
  // before the next receive(). `most`: bytes that may be behind one. kGone: the peer has ended. kInvalid: what it says
  // is none.
  Result<std::optional<Received>> receive(std::uint64_t most);
  std::uint64_t rows_left() const { return rows_left_; }
  // How many bytes of rows were read, into these; 0: there are none now.
  Result<std::size_t> read_rows(const iovec* into, std::size_t count);

 private:
  struct Outgoing {
    enum class Of : std::uint8_t { kRows, kWord, kDescriptor };

    std::string bytes;                 // header, and what is behind it
    std::shared_ptr<const Slot> slot;  // nullptr: it is of none
    LinkFrame rows;                    // that follow; of a descriptor what is said with it
    Of of = Of::kRows;                 // of the slot; a word is put into the header when its turn comes
    std::uint64_t sent = 0;            // of all
    bool is_of(Of what) const { return slot != nullptr && of == what; }
  };

  explicit StreamLink(UniqueFd socket) : socket_(std::move(socket)) {}
  Status queue(Outgoing outgoing);
  // How many bytes were sent; 0: the socket takes no more.
  Result<std::size_t> send_some(Outgoing& outgoing);
  static std::uint64_t size_of(const Outgoing& outgoing);
  Result<std::size_t> read_some(char* into, std::size_t size);

  UniqueFd socket_;
  std::deque<Outgoing> queue_;
  std::string header_;  // as far as it is here
  std::optional<Received> coming_;
  std::size_t behind_here_ = 0;
  UniqueFd descriptor_;  // that came with what was read last
  std::uint64_t rows_left_ = 0;
};

}  // namespace monarch::tensor
