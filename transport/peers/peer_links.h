#pragma once

// PeerLinks: the connections of a process to those of its kind on the job's other hosts, encrypted and known by their
// keys: a port at which those that the table names are let in, and connections of its own to those that it has
// something for. It knows hosts and frames, not what they are about; nothing it is given is sure to arrive. While few
// descriptors are left its port takes no new connection (transport/zmq/descriptor_watch.h).
//
// Thread: the loop's. Lifetime: within the loop's and the context's; a handler must not destroy it.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/result.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/peer.h"
#include "transport/wire/frame.h"
#include "transport/zmq/context.h"
#include "transport/zmq/curve.h"
#include "transport/zmq/descriptor_watch.h"
#include "transport/zmq/link_table.h"
#include "transport/zmq/reconnecting_client.h"
#include "transport/zmq/server_link.h"
#include "transport/zmq/zap.h"
#include "transport/zmq/zmq_loop.h"

namespace monarch {

class PeerLinks {
 public:
  struct Options {
    std::string kind;  // what it is called, "vault": in messages, and in the names that peers are let in by
    JobUuid job;
    std::string address;  // numeric: where it listens
    PortRange ports;      // of these the highest that is free
    LinkOptions link;
    // That wait to be sent to one host, by one connection; one message alone may have more.
    std::uint64_t queue_bytes = 256U << 20U;
    std::uint64_t seed = 0;
  };
  struct Handlers {
    // `frames`: the payload, and what comes beside it. What it refuses is told once, and passed over.
    std::function<Status(HostId, PeerVia, const FrameHeader&, std::vector<ZmqFrame>&& frames)> on_message;
    std::function<void(HostId)> on_up;    // our connection to it stands
    std::function<void(HostId)> on_down;  // it has ended, and is opened again
    // Optional. Whether few descriptors are left of those that the process may have; said when it changes.
    std::function<void(bool)> on_scarce = {};
  };
  // The keys outlive it.
  static Result<std::unique_ptr<PeerLinks>> open(ZmqContext& context, ZmqLoop& loop, const CurveKeyPair& keys,
                                                 const Options& options, Handlers handlers);
  PeerLinks(const PeerLinks&) = delete;
  PeerLinks& operator=(const PeerLinks&) = delete;
  ~PeerLinks();

  std::uint16_t port() const { return server_->port(); }
  // Those that are let in; connections of ours to others, or to one that is another now, end.
  void set_peers(const std::vector<PeerAddress>& peers);
  // on_up follows, later, also where there is a connection already. Where none can be opened now (no descriptor is
  // left) it is tried again, until the host is in no table any more.
  void dial(HostId host);
  // `header`: job and seq are put in. kGone: there is no such connection. kBusy: its queue is full.
  Status send(HostId host, PeerVia via, FrameHeader header, std::vector<ZmqFrame> frames);
  // A descriptor for somebody who comes to the process elsewhere; false: there is none.
  bool make_room() { return descriptors_->make_room(); }

 private:
  struct Dialled {
    PeerAddress peer;
    std::unique_ptr<ReconnectingClient> client;
  };
  PeerLinks(ZmqContext& context, ZmqLoop& loop, const CurveKeyPair& keys, const Options& options, Handlers handlers)
      : context_(context), loop_(loop), keys_(keys), options_(options), handlers_(std::move(handlers)) {}
  // Bytes that libzmq has not sent yet. Owners: this, and the messages on their way, which end in libzmq's thread.
  using QueuedBytes = std::shared_ptr<std::atomic<std::uint64_t>>;
  Result<ZmqFrame> counted_header(HostId host, PeerVia via, const FrameHeader& header,
                                  const std::vector<ZmqFrame>& frames);
  Status watch_descriptors();
  void publish();
  void hear(HostId from, PeerVia via, std::vector<ZmqFrame>&& frames);
  Status pass_on(HostId from, PeerVia via, std::vector<ZmqFrame>&& frames);
  void on_inbound(InboundMessage&& message);
  Status open_client(HostId host);
  void dial_again(HostId host);
  std::string user_of(HostId host) const;
  std::optional<HostId> host_of(std::string_view user_id) const;

  ZmqContext& context_;
  ZmqLoop& loop_;
  const CurveKeyPair& keys_;
  const Options options_;
  Handlers handlers_;
  std::unique_ptr<ZapHandler> zap_;
  std::unique_ptr<ServerLink> server_;
  std::unique_ptr<DescriptorWatch> descriptors_;
  LinkTable links_;  // that others opened
  std::map<HostId, PeerAddress> peers_;
  std::map<HostId, Dialled> dialled_;
  std::map<std::pair<HostId, PeerVia>, QueuedBytes> queued_;
  std::map<HostId, TimerId> redials_;
  TimerId publish_timer_ = 0;
  std::uint64_t sent_ = 0;
  bool told_malformed_ = false;
};

}  // namespace monarch
