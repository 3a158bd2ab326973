#pragma once

// PieceLinks: the pieces of checkpoints that come and go as bodies (transport/peers/body_links.h), beside what vaults
// say to each other. A piece is the body of the number that its asker gave it, so nothing else is said of it; it is
// written where it belongs as it comes.
//
// A number counts at whom it was asked of, and for one piece that is not here yet: nobody else writes by it.
//
// Thread: the loop's. Lifetime: within that of the loop and the memory; a handler must not destroy it.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "transport/base/ids.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/peer.h"
#include "transport/messages/post.h"
#include "transport/peers/body_links.h"
#include "transport/wire/mapped_memory.h"
#include "transport/wire/memory_pool.h"
#include "worker/vault/vault_memory.h"

namespace monarch::vault {

class PieceLinks {
 public:
  static constexpr std::uint64_t kLeastBytes = 64U << 10U;  // a smaller piece goes beside its message

  struct Place {
    std::string address;  // numeric: where it listens
    std::uint16_t first_port = 0;
    std::uint16_t last_port = 0;
  };
  struct Handlers {
    std::function<void(HostId, PeerVia, std::uint64_t number)> on_piece;  // it is written
    std::function<void(HostId, PeerVia)> on_lost;          // what was on its way there, or from there, does not arrive
    std::function<void(BlobId, const Status&)> on_failed;  // a piece of it could not be written
    std::function<void(HostId, PeerVia, const BodyLinkWord&)> say;
    std::function<std::string(HostId)> address_of;  // empty: nobody knows
  };
  PieceLinks(EventLoop& loop, VaultMemory& memory, const Place& place, Handlers handlers);
  PieceLinks(const PieceLinks&) = delete;
  PieceLinks& operator=(const PieceLinks&) = delete;

  // By this number that piece of the blob may come from there.
  void asked(HostId from, PeerVia via, BlobId blob, const VaultAsk& ask);
  // Whether it goes so; else it has to go beside its message.
  bool send(HostId to, PeerVia via, std::uint64_t number, BlobId blob, const VaultPiece& piece);
  // It is whole, or gone: nothing is written there any more.
  void forget(BlobId blob);

  void heard(HostId from, PeerVia via, const BodyLinkWord& word) { links_.heard(from, via, word); }
  void drop(HostId host, PeerVia via) { links_.drop(host, via); }
  void rest(bool rests) { links_.rest(rests); }

 private:
  struct Piece {
    HostId from;
    PeerVia via = PeerVia::kOurs;
    BlobId blob;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint64_t here = 0;
  };
  Piece* find(HostId from, PeerVia via, std::uint64_t number);
  void on_part(HostId from, PeerVia via, const BodyStream::Part& part);
  void on_body(HostId from, PeerVia via, const BodyStream::Arrived& body);

  VaultMemory& memory_;
  const Handlers handlers_;
  MemoryPool none_;  // pieces are written where they belong
  std::map<std::uint64_t, Piece> pieces_;
  BodyLinks links_;
};

}  // namespace monarch::vault
