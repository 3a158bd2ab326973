#include "worker/vault/vault_frames.h"

#include <utility>
#include <variant>

#include "transport/base/text.h"
#include "transport/messages/vault.h"
#include "transport/wire/codec.h"
#include "transport/wire/from_host.h"
#include "transport/wire/messages.h"

namespace monarch::vault {

VaultFrames write_vault_message(const vault_event::Message& message, std::string bytes) {
  VaultFrames written;
  std::visit(
      [&](const auto& one) {
        written.header.type = number_of<std::decay_t<decltype(one)>>();
        written.frames.push_back(ZmqFrame::take(encode_payload(one)));
      },
      message);
  if (!bytes.empty()) written.frames.push_back(ZmqFrame::take(std::move(bytes)));
  return written;
}

Result<VaultHeard> read_vault_message(const FrameHeader& header, const std::vector<ZmqFrame>& frames) {
  if (frames.size() > 2) return Error{ErrorCode::kInvalid, text(frames.size(), " parts behind the header")};
  VaultHeard heard;
  const auto take = [&](auto&& message) { heard.message = std::forward<decltype(message)>(message); };
  MONARCH_TRY(route(header, frames.front().bytes(), when<VaultOffer, decode_from_host<VaultOffer>>(take),
                    when<VaultKept, decode_from_host<VaultKept>>(take),
                    when<VaultAsk, decode_from_host<VaultAsk>>(take),
                    when<VaultPiece, decode_from_host<VaultPiece>>(take)));
  if (frames.size() == 2) heard.bytes = frames.back().bytes();
  const auto* piece = std::get_if<VaultPiece>(&heard.message);
  const std::size_t said = piece != nullptr && piece->refused.empty() ? piece->length : 0;
  if (heard.bytes.size() != said) {
    return Error{ErrorCode::kInvalid, text(heard.bytes.size(), " bytes instead of ", said)};
  }
  return heard;
}

}  // namespace monarch::vault
