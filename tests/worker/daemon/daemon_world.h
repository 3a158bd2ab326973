#pragma once

// DaemonWorld: everything around a daemon, in one loop of the test: a keeper's end of its channel, and a supervisor
// with real ports, keys and a ZAP handler. The daemon is a process of its own.
//
// Thread: the test's. Lifetime: a test's; it kills the daemon that is left.

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/loop/event_loop.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/keeper.h"
#include "transport/messages/worker.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"
#include "transport/wire/seqpacket_channel.h"
#include "transport/zmq/server_link.h"
#include "transport/zmq/zap.h"
#include "transport/zmq/zmq_loop.h"

namespace monarch::daemon {

// The whole file; nothing where there is none.
std::string read_file(const std::string& path);

struct SupervisorHeard {
  LinkId link;
  FrameHeader header;
  std::string payload;
  std::uint16_t type() const { return header.type; }
};

class DaemonWorld {
 public:
  static constexpr Duration kLease = Duration::seconds(6);

  DaemonWorld();
  ~DaemonWorld();
  DaemonWorld(const DaemonWorld&) = delete;
  DaemonWorld& operator=(const DaemonWorld&) = delete;

  // A stash as a keeper makes it from a bootstrap.
  DaemonStash first_stash() const;
  // Starts a daemon and says hello with this stash.
  void start(const DaemonStash& stash, KeeperHello hello = {});
  // Reads the answer on its stdout up to its end, and lets its key in.
  BootstrapReply admit();
  // Turns the loop until then, under a deadline.
  bool until(const std::function<bool()>& condition);
  // Its exit code, or minus the signal; nothing if it is alive after the deadline.
  std::optional<int> wait_for_end();
  void kill_daemon(int signal);

  // ---- as the keeper ----
  void keeper_says(std::uint16_t type, std::string payload, FrameHeader header, std::vector<UniqueFd> fds);
  template <class Message>
  void keeper_says(const Message& message, FrameHeader header = {}, std::vector<UniqueFd> fds = {}) {
    keeper_says(number_of<Message>(), encode_payload(message), header, std::move(fds));
  }
  void keeper_dies() { keeper.reset(); }
  // The last message of a type that the keeper heard.
  template <class Message>
  std::optional<Message> keeper_heard() const {
    for (auto frame = to_keeper.rbegin(); frame != to_keeper.rend(); ++frame) {
      if (!is_a<Message>(frame->header)) continue;
      auto message = decode_payload<Message>(frame->payload);
      if (message.ok()) return std::move(message).value();
    }
    return std::nullopt;
  }

  // ---- as the supervisor ----
  template <class Message>
  void supervisor_says(const Message& message, Term term = Term(3)) {
    supervisor_says_payload(number_of<Message>(), encode_payload(message), term);
  }
  void supervisor_says_payload(std::uint16_t type, std::string payload, Term term);
  std::optional<Beat> last_beat() const;
  template <class Message>
  std::optional<Message> supervisor_heard() const {
    for (auto heard = to_supervisor.rbegin(); heard != to_supervisor.rend(); ++heard) {
      if (!is_a<Message>(heard->header)) continue;
      auto message = decode_payload<Message>(heard->payload);
      if (message.ok()) return std::move(message).value();
    }
    return std::nullopt;
  }

  std::string directory;
  JobUuid job;
  std::unique_ptr<EventLoop> loop;
  std::unique_ptr<SeqpacketChannel> keeper;
  std::vector<Frame> to_keeper;
  std::vector<SupervisorHeard> to_supervisor;
  std::vector<SupervisorHeard> output;
  std::optional<ZmqLoop> zmq_loop;
  pid_t daemon = -1;

 private:
  std::unique_ptr<ZmqContext> context_;
  std::unique_ptr<ZapHandler> zap_;
  std::optional<CurveKeyPair> keys_;
  std::unique_ptr<ServerLink> control_;
  std::unique_ptr<ServerLink> bulk_;
  UniqueFd answer_;
};

}  // namespace monarch::daemon
