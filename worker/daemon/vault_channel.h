#pragma once

// VaultChannel: a daemon's end of its host's vault. It has the keeper start one, again whenever it has ended, tells it
// the supervisor's table, and knows what the next beat says of it. A vault that an earlier daemon had started is taken
// over as it is: what it holds is not lost.
//
// Thread: the loop's. Lifetime: within the loop's.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/keeper.h"
#include "transport/messages/rank.h"
#include "transport/messages/vault.h"
#include "transport/wire/seqpacket_channel.h"
#include "worker/core/keeper_actions.h"

namespace monarch::daemon {

// The keeper's name for it. No mesh has this number.
inline constexpr RankId kVaultProcess{MeshId(0xffff'fffe), Rank(0)};

class VaultChannel {
 public:
  struct Handlers {
    std::function<void(const Incarnation&, const KeeperSpawn&, std::vector<UniqueFd> descriptors)> spawn;
    std::function<void(const Incarnation&)> forget;  // it has ended, and the keeper need not tell of it again
    std::function<void()> on_report;                 // report() has changed
  };

  VaultChannel(EventLoop& loop, VaultSetup setup, Handlers handlers)
      : loop_(loop), setup_(std::move(setup)), handlers_(std::move(handlers)) {}
  VaultChannel(const VaultChannel&) = delete;
  VaultChannel& operator=(const VaultChannel&) = delete;
  ~VaultChannel();

  // Once. `runs`: the keeper keeps one already, and tells of it next.
  void begin(bool runs);
  // What the keeper says of its process.
  void on_process(const RankReport& report);
  void set_table(VaultTable table);
  // No other one is started from here on.
  void leave();

  const std::optional<VaultReport>& report() const { return report_; }

 private:
  void spawn();
  void spawn_later();
  void connect();
  void connect_later();
  void on_frame(const Frame& frame);
  void on_closed();
  template <class Message>
  void send(const Message& message);

  EventLoop& loop_;
  const VaultSetup setup_;
  const Handlers handlers_;
  std::unique_ptr<SeqpacketChannel> channel_;
  std::optional<VaultTable> table_;
  std::optional<VaultReport> report_;
  bool runs_ = false;
  std::optional<Generation> generation_;  // of the one that this daemon had started last, or found
  bool leaving_ = false;
  bool told_ = false;  // that it cannot be reached
  Instant started_;
  Duration pause_;  // before the next start
  TimerId spawn_timer_ = 0;
  TimerId connect_timer_ = 0;
};

}  // namespace monarch::daemon
