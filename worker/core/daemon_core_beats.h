#pragma once

// BeatSchedule: when the next beat is due, which number it gets, and when each of the last beats was sent, so that an
// answer can be turned into a lease that counts from the send. It is the pure part of the thread that sends the beats;
// what a beat says, and what an answer grants, is daemon_core.h's on another thread, so that a busy daemon still beats.
//
// Numbers rise over all daemons of one worker: the keeper's count of starts is their upper part. An answer to a beat of
// a crashed daemon can therefore never be taken for one to a beat of its successor.
//
// Thread: the beat thread's loop; deterministic, randomness is passed in. Lifetime: a value of the beat thread's.

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "transport/base/time.h"

namespace monarch::daemon {

class BeatSchedule {
 public:
  // How many sends are remembered. An answer to an older beat grants nothing.
  static constexpr std::size_t kWindow = 1024;
  // Beats told to go at once keep this distance, so that a storm of changes cannot empty the window in less than a
  // second.
  static constexpr Duration kFloor = Duration::milliseconds(1);

  BeatSchedule(Duration heartbeat, std::uint32_t daemon_starts);

  // Something changed: the next beat goes as soon as kFloor allows.
  void hurry(Instant now);
  bool due(Instant now) const { return now >= due_; }
  Instant next_due() const { return due_; }

  // A beat goes out now and gets this number. `jitter` in [-1, 1] moves the next one by up to a tenth of the heartbeat.
  std::uint64_t send(Instant now, double jitter);

  // An answer came: the instant at which the beat of that number was sent; nothing if it is unknown or too long ago.
  std::optional<Instant> answered(std::uint64_t seq);
  // The same, and the round trip is measured.
  std::optional<Instant> answered(std::uint64_t seq, Instant now);
  std::uint64_t highest_answered() const { return highest_answered_; }
  // From that beat's send to its first answer; zero before there is one.
  Duration round_trip() const { return round_trip_; }

 private:
  Duration heartbeat_;
  std::uint64_t next_seq_;
  std::uint64_t highest_answered_ = 0;
  Duration round_trip_;
  Instant due_;
  std::optional<Instant> last_sent_;
  std::deque<std::pair<std::uint64_t, Instant>> sent_;  // rising in both
};

}  // namespace monarch::daemon
