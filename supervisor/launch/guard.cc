#include "supervisor/launch/guard.h"

#include <utility>

#include "transport/base/limits.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/messages/keeper.h"
#include "transport/messages/rank.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"
#include "transport/wire/step_page.h"

namespace monarch {

Result<std::unique_ptr<Guard>> Guard::create(EventLoop& loop, UniqueFd socket, JobUuid job, GuardHandlers handlers) {
  std::unique_ptr<Guard> guard(new Guard(job, std::move(handlers)));
  Guard* self = guard.get();
  MONARCH_ASSIGN(
      guard->channel_,
      SeqpacketChannel::create(loop, std::move(socket),
                               {.on_frame = [self](Frame frame, std::vector<UniqueFd>) { self->on_frame(frame); },
                                .on_closed = [self](Error reason) { self->handlers_.on_lost(reason); }},
                               {.queue_frames = limits::kGuardedFrames, .queue_bytes = limits::kGuardedBytes}));
  if (auto page = make_step_page(); page.ok()) {  // else it goes by our answers alone
    loop.count_steps_in(std::move(page->count));
    guard->steps_ = std::move(page->reader);
  }
  return guard;
}

template <class Message>
Status Guard::send(const Message& message, FrameHeader header, std::vector<UniqueFd> fds) {
  header.job = job_;
  return channel_->send(frame_of(message, header), std::move(fds));
}

void Guard::on_frame(const Frame& frame) {
  const Status taken = route(
      frame.header, frame.payload,
      // A full queue is the guard's own silence; it will ask again.
      when<KeeperPing>([&](const KeeperPing& ping) { (void)send(KeeperPong{.number = ping.number}); }),
      when<KeeperHello>([&](const KeeperHello& hello) { handlers_.on_hello(hello); }, limits::kSeqpacketPayloadBytes),
      when<KeeperChanged>([&](const KeeperChanged& changed) { handlers_.on_changed(changed.report); }));
  if (!taken.ok()) log_warn("guard: a message of type ", frame.header.type, ": ", taken.error().message);
}

Status Guard::say_ready() {
  std::vector<UniqueFd> steps;
  if (steps_.valid()) steps.push_back(std::move(steps_));
  return send(KeeperPong{}, {}, std::move(steps));
}

Status Guard::keep_open(std::vector<UniqueFd> descriptors) {
  const KeeperKeepOpen order{.count = static_cast<std::uint32_t>(descriptors.size())};
  return send(order, {}, std::move(descriptors));
}

Status Guard::spawn(SpawnOrder order) {
  std::vector<UniqueFd> fds;
  fds.push_back(std::move(order.standard_input));
  fds.push_back(std::move(order.standard_output));
  fds.push_back(std::move(order.standard_error));
  return send(order.process, {.process = order.key}, std::move(fds));
}

Status Guard::kill(const Incarnation& key) {
  return send(Stop{.ranks = {key.rank}, .generation = key.generation, .signal = 9, .grace = Duration::zero()},
              {.process = key});
}

Status Guard::forget(const Incarnation& key) { return send(KeeperForget{.processes = {key}}); }

Status Guard::let_live(const Incarnation& key) { return send(KeeperLetLive{.process = key}); }

Status Guard::shutdown(int exit_code) { return send(KeeperShutdown{.exit_code = exit_code}); }

}  // namespace monarch
