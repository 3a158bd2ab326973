#include "supervisor/core/health/pace.h"

#include <algorithm>

namespace monarch {

void Pace::want(HostId host) {
  if (queued_.insert(host).second) queue_.push_back(host);
}

std::optional<HostId> Pace::next(Instant now) {
  turn(now);
  while (!queue_.empty() && !queued_.contains(queue_.front())) queue_.pop_front();  // forgotten while it waited
  if (queue_.empty() || under_way_.size() >= window_) return std::nullopt;
  const HostId host = queue_.front();
  queue_.pop_front();
  queued_.erase(host);
  under_way_.insert_or_assign(host, now);
  return host;
}

void Pace::answered(HostId host) {
  if (under_way_.erase(host) > 0) ++window_;
}

void Pace::forget(HostId host) {
  queued_.erase(host);
  under_way_.erase(host);
}

void Pace::turn(Instant now) {
  for (auto host = under_way_.begin(); host != under_way_.end();) {
    if (now < host->second + kInTime) {
      ++host;
      continue;
    }
    if (host->second >= halved_at_) {
      window_ = std::max(window_ / 2, kLeast);
      halved_at_ = now;
    }
    host = under_way_.erase(host);
  }
}

}  // namespace monarch
