#pragma once

// VaultDesk: sees that each host's vault goes by what the core knows now. It hears from beats where vaults listen and
// which table each goes by, and answers who goes by another one than it should with that; so no table is lost for good.
//
// It tells only what is durable (J1): a vault keeps one step below the newest, and a supervisor that comes back may
// know less than the one before it had decided.
//
// A supervisor that has just come back says nothing until it knows where vaults are (ServantPorts).
//
// Thread: the supervisor's loop. Lifetime: within the core's.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/job/vault_table.h"
#include "supervisor/workers/servant_ports.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/vault.h"

namespace monarch {

struct VaultDeskOptions {
  std::function<bool(HostId, const VaultTable&)> send;  // false: it could not be
  std::function<bool(std::uint64_t ticket)> is_durable;
  std::optional<Instant> returned;  // when this supervisor came back
};

class VaultDesk {
 public:
  // Between two looks at the core, which changes with each commit of a rank.
  static constexpr Duration kFloor = Duration::milliseconds(100);
  // Tables of one host within a heartbeat, while a job starts or moves: what a rank saves then needs them.
  static constexpr int kAtOnce = 3;
  // Of tables, to all hosts together: of a large job each host is told more seldom.
  static constexpr std::uint64_t kBytesPerSecond = 32U << 20U;

  VaultDesk(const JobCore& core, VaultDeskOptions options);

  // Something happened to the core; the ticket of its record.
  void changed(std::uint64_t ticket) {
    ticket_ = ticket;
    stale_ = true;
  }
  // What a beat of this host says of its vault; port 0: that there is none.
  void hear(HostId host, const VaultReport& report, Instant now);

 private:
  struct Vault {
    std::uint64_t incarnation = 0;  // of the worker whose it is
    std::uint64_t sent = 0;         // the version that was sent last; 0: none
    Instant sent_at;
    Instant paid_until;      // what was sent takes that long at one table for each interval
    std::uint64_t look = 0;  // of which the version is that it should go by
    std::uint64_t version = 0;
  };

  // What is told to all.
  struct Look {
    std::uint64_t number = 0;
    std::uint64_t ticket = 0;          // of the newest record of what it shows
    std::vector<std::uint16_t> ports;  // by HostId, of vaults whose worker is still the same
    VaultTable common;
    std::size_t bytes = 0;  // of it
    std::string digest;
    std::shared_ptr<const std::vector<std::vector<VaultGang>>> own;  // by HostId: what that host alone is told
  };

  VaultView view(const Look& look) const;
  void look_again(Instant now);
  void take_over();
  Look take_look();
  Vault& look_at(HostId host);
  Duration interval() const;

  const JobCore& core_;
  VaultDeskOptions options_;
  ServantPorts ports_;
  std::vector<Vault> vaults_;  // by HostId
  Look look_;                  // durable; its number is 0: none yet
  std::optional<Look> next_;   // until it is durable
  std::uint64_t looks_ = 0;
  Instant looked_at_;
  std::uint64_t ticket_ = 0;
  std::vector<std::uint32_t> places_;                               // of the newest look
  std::shared_ptr<const std::vector<std::vector<VaultGang>>> own_;  // its
  bool stale_ = true;
  bool first_port_ = false;  // of a vault, since the last look
};

}  // namespace monarch
