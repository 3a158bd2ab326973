#pragma once

// ServerLink: a bound ROUTER with CURVE, fail-closed. It hands on messages with what is known for certain about their
// sender: the link they came by, which the ROUTER named, and the User-Id that the ZAP handler gave it. Which link
// answers go to is for LinkTable; a routing id is never an identity.
//
// Thread: the loop's; the thread that binds it may hand it over before that loop attaches it. Lifetime: within the
// context's and, once attached, within the loop's; a ZapHandler runs before the first bind, or nobody gets in.

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/zmq/counters.h"
#include "transport/zmq/curve.h"
#include "transport/zmq/link_options.h"
#include "transport/zmq/link_table.h"
#include "transport/zmq/listener_door.h"
#include "transport/zmq/monitor.h"
#include "transport/zmq/peer_budget.h"
#include "transport/zmq/zmq_loop.h"

namespace monarch {

struct PortRange {
  std::uint16_t first = 0;  // 0: any free port
  std::uint16_t last = 0;
};

struct ServerOptions {
  std::string address = "127.0.0.1";  // numeric
  PortRange ports = {};               // the first free one is taken
  LinkOptions link = {};
  int listener = -1;        // a socket that listens already, whose place counts; the link's from then on
  PeerAllowance peer = {};  // of each User-Id; counted by the loop's clock, so only once attached
};

struct InboundMessage {
  LinkId link;
  std::string user_id;
  std::vector<ZmqFrame> frames;  // at least one
};

class ServerLink {
 public:
  // kBusy: every port of the range is taken.
  static Result<std::unique_ptr<ServerLink>> bind(ZmqContext& context, const ServerOptions& options,
                                                  const CurveKeyPair& keys);
  ~ServerLink();
  ServerLink(const ServerLink&) = delete;
  ServerLink& operator=(const ServerLink&) = delete;

  std::uint16_t port() const { return port_; }
  // To close it to new connections, from any thread.
  Result<ListenerDoor> door() const { return ListenerDoor::of(listener_); }

  // From now on the loop calls for each message; the order of attaching is the order of service. Once.
  void attach(ZmqLoop& loop, std::function<void(InboundMessage&&)> on_message);

  // The next message, without a loop; what is refused is counted and passed over.
  std::optional<InboundMessage> receive();

  // kGone: that link has ended. kBusy: its queue is full; the frames are still the caller's.
  Status send(LinkId link, std::vector<ZmqFrame>& frames);

  // At its end, what was sent has this long to leave; nothing, unless this was called. It delays the context's end.
  void linger(Duration patience);

  LinkCounters counters();

 private:
  ServerLink(std::unique_ptr<ZmqSocket> socket, std::unique_ptr<ZmqMonitor> monitor, const ServerOptions& options);
  bool receive_one(std::optional<InboundMessage>& message);
  std::optional<InboundMessage> accept(std::vector<ZmqFrame>& frames);

  std::unique_ptr<ZmqSocket> socket_;
  std::unique_ptr<ZmqMonitor> monitor_;
  std::size_t message_bytes_;
  std::uint16_t port_ = 0;
  int listener_ = -1;  // libzmq's
  LinkCounters counters_;
  PeerBudget budget_;
  const std::uint64_t unread_bytes_;
  std::unique_ptr<UnreadPort> unread_;  // once it is attached
  ZmqLoop* loop_ = nullptr;
  ZmqWatchId message_watch_ = 0;
  ZmqWatchId monitor_watch_ = 0;
};

}  // namespace monarch
