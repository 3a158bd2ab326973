#pragma once

// ZmqLab: a context, a loop, a key check and what tests connect to them, all on loopback. Waiting is always for a
// condition under a deadline.
//
// Thread: the test's.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/unique_fd.h"
#include "transport/zmq/client_link.h"
#include "transport/zmq/server_link.h"
#include "transport/zmq/zap.h"
#include "transport/zmq/zmq_loop.h"

namespace monarch {

// A client that writes down what happens to it.
class RecordedClient {
 public:
  RecordedClient(ZmqContext& context, ZmqLoop& loop, const ClientOptions& options, const CurveKeyPair& keys);
  ~RecordedClient();
  RecordedClient(const RecordedClient&) = delete;
  RecordedClient& operator=(const RecordedClient&) = delete;

  bool saw(ClientEvent event) const;
  Status send(std::string_view bytes);
  // What comes is received no more.
  void pause() { loop_.forget(message_watch_); }

  std::unique_ptr<ClientLink> link;
  std::vector<ClientEvent> events;
  std::vector<std::string> messages;  // each frame

 private:
  ZmqLoop& loop_;
  ZmqWatchId monitor_watch_;
  ZmqWatchId message_watch_;
};

class ZmqLab {
 public:
  struct Options {
    bool with_handler = true;
    Duration unknown_key_wait = Duration::milliseconds(20);
    LinkOptions server = {};  // of the port under test
    PeerAllowance peer = {};
  };
  ZmqLab() : ZmqLab(Options()) {}
  explicit ZmqLab(const Options& options);

  // Turns the loop until the condition holds, and answers whether it did within 10 s.
  bool until(const std::function<bool()>& condition);

  void bind(std::uint16_t port = 0);
  // Where a server was before: libzmq closes its port at its own time.
  bool bind_again(std::uint16_t port);
  void allow(std::vector<std::pair<CurvePublicKey, std::string>> users);
  std::unique_ptr<RecordedClient> client(const CurveKeyPair& keys);
  ClientOptions client_options() const;
  UniqueFd raw_connection() const;
  // The first message of a user, in arrival order, or nullptr.
  const InboundMessage* from(std::string_view user_id) const;
  LinkCounters counters() { return server->counters(); }

  Options options;
  CurveKeyPair server_keys;
  std::unique_ptr<ZmqContext> context;
  std::unique_ptr<EventLoop> events;
  std::unique_ptr<ZmqLoop> loop;
  std::unique_ptr<ZapHandler> zap;
  std::unique_ptr<ServerLink> server;
  std::vector<InboundMessage> inbound;
};

// A way to the lab's port that ends for what a client says once so many bytes of it have gone, and stays open: whoever
// sends more has begun a message that does not end. The lab's loop runs it.
class BrokenWay {
 public:
  BrokenWay(ZmqLab& lab, std::uint64_t most);
  ~BrokenWay();
  BrokenWay(const BrokenWay&) = delete;
  BrokenWay& operator=(const BrokenWay&) = delete;
  // Where a client dials instead.
  std::uint16_t port() const { return port_; }
  std::uint64_t gone() const { return gone_; }  // bytes

 private:
  void pass();

  ZmqLab& lab_;
  const std::uint64_t most_;
  UniqueFd listener_;
  std::uint16_t port_ = 0;
  UniqueFd client_;
  UniqueFd server_;
  std::uint64_t gone_ = 0;
  TimerId timer_ = 0;
};

CurveKeyPair key_pair();
std::vector<ZmqFrame> one_frame(std::string_view bytes);
// True once the other side has closed; what it sent before is read and dropped.
bool closed_by_peer(int fd);

}  // namespace monarch
