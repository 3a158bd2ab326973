#pragma once

// ServantChannel: a daemon's end of a process that serves beside it on its host, as the vault does. It has the keeper
// start one, again whenever it has ended, and keeps a connection to it; one that is to answer and does not is killed,
// as a daemon is by its keeper. A servant that an earlier daemon had started is taken over as it is: what it holds is
// not lost. What the two say to each other is not known here.
//
// Thread: the loop's. Lifetime: within the loop's.

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/keeper.h"
#include "transport/messages/rank.h"
#include "transport/wire/frame.h"
#include "transport/wire/messages.h"
#include "transport/wire/seqpacket_channel.h"
#include "worker/core/servant_silence.h"

namespace monarch::daemon {

struct ServantOptions {
  std::string name;       // "vault": what it is called, and the first argument of its program
  RankId process;         // the keeper's name for it; that of no rank
  std::string host_name;  // its own
  std::string door;       // the path at which it waits for its daemon
  // What it is started with, as sealed memory in its standard input, the starts of a worker's counted upwards; and the
  // first word of each daemon that connects to it later, which proves by the secret in it that it is one.
  std::function<Frame(std::uint64_t start)> setup;
  JobUuid job;
  Duration memory_patience;  // so long its memory may take to be given back, beyond what another process does
  std::string when_it_ends;  // what that means, in words
  // It is killed once it has answered nothing for so long, in which it could have run; zero: it may be busy for any
  // time.
  Duration answers_within = Duration::zero();
};

// What the keeper is told.
struct ServantOrders {
  std::function<void(const Incarnation&, const KeeperSpawn&, std::vector<UniqueFd> descriptors)> spawn;
  std::function<void(const Incarnation&)> forget;  // it has ended, and the keeper need not tell of it again
  std::function<void(const Incarnation&)> kill;
};

class ServantChannel {
 public:
  struct Handlers {
    std::function<void()> on_connected;
    std::function<void()> on_closed;
    std::function<Status(const Frame&)> on_frame;  // what it refuses is told, and passed over
    std::function<void(const std::string& how)> on_ended = [](const std::string&) {};
  };

  ServantChannel(EventLoop& loop, ServantOptions options, ServantOrders orders, Handlers handlers)
      : loop_(loop),
        options_(std::move(options)),
        orders_(std::move(orders)),
        handlers_(std::move(handlers)),
        silence_(options_.answers_within) {}
  ServantChannel(const ServantChannel&) = delete;
  ServantChannel& operator=(const ServantChannel&) = delete;
  ~ServantChannel();

  // Once. `runs`: the keeper keeps one already, and tells of it next.
  void begin(bool runs);
  // What the keeper says of its process.
  void on_process(const RankReport& report);
  // While there is no connection nothing is sent: on_connected is when to say it.
  template <class Message>
  void send(const Message& message) {
    send(frame_of(message, {.job = options_.job}));
  }
  void send(const Frame& frame);
  // No other one is started from here on.
  void leave();

 private:
  void spawn();
  void spawn_later();
  Result<std::vector<UniqueFd>> descriptors(const Frame& setup) const;
  void connect();
  void connect_later();
  void closed();
  void watch();
  void ask();
  Duration waited() const;

  EventLoop& loop_;
  const ServantOptions options_;
  const ServantOrders orders_;
  const Handlers handlers_;
  std::unique_ptr<SeqpacketChannel> channel_;
  bool runs_ = false;
  std::optional<Generation> generation_;  // of the one that this daemon had started last, or found
  bool leaving_ = false;
  bool told_ = false;  // that it cannot be reached
  Instant started_;
  Duration pause_;  // before the next start
  TimerId spawn_timer_ = 0;
  TimerId connect_timer_ = 0;
  TimerId ask_timer_ = 0;  // while it is connected, and is to answer
  Instant ask_at_;
  pid_t pid_ = 0;  // of who is at the other end; 0: unknown
  ServantSilence silence_;
  std::uint64_t asked_ = 0;
  bool deaf_ = false;  // this daemon has had it killed for that
};

}  // namespace monarch::daemon
