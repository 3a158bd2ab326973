#include "worker/vault/piece_links.h"

#include <utility>

namespace monarch::vault {

PieceLinks::PieceLinks(EventLoop& loop, VaultMemory& memory, const Place& place, Handlers handlers)
    : memory_(memory),
      handlers_(std::move(handlers)),
      links_(
          loop, none_,
          {.address = place.address,
           .first_port = place.first_port,
           .last_port = place.last_port,
           .most = kVaultPieceBytes,
           .carries = "copies of checkpoints"},
          {.on_body = [this](HostId from, PeerVia via, BodyStream::Arrived&& body) { on_body(from, via, body); },
           .on_lost = handlers_.on_lost,
           .say = handlers_.say,
           .address_of = handlers_.address_of,
           .on_part = [this](HostId from, PeerVia via, const BodyStream::Part& part) { on_part(from, via, part); }}) {}

void PieceLinks::asked(HostId from, PeerVia via, BlobId blob, const VaultAsk& ask) {
  if (ask.number == 0) return;
  pieces_[ask.number] = {.from = from, .via = via, .blob = blob, .offset = ask.offset, .length = ask.length};
}

bool PieceLinks::send(HostId to, PeerVia via, std::uint64_t number, BlobId blob, const VaultPiece& piece) {
  if (number == 0 || piece.length < kLeastBytes || !links_.link_to(to, via)) return false;
  auto mapped = memory_.map(blob, piece.offset, piece.length);
  if (!mapped.ok()) return false;
  links_.send(to, via, number, std::move(*mapped));
  return true;
}

void PieceLinks::forget(BlobId blob) {
  std::erase_if(pieces_, [blob](const auto& one) { return one.second.blob == blob; });
}

PieceLinks::Piece* PieceLinks::find(HostId from, PeerVia via, std::uint64_t number) {
  const auto found = pieces_.find(number);
  const bool is_theirs = found != pieces_.end() && found->second.from == from && found->second.via == via;
  return is_theirs ? &found->second : nullptr;
}

// What nobody waits for is passed over.
void PieceLinks::on_part(HostId from, PeerVia via, const BodyStream::Part& part) {
  Piece* const piece = find(from, via, part.number);
  if (piece == nullptr || part.bytes != piece->length) return;
  if (part.at == 0) piece->here = 0;  // it was begun over a connection that was lost
  if (part.at != piece->here) return;
  const Status written = memory_.write(piece->blob, piece->offset + part.at, part.here);
  if (written.ok()) {
    piece->here += part.here.size();
    return;
  }
  const BlobId failed = piece->blob;
  forget(failed);
  handlers_.on_failed(failed, written);
}

void PieceLinks::on_body(HostId from, PeerVia via, const BodyStream::Arrived& body) {
  const Piece* const piece = find(from, via, body.number);
  if (piece == nullptr || body.bytes != piece->length || piece->here != piece->length) return;
  pieces_.erase(body.number);
  handlers_.on_piece(from, via, body.number);
}

}  // namespace monarch::vault
