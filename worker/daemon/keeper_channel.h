#pragma once

// KeeperChannel: what a daemon says to its keeper. Each message travels in a frame of its type that names the job and
// the highest term promised. It never waits and never fails: a keeper that is gone is told of by on_closed, and one
// that does not read is asked again by the supervisor.
//
// Thread: the loop's.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/keeper.h"
#include "transport/messages/message.h"
#include "transport/messages/rank.h"
#include "transport/messages/stacks.h"
#include "transport/wire/codec.h"
#include "transport/wire/seqpacket_channel.h"
#include "worker/core/daemon_core.h"

namespace monarch::daemon {

class KeeperChannel {
 public:
  static Result<std::unique_ptr<KeeperChannel>> create(EventLoop& loop, UniqueFd socket, const JobUuid& job,
                                                       ChannelHandlers handlers);
  KeeperChannel(const KeeperChannel&) = delete;
  KeeperChannel& operator=(const KeeperChannel&) = delete;

  template <class Message>
  void tell(Term promised, const Message& message) {
    send(promised, number_of<Message>(), encode_payload(message));
  }
  void answer(Term promised, const KeeperPing& ping);
  void pass_on(Term promised, const ForKeeper& order) { send(promised, order.type, order.payload); }
  // A process of no rank: three descriptors, its standard input, output and error.
  void spawn(Term promised, const Incarnation& key, const KeeperSpawn& order, std::vector<UniqueFd> descriptors);

 private:
  KeeperChannel(const JobUuid& job, std::unique_ptr<SeqpacketChannel> channel, UniqueFd steps)
      : job_(job), channel_(std::move(channel)), steps_(std::move(steps)) {}
  void send(Term promised, std::uint16_t type, std::string payload, const Incarnation& key = {},
            std::vector<UniqueFd> descriptors = {});

  const JobUuid job_;
  const std::unique_ptr<SeqpacketChannel> channel_;
  UniqueFd steps_;  // of the loop, until the keeper has them
};

}  // namespace monarch::daemon
