#pragma once

// PostChannel: what a daemon and its host's post say to each other. The daemon tells the supervisor's roster, to each
// start of the post anew, and the ends of ranks as its keeper tells them; it knows what the next beat says of the post.
//
// Thread: the loop's. Lifetime: within the loop's.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "transport/messages/post.h"
#include "transport/messages/rank.h"
#include "worker/daemon/servant_channel.h"

namespace monarch::daemon {

// The keeper's name for it. No mesh has this number.
inline constexpr RankId kPostProcess{MeshId(0xffff'fffd), Rank(0)};

class PostChannel {
 public:
  // `on_report`: report() has changed.
  PostChannel(EventLoop& loop, const PostSetup& setup, ServantOrders orders, std::function<void()> on_report);
  PostChannel(const PostChannel&) = delete;
  PostChannel& operator=(const PostChannel&) = delete;

  ServantChannel& servant() { return servant_; }
  // Something of the supervisor's, as it came. A Roster is told to each start of the post.
  void pass_on(std::uint16_t type, std::string payload);
  // What the keeper says of a rank's process.
  void on_rank(const RankReport& report);

  const std::optional<PostReport>& report() const { return report_; }

 private:
  JobUuid job_;
  std::function<void()> on_report_;
  std::optional<Frame> roster_;
  std::optional<PostReport> report_;
  std::string before_;  // how the one before it has ended
  ServantChannel servant_;
};

}  // namespace monarch::daemon
