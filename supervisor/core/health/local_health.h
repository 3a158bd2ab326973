#pragma once

// LocalHealth: how far this supervisor may trust its own judgement of others. Who is late itself, waits for its own
// disk, was stopped, or doubts many at once, gives all others more time (Lifeguard, Dadgar et al., 2018). Leases stay
// as they are, so what is put off is recovery, never safety.
//
// Thread: a value.

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/base/time.h"

namespace monarch {

class LocalHealth {
 public:
  static constexpr std::uint32_t kMostScore = 8;
  // However sick it is, nobody gets more than this, or what the spec says if that is more.
  static constexpr Duration kLongest = Duration::seconds(30);

  explicit LocalHealth(Duration heartbeat) : heartbeat_(heartbeat) {}

  // A timer ran so long after it was due.
  void ran_late(Duration by, Instant now);
  // A write of the journal took so long to be on the disk.
  void wrote(Duration took, Instant now);
  // Nothing ran for longer than a heartbeat.
  void stood_still(Instant now);
  // How many of all hosts are suspected now.
  void doubts(std::size_t suspected, std::size_t hosts);
  // Time passes: a heartbeat without a sign of trouble takes one off.
  void turn(Instant now);

  // 0: well.
  std::uint32_t score() const;
  // `limit` × (1 + score), within kLongest.
  Duration stretched(Duration limit) const;

 private:
  enum class Sign : std::uint8_t { kLate, kDisk, kStoodStill };

  void count(Sign sign, Instant now);

  Duration heartbeat_;
  std::uint32_t strikes_ = 0;
  bool doubts_many_ = false;
  std::array<Instant, 3> counted_at_{};  // each sign once a heartbeat
  Instant well_since_;
};

}  // namespace monarch
