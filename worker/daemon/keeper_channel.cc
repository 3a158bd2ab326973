#include "worker/daemon/keeper_channel.h"

#include <cstdint>
#include <utility>

#include "transport/base/limits.h"
#include "transport/base/log.h"
#include "transport/messages/message.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame.h"
#include "transport/wire/step_page.h"

namespace monarch::daemon {

Result<std::unique_ptr<KeeperChannel>> KeeperChannel::create(EventLoop& loop, UniqueFd socket, const JobUuid& job,
                                                             ChannelHandlers handlers) {
  MONARCH_ASSIGN(auto channel, SeqpacketChannel::create(
                                   loop, std::move(socket), std::move(handlers),
                                   {.queue_frames = limits::kGuardedFrames, .queue_bytes = limits::kGuardedBytes}));
  UniqueFd steps;
  if (auto page = make_step_page(); page.ok()) {  // else it goes by our answers alone
    loop.count_steps_in(std::move(page->count));
    steps = std::move(page->reader);
  }
  return std::unique_ptr<KeeperChannel>(new KeeperChannel(job, std::move(channel), std::move(steps)));
}

void KeeperChannel::answer(Term promised, const KeeperPing& ping) {
  std::vector<UniqueFd> steps;
  if (steps_.valid()) steps.push_back(std::move(steps_));
  send(promised, number_of<KeeperPong>(), encode_payload(KeeperPong{ping.number}), {}, std::move(steps));
}

void KeeperChannel::spawn(Term promised, const Incarnation& key, const KeeperSpawn& order,
                          std::vector<UniqueFd> descriptors) {
  send(promised, number_of<KeeperSpawn>(), encode_payload(order), key, std::move(descriptors));
}

void KeeperChannel::send(Term promised, std::uint16_t type, std::string payload, const Incarnation& key,
                         std::vector<UniqueFd> descriptors) {
  const Frame frame{{.type = type, .job = job_, .term = promised, .process = key}, std::move(payload)};
  const Status sent = channel_->send(frame, std::move(descriptors));
  if (!sent.ok() && sent.error().code != ErrorCode::kGone) {
    log_warn("the keeper does not take a message of type ", frame.header.type, ": ", sent.error().message);
  }
}

}  // namespace monarch::daemon
