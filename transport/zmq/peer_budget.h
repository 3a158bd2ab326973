#pragma once

// PeerBudget: how many messages each peer of a port may send, and how many bytes of them: a long message costs whoever
// reads it as much as many short ones. Pure. A peer that sends more is heard up to its budget, so that a flood of one
// costs the others nothing but the reading of it; what is dropped is counted by whoever asks.
//
// Thread: a value of the loop's.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "transport/base/time.h"

namespace monarch {

struct PeerAllowance {
  std::uint32_t per_second = 0;  // 0: as many as it likes
  std::uint32_t burst = 0;       // at once, after it was quiet for long enough
  std::uint64_t bytes_per_second = 0;
  std::uint64_t bytes_burst = 0;
};

class PeerBudget {
 public:
  explicit PeerBudget(const PeerAllowance& allowance);

  // False: one too many, to be dropped.
  bool take(std::string_view user_id, std::uint64_t bytes, Instant now);

 private:
  // The generic cell rate algorithm (ITU-T I.371): one instant per peer is all that a token bucket needs.
  struct Rate {
    Rate(std::uint64_t per_second, std::uint64_t burst);
    // Until when so many are paid by somebody who has paid until then; nothing: they are too many.
    std::optional<Instant> paid(Instant until, std::uint64_t count, Instant now) const;
    const std::uint64_t per_second;  // 0: without limit
    const Duration most;             // that a peer may be ahead of its time
  };
  struct Paid {
    Instant messages;
    Instant bytes;
  };
  const Rate messages_;
  const Rate bytes_;
  std::map<std::string, Paid, std::less<>> paid_until_;  // as many as the ZAP table has users
};

}  // namespace monarch
