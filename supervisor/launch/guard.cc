#include "supervisor/launch/guard.h"

#include <utility>

#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"

namespace monarch {

Result<std::unique_ptr<Guard>> Guard::create(EventLoop& loop, UniqueFd socket, JobUuid job, GuardHandlers handlers) {
  std::unique_ptr<Guard> guard(new Guard(job, std::move(handlers)));
  Guard* self = guard.get();
  MONARCH_ASSIGN(
      guard->channel_,
      SeqpacketChannel::create(loop, std::move(socket),
                               {.on_frame = [self](Frame frame, std::vector<UniqueFd>) { self->on_frame(frame); },
                                .on_closed = [self](Error reason) { self->handlers_.on_lost(reason); }}));
  return guard;
}

template <class Message>
Status Guard::send(MessageType type, const Message& message, FrameHeader header, std::vector<UniqueFd> fds) {
  header.type = static_cast<std::uint16_t>(type);
  header.job = job_;
  return channel_->send(Frame{header, encode_payload(message)}, std::move(fds));
}

void Guard::on_frame(const Frame& frame) {
  switch (static_cast<MessageType>(frame.header.type)) {
    case MessageType::kKeeperPing: {
      const auto ping = decode_payload<KeeperPing>(frame.payload);
      if (!ping.ok()) break;
      // A full queue is the guard's own silence; it will ask again.
      (void)send(MessageType::kKeeperPong, KeeperPong{.number = ping->number});
      return;
    }
    case MessageType::kKeeperHello: {
      const auto hello = decode_payload<KeeperHello>(frame.payload, limits::kSeqpacketPayloadBytes);
      if (!hello.ok()) break;
      handlers_.on_hello(*hello);
      return;
    }
    case MessageType::kKeeperChanged: {
      const auto changed = decode_payload<KeeperChanged>(frame.payload);
      if (!changed.ok()) break;
      handlers_.on_changed(changed->report);
      return;
    }
    default: break;
  }
  log_warn("guard: a message of type ", frame.header.type, " that nobody expects, or that cannot be read");
}

Status Guard::say_ready() { return send(MessageType::kKeeperPong, KeeperPong{}); }

Status Guard::keep_open(std::vector<UniqueFd> descriptors) {
  const KeeperKeepOpen order{.count = static_cast<std::uint32_t>(descriptors.size())};
  return send(MessageType::kKeeperKeepOpen, order, {}, std::move(descriptors));
}

Status Guard::spawn(SpawnOrder order) {
  std::vector<UniqueFd> fds;
  fds.push_back(std::move(order.standard_input));
  fds.push_back(std::move(order.standard_output));
  fds.push_back(std::move(order.standard_error));
  return send(MessageType::kKeeperSpawn, order.process, {.process = order.key}, std::move(fds));
}

Status Guard::kill(const Incarnation& key) {
  return send(MessageType::kStop,
              Stop{.ranks = {key.rank}, .generation = key.generation, .signal = 9, .grace = Duration::zero()},
              {.process = key});
}

Status Guard::forget(const Incarnation& key) {
  return send(MessageType::kKeeperForget, KeeperForget{.processes = {key}});
}

Status Guard::let_live(const Incarnation& key) {
  return send(MessageType::kKeeperLetLive, KeeperLetLive{.process = key});
}

Status Guard::shutdown(int exit_code) {
  return send(MessageType::kKeeperShutdown, KeeperShutdown{.exit_code = exit_code});
}

}  // namespace monarch
