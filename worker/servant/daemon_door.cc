#include "worker/servant/daemon_door.h"

#include <utility>
#include <vector>

#include "transport/base/log.h"
#include "transport/messages/keeper.h"
#include "transport/wire/codec.h"

namespace monarch {

Result<std::unique_ptr<DaemonDoor>> DaemonDoor::open(EventLoop& loop, const std::string& path, Handlers handlers) {
  std::unique_ptr<DaemonDoor> door(new DaemonDoor(loop, std::move(handlers)));
  DaemonDoor* const self = door.get();
  MONARCH_ASSIGN(door->listener_,
                 SeqpacketListener::create(loop, path, [self](UniqueFd socket, const PeerCredentials& /*peer*/) {
                   self->on_connection(std::move(socket));
                 }));
  return door;
}

void DaemonDoor::on_connection(UniqueFd socket) {
  const auto proven = std::make_shared<bool>(false);  // owners: this connection's handler alone
  ChannelHandlers handlers;
  handlers.on_frame = [this, proven](const Frame& frame, const std::vector<UniqueFd>& /*descriptors*/) {
    if (*proven) {
      if (is_a<KeeperPing>(frame.header)) return answer(frame);
      const Status taken = handlers_.on_frame(frame);
      if (!taken.ok()) log_warn("the daemon said something that means nothing here: ", taken.error().message);
      return;
    }
    if (!handlers_.is_proof(frame)) {
      log_warn("somebody who is not this host's daemon spoke at its door, and is not heard");
      return coming_->close();
    }
    *proven = true;
    daemon_ = std::move(coming_);
    handlers_.on_daemon();
  };
  handlers.on_closed = [](const Error&) {};  // its keeper starts another one, which connects
  auto channel = SeqpacketChannel::create(loop_, std::move(socket), std::move(handlers));
  if (!channel.ok()) return log_warn("the daemon's connection: ", channel.error().message);
  coming_ = std::move(*channel);
}

// Where it cannot be said the daemon has gone, or will take it for what it is.
void DaemonDoor::answer(const Frame& ping) {
  const auto asked = decode_payload<KeeperPing>(ping.payload);
  if (asked.ok()) (void)send(KeeperPong{asked->number}, ping.header.job);
}

}  // namespace monarch
