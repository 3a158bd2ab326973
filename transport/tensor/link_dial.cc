#include "transport/tensor/link_dial.h"

#include <poll.h>

#include <utility>

#include "transport/base/machine.h"
#include "transport/base/text.h"
#include "transport/tensor/link_socket.h"

namespace monarch::tensor {

Result<std::unique_ptr<LinkDial>> LinkDial::start(const Card& card, LinkWay way, HelloAsk ask, std::uint32_t row_link) {
  ask.nonce.data = random_bytes(kNonceBytes);
  auto socket = way == LinkWay::kOnMachine ? connect_on_machine(card.path) : connect_to_host(card.address, card.port);
  if (!socket.ok()) return Error{socket.error().code, text(ask.owner.name(), ": ", socket.error().message)};
  std::string secret(reinterpret_cast<const char*>(card.secret.data()), card.secret.size());
  return std::unique_ptr<LinkDial>(new LinkDial(std::move(*socket), std::move(ask), row_link, std::move(secret)));
}

Error LinkDial::of_owner(const Error& error) const {
  return {error.code, text(ask_.owner.name(), ": ", error.message)};
}

short LinkDial::events() const {
  if (!stream_) return POLLOUT;
  return static_cast<short>(POLLIN | (stream_->wants_to_write() ? POLLOUT : 0));
}

Error LinkDial::refused(const StreamLink::Received& word) {
  again_ = time_to_come_again(word.frame);
  const bool other = (word.frame.flags & kOther) != 0;
  return {again_  ? ErrorCode::kBusy
          : other ? ErrorCode::kGone
                  : ErrorCode::kTimeout,
          text(ask_.owner.name(), " refuses a link: ", printable(word.behind))};
}

Result<std::unique_ptr<StreamLink>> LinkDial::go_on() {
  if (!stream_) {
    const auto is_connected = connected(socket_);
    if (!is_connected.ok()) return of_owner(is_connected.error());
    if (!*is_connected) return std::unique_ptr<StreamLink>();
    MONARCH_ASSIGN(stream_, StreamLink::make(std::move(socket_)));
    MONARCH_TRY(stream_->send({.kind = FrameKind::kHello, .rows = row_link_}, codec::encode(ask_)));
  }
  // Who ends a link that stood may live: the next one tells.
  const Error let_go{ErrorCode::kBusy, text(ask_.owner.name(), " let go of a link")};
  if (!stream_->flush().ok()) return let_go;
  auto received = stream_->receive(kHelloBytes);
  if (!received.ok()) return received.error().code == ErrorCode::kGone ? let_go : received.error();
  if (!*received) return std::unique_ptr<StreamLink>();
  const StreamLink::Received& word = **received;
  if (word.frame.kind == FrameKind::kUnfit) return refused(word);
  HelloAnswer answer;
  codec::DecodeError error;
  if (word.frame.kind != FrameKind::kHello || !codec::decode(word.behind, answer, error)) {
    return Error{ErrorCode::kGone, text("who answers is not ", ask_.owner.name())};
  }
  auto proof = prove_hello(ask_, answer, secret_);
  if (!proof.ok()) return Error{ErrorCode::kGone, proof.error().message};
  row_links_ = word.frame.rows;
  MONARCH_TRY(stream_->send({.kind = FrameKind::kHello}, codec::encode(*proof)));
  if (!stream_->flush().ok()) return let_go;
  return std::move(stream_);
}

}  // namespace monarch::tensor
