#pragma once

// What a daemon and its supervisor say to each other about the host, over the control port.
//
// Thread: values.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/host_pressure.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/message.h"
#include "transport/messages/post.h"
#include "transport/messages/rank.h"
#include "transport/messages/vault.h"

namespace monarch {

// ---- daemon → supervisor ----

// First message of every new link, and the answer to a resync. Names what the worker is.
struct Hello {
  std::uint32_t host = 0;
  std::string host_name;
  std::uint64_t incarnation = 0;  // of the worker (its keeper); random
  std::string boot_id;
  std::int32_t keeper_pid = 0;
  std::int32_t daemon_pid = 0;
  std::uint32_t daemon_starts = 1;  // 2 and more: the keeper had to start it again
  std::string version;
  Term promised;          // the highest term it has promised
  std::string door = {};  // of the host's post, which may not serve yet: a path there; empty: it has none
};
MONARCH_MESSAGE(Hello, 1, host, host_name, incarnation, boot_id, keeper_pid, daemon_pid, daemon_starts, version,
                promised, door)

// How all stands on a host.
struct BeatContent {
  std::vector<RankReport> ranks;           // all that the keeper knows of, ended ones until they are forgotten
  std::uint64_t output_dropped_bytes = 0;  // not streamed; read again from the file
  std::uint64_t output_lost_bytes = 0;     // in all: no file took them
  std::string output_failure = {};         // why none takes them now, with the file; empty: all is well
  std::optional<HostPressure> pressure;    // nothing: its kernel does not count it
  std::optional<VaultReport> vault;        // nothing: this host has none, or it does not serve yet
  std::optional<PostReport> post;          // the same
  std::uint32_t warnings = 0;              // how often who gave this host has foretold the end of what runs there
};
MONARCH_FIELDS(BeatContent, ranks, output_dropped_bytes, output_lost_bytes, output_failure, pressure, vault, warnings,
               post)

struct Beat {
  std::uint64_t seq = 0;
  Instant sent_at;    // worker's boot clock
  Duration loop_age;  // since the daemon's main loop last turned
  std::uint64_t acked_seq = 0;
  Duration round_trip;  // of the last beat that was acknowledged, on the worker's clock; zero: none yet
  BeatContent content;
};
MONARCH_MESSAGE(Beat, 2, seq, sent_at, loop_age, acked_seq, round_trip, content)

// The daemon's last word: of this worker nothing is left on its host but the daemon and its keeper, which are about to
// leave. Said once and not repeated: who does not hear it has to look.
struct Goodbye {
  std::uint64_t incarnation = 0;  // of the worker, as in Hello
  bool orderly = true;            // false: its keeper was killed, and the daemon killed what that kept
};
MONARCH_MESSAGE(Goodbye, 4, incarnation, orderly)

// A daemon's, at once: its keeper ended unexpectedly, and it is about to kill what that kept. Said once: who does not
// hear it hears the end.
struct KeeperGone {
  std::uint64_t incarnation = 0;  // of the worker, as in Hello
};
MONARCH_MESSAGE(KeeperGone, 5, incarnation)

// ---- supervisor → daemon ----

struct Ack {
  std::uint64_t seq = 0;             // of the beat it answers
  Duration lease;                    // counted from that beat's sent_at
  std::vector<Incarnation> granted;  // whose lease is renewed: those wanted here
  std::vector<Incarnation> forget;   // ended ones whose report was journalled
  bool say_hello = false;            // resync: the supervisor does not know this link
};
MONARCH_MESSAGE(Ack, 16, seq, lease, granted, forget, say_hello)

// Kill what is left, remove the worker's state but for logs, exit 0.
struct Shutdown {
  std::string reason;
};
MONARCH_MESSAGE(Shutdown, 21, reason)

}  // namespace monarch
