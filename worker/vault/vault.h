#pragma once

// Vault: the process beside a daemon that keeps checkpoints in memory, as a loop around VaultCore. Ranks come by
// RankDoor, other vaults by PeerLinks and what they send by PieceLinks, the daemon by a socket of its own, over which
// the supervisor's table comes and what a beat says of the vault goes. It outlives a daemon: the next one connects
// again. It ends by TERM, or with its keeper.
//
// Thread: the main one. Lifetime: the process's.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/result.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/signals.h"
#include "transport/messages/peer.h"
#include "transport/messages/vault.h"
#include "transport/peers/peer_links.h"
#include "transport/wire/frame.h"
#include "transport/zmq/context.h"
#include "transport/zmq/zmq_loop.h"
#include "worker/core/vault/vault_core.h"
#include "worker/servant/daemon_door.h"
#include "worker/vault/piece_links.h"
#include "worker/vault/rank_door.h"
#include "worker/vault/vault_memory.h"

namespace monarch::vault {

class Vault {
 public:
  // `signals` delivers TERM, and outlives it.
  static Result<std::unique_ptr<Vault>> start(VaultSetup setup, SignalFd& signals);
  Vault(const Vault&) = delete;
  Vault& operator=(const Vault&) = delete;

  // Until TERM.
  void run() { zmq_loop_->run(); }

 private:
  Vault(VaultSetup setup, CurveKeyPair keys);
  Status open(SignalFd& signals);
  Status open_links();
  Status open_doors();

  void on_question(VaultClient client, std::string_view question, UniqueFd descriptor);
  Status on_peer(HostId from, PeerVia via, const FrameHeader& header, const std::vector<ZmqFrame>& frames);
  void say_of_bodies(HostId host, PeerVia via, const BodyLinkWord& word);
  void bodies_lost(HostId host, PeerVia via);
  std::string address_of(HostId host) const;
  bool is_proof(const Frame& frame) const;
  Status on_daemon(const Frame& frame);
  void feed(const VaultEvent& event, std::string_view bytes = {});
  void arm_tick();
  void report_later();

  void perform(const vault_action::Answer& action, std::string_view bytes);
  void perform(const vault_action::Adopt& action, std::string_view bytes);
  void perform(const vault_action::Create& action, std::string_view bytes);
  void perform(const vault_action::Write& action, std::string_view bytes);
  void perform(const vault_action::Close& action, std::string_view bytes);
  void perform(const vault_action::Drop& action, std::string_view bytes);
  void perform(const vault_action::Dial& action, std::string_view bytes);
  void perform(const vault_action::Send& action, std::string_view bytes);
  void perform(const vault_action::PeersChanged& action, std::string_view bytes);
  void check(BlobId blob, const Status& done);

  VaultSetup setup_;
  CurveKeyPair keys_;
  VaultCore core_;
  VaultMemory memory_;
  std::map<VaultClient, UniqueFd> handed_over_;  // until they are adopted, or the question is answered
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<ZmqContext> context_;
  std::unique_ptr<ZmqLoop> zmq_loop_;
  std::unique_ptr<PeerLinks> links_;
  std::unique_ptr<PieceLinks> pieces_;
  std::unique_ptr<RankDoor> door_;
  std::unique_ptr<DaemonDoor> daemon_;
  std::optional<VaultReport> told_;
  bool report_armed_ = false;
  TimerId tick_timer_ = 0;
};

}  // namespace monarch::vault
