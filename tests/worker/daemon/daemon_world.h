#pragma once

// DaemonWorld: everything around a daemon, in one loop of the test: a keeper's end of its channel, and a supervisor with
// real ports, keys and a ZAP handler. The daemon is a process of its own.
//
// Thread: the test's. Lifetime: a test's; it kills the daemon that is left.

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/control_messages.h"
#include "transport/loop/event_loop.h"
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
  MessageType type() const { return static_cast<MessageType>(header.type); }
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
  void keeper_says(MessageType type, std::string payload, FrameHeader header = {}, std::vector<UniqueFd> fds = {});
  template <class Message>
  void keeper_says(MessageType type, const Message& message) {
    keeper_says(type, encode_payload(message));
  }
  void keeper_dies() { keeper.reset(); }
  // The last message of a type that the keeper heard.
  template <class Message>
  std::optional<Message> keeper_heard(MessageType type) const {
    for (auto frame = to_keeper.rbegin(); frame != to_keeper.rend(); ++frame) {
      if (frame->header.type != static_cast<std::uint16_t>(type)) continue;
      auto message = decode_payload<Message>(frame->payload);
      if (message.ok()) return std::move(message).value();
    }
    return std::nullopt;
  }

  // ---- as the supervisor ----
  template <class Message>
  void supervisor_says(MessageType type, const Message& message, Term term = Term(3)) {
    supervisor_says_payload(type, encode_payload(message), term);
  }
  void supervisor_says_payload(MessageType type, std::string payload, Term term);
  std::optional<Beat> last_beat() const;
  template <class Message>
  std::optional<Message> supervisor_heard(MessageType type) const {
    for (auto heard = to_supervisor.rbegin(); heard != to_supervisor.rend(); ++heard) {
      if (heard->type() != type) continue;
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
