#pragma once

// LinkCounters: what happened at one bound port, by name, so that nobody is dropped unseen. A plain value; who shows it
// is for status and metrics.
//
// Thread: values; PublishedCounters passes them from one thread to another.

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/zmq/monitor.h"

namespace monarch {

struct LinkCounters {
  // From libzmq's monitor.
  std::uint64_t accepted = 0;
  std::uint64_t handshaken = 0;
  std::uint64_t auth_refused = 0;     // a key that is not of this job
  std::uint64_t protocol_errors = 0;  // no CURVE, a wrong server key, a malformed command
  std::uint64_t silent = 0;           // said nothing until the interval ended, or left before the handshake did
  std::uint64_t disconnected = 0;
  // Of messages, from us.
  std::uint64_t messages = 0;      // handed on
  std::uint64_t oversize = 0;      // above the port's limit; far above it libzmq disconnects without a word
  std::uint64_t malformed = 0;     // no frame, or too many
  std::uint64_t flooded = 0;       // beyond what its sender may say
  std::uint64_t hoarded = 0;       // connections that were ended since too much of them lay here unread
  std::uint64_t unidentified = 0;  // no User-Id: cannot happen while the ZAP handler lives
  std::uint64_t named_itself = 0;  // chose its own routing id, which our links never do
  std::uint64_t sends_gone = 0;    // to a link that the ROUTER no longer holds
  std::uint64_t sends_full = 0;    // to a link whose queue is full

  // Connections of which libzmq said nothing further: junk bytes, or still shaking hands.
  std::uint64_t junk() const;

  void count(MonitorEvent event);
  // As `status` shows them: "control.accepted" and so on, of a port called "control".
  std::vector<std::pair<std::string, std::uint64_t>> named(std::string_view port) const;
};

// The counters of a port that another thread serves.
class PublishedCounters {
 public:
  void put(const LinkCounters& counters);
  LinkCounters get() const;  // each number is one that was put; two of them may be of neighbouring moments

 private:
  static constexpr std::size_t kNumbers = sizeof(LinkCounters) / sizeof(std::uint64_t);
  std::array<std::atomic<std::uint64_t>, kNumbers> numbers_{};
};

}  // namespace monarch
