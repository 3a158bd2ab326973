#pragma once

// VaultChannel: what a daemon and its host's vault say to each other. The daemon tells the supervisor's table, to each
// start of the vault anew, and knows what the next beat says of it.
//
// Thread: the loop's. Lifetime: within the loop's.

#include <functional>
#include <optional>

#include "transport/messages/vault.h"
#include "worker/daemon/servant_channel.h"

namespace monarch::daemon {

// The keeper's name for it. No mesh has this number.
inline constexpr RankId kVaultProcess{MeshId(0xffff'fffe), Rank(0)};

class VaultChannel {
 public:
  // `on_report`: report() has changed.
  VaultChannel(EventLoop& loop, const VaultSetup& setup, ServantOrders orders, std::function<void()> on_report);
  VaultChannel(const VaultChannel&) = delete;
  VaultChannel& operator=(const VaultChannel&) = delete;

  ServantChannel& servant() { return servant_; }
  void set_table(VaultTable table);

  const std::optional<VaultReport>& report() const { return report_; }

 private:
  std::function<void()> on_report_;
  std::optional<VaultTable> table_;
  std::optional<VaultReport> report_;
  ServantChannel servant_;
};

}  // namespace monarch::daemon
