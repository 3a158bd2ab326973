#pragma once

// PeerBudget: how many messages each peer of a port may send. Pure. A peer that sends more is heard up to its budget,
// so that a flood of one costs the others nothing but the reading of it; what is dropped is counted by whoever asks.
//
// Thread: a value of the loop's.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "transport/base/time.h"

namespace monarch {

struct PeerAllowance {
  std::uint32_t per_second = 0;  // 0: as many as it likes
  std::uint32_t burst = 0;       // at once, after it was quiet for long enough
};

class PeerBudget {
 public:
  explicit PeerBudget(const PeerAllowance& allowance);

  // False: one too many, to be dropped.
  bool take(std::string_view user_id, Instant now);

 private:
  Duration cost_;                                           // of a message; zero: without limit
  Duration most_;                                           // that a peer may be ahead of its time
  std::map<std::string, Instant, std::less<>> paid_until_;  // as many as the ZAP table has users
};

}  // namespace monarch
