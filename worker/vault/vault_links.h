#pragma once

// VaultLinks: a vault's connections to others, encrypted and known by their keys: a port at which those that the table
// names are let in, and connections of its own to those that it has something for. It knows hosts and messages, not
// what they are about; nothing it is given is sure to arrive.
//
// Thread: the loop's. Lifetime: within the loop's and the context's; a handler must not destroy it.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/result.h"
#include "transport/messages/vault.h"
#include "transport/zmq/reconnecting_client.h"
#include "transport/zmq/server_link.h"
#include "transport/zmq/zap.h"
#include "transport/zmq/zmq_loop.h"
#include "worker/core/vault/vault_core.h"

namespace monarch::vault {

class VaultLinks {
 public:
  struct Options {
    JobUuid job;
    std::string address;  // numeric: where it listens
    PortRange ports;
    std::uint64_t seed = 0;
  };
  struct Handlers {
    // `bytes`: of a VaultPiece.
    std::function<void(HostId, VaultVia, vault_event::Message, std::string_view bytes)> on_message;
    std::function<void(HostId)> on_up;  // our connection to it stands
  };
  // The keys outlive it.
  static Result<std::unique_ptr<VaultLinks>> open(ZmqContext& context, ZmqLoop& loop, const CurveKeyPair& keys,
                                                  const Options& options, Handlers handlers);
  VaultLinks(const VaultLinks&) = delete;
  VaultLinks& operator=(const VaultLinks&) = delete;
  ~VaultLinks();

  std::uint16_t port() const { return server_->port(); }
  // Those that are let in; connections of ours to others, or to one that is another now, end.
  void set_peers(const std::vector<VaultPeer>& peers);
  // on_up follows, later, also where there is a connection already.
  void dial(HostId host);
  // False: nothing was sent.
  bool send(HostId host, VaultVia via, const vault_event::Message& message, std::string bytes);

 private:
  struct Dialled {
    VaultPeer peer;
    std::unique_ptr<ReconnectingClient> client;
  };
  VaultLinks(ZmqContext& context, ZmqLoop& loop, const CurveKeyPair& keys, const Options& options, Handlers handlers)
      : context_(context), loop_(loop), keys_(keys), options_(options), handlers_(std::move(handlers)) {}
  void publish();
  void hear(HostId from, VaultVia via, const std::vector<ZmqFrame>& frames);
  void on_inbound(InboundMessage&& message);
  Status open_client(HostId host);

  ZmqContext& context_;
  ZmqLoop& loop_;
  const CurveKeyPair& keys_;
  const Options options_;
  Handlers handlers_;
  std::unique_ptr<ZapHandler> zap_;
  std::unique_ptr<ServerLink> server_;
  LinkTable links_;  // that others opened
  std::map<HostId, VaultPeer> peers_;
  std::map<HostId, Dialled> dialled_;
  TimerId publish_timer_ = 0;
  std::uint64_t sent_ = 0;
  bool told_malformed_ = false;
};

}  // namespace monarch::vault
