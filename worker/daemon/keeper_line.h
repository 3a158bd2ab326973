#pragma once

// KeeperLine: what a daemon says to its keeper. Each message travels in a frame of its type that names the job and the
// highest term promised. It never waits and never fails: a keeper that is gone is told of by on_closed, and one that does
// not read is asked again by the supervisor.
//
// Thread: the loop's.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/control_messages.h"
#include "transport/base/ids.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/wire/messages.h"
#include "transport/wire/seqpacket_channel.h"
#include "transport/wire/stack_messages.h"
#include "worker/core/keeper_actions.h"

namespace monarch::daemon {

constexpr MessageType type_of(const Reserve&) { return MessageType::kReserve; }
constexpr MessageType type_of(const Start&) { return MessageType::kStart; }
constexpr MessageType type_of(const Stop&) { return MessageType::kStop; }
constexpr MessageType type_of(const Signal&) { return MessageType::kSignal; }
constexpr MessageType type_of(const Tell&) { return MessageType::kTell; }
constexpr MessageType type_of(const CommitAnswer&) { return MessageType::kCommitAnswer; }
constexpr MessageType type_of(const KeeperPong&) { return MessageType::kKeeperPong; }
constexpr MessageType type_of(const KeeperStash&) { return MessageType::kKeeperStash; }
constexpr MessageType type_of(const KeeperLease&) { return MessageType::kKeeperLease; }
constexpr MessageType type_of(const KeeperForget&) { return MessageType::kKeeperForget; }
constexpr MessageType type_of(const KeeperShutdown&) { return MessageType::kKeeperShutdown; }
constexpr MessageType type_of(const KeeperReady&) { return MessageType::kKeeperReady; }
constexpr MessageType type_of(const KeeperPipesTaken&) { return MessageType::kKeeperPipesTaken; }
constexpr MessageType type_of(const TakeStacks&) { return MessageType::kTakeStacks; }

class KeeperLine {
 public:
  static Result<std::unique_ptr<KeeperLine>> create(EventLoop& loop, UniqueFd socket, const JobUuid& job,
                                                    ChannelHandlers handlers);
  KeeperLine(const KeeperLine&) = delete;
  KeeperLine& operator=(const KeeperLine&) = delete;

  template <class Message>
  void tell(Term promised, const Message& message) {
    send(type_of(message), promised, encode_payload(message));
  }
  // A process of no rank: three descriptors, its standard input, output and error.
  void spawn(Term promised, const Incarnation& key, const KeeperSpawn& order, std::vector<UniqueFd> descriptors);

 private:
  KeeperLine(const JobUuid& job, std::unique_ptr<SeqpacketChannel> channel) : job_(job), channel_(std::move(channel)) {}
  void send(MessageType type, Term promised, std::string payload, const Incarnation& key = {},
            std::vector<UniqueFd> descriptors = {});

  const JobUuid job_;
  const std::unique_ptr<SeqpacketChannel> channel_;
};

}  // namespace monarch::daemon
