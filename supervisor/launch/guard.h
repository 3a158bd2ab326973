#pragma once

// Guard: the supervisor's end of the channel to its keeper (`monarch-worker keep`), which starts it again after a crash
// and forks for it: the supervisor has threads, and only a process without them may fork. Processes that the guard
// started live on when the supervisor does not, and their ends are told to the next one.
//
// Thread: the supervisor's loop. Lifetime: shorter than the loop's.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/keeper.h"
#include "transport/messages/rank.h"
#include "transport/wire/frame.h"
#include "transport/wire/seqpacket_channel.h"

namespace monarch {

struct GuardHandlers {
  std::function<void(const KeeperHello&)> on_hello;
  std::function<void(const RankReport&)> on_changed;
  std::function<void(const Error&)> on_lost;  // the guard has gone; nothing can be started or ended by it any more
};

struct SpawnOrder {
  Incarnation key;
  KeeperSpawn process;
  UniqueFd standard_input;
  UniqueFd standard_output;
  UniqueFd standard_error;
};

class Guard {
 public:
  static Result<std::unique_ptr<Guard>> create(EventLoop& loop, UniqueFd socket, JobUuid job, GuardHandlers handlers);
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // From here on it starts another one, should this end. One that never spoke was never ready, and would end again.
  Status say_ready();
  // The supervisor that it starts after this one has these descriptors, in this order.
  Status keep_open(std::vector<UniqueFd> descriptors);
  Status spawn(SpawnOrder order);
  // KILL at once: what it started has its own way to die with it.
  Status kill(const Incarnation& key);
  Status forget(const Incarnation& key);
  // It lives on where the guard ends before the job does.
  Status let_live(const Incarnation& key);
  // The supervisor ends in order; the guard ends what it still keeps and exits with this code.
  Status shutdown(int exit_code);
  std::size_t pending_bytes() const { return channel_ ? channel_->pending_bytes() : 0; }

 private:
  Guard(JobUuid job, GuardHandlers handlers) : job_(job), handlers_(std::move(handlers)) {}
  void on_frame(const Frame& frame);
  template <class Message>
  Status send(const Message& message, FrameHeader header = {}, std::vector<UniqueFd> fds = {});

  JobUuid job_;
  GuardHandlers handlers_;
  UniqueFd steps_;  // of the loop, until the guard has them
  std::unique_ptr<SeqpacketChannel> channel_;
};

}  // namespace monarch
