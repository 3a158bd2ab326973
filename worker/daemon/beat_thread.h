#pragma once

// BeatThread: sends the beats, and everything else that goes over the control port. It has a loop, a context and a
// priority of its own, and sends what it was last given also while the main loop is busy or hung: the beat then tells
// how long. It touches no file, not even the log, so that a stuck disk cannot silence a healthy host; what there is to
// say goes to the main loop, which logs.
//
// It decides nothing: frames are decoded, an answer is given the send time of its beat, and the core fences the rest.
//
// Thread: start, put() and the destructor are the main loop's; the rest is its own thread's. Lifetime: within the
// keys', the inbox's and the time stamp's.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "transport/base/host_pressure.h"
#include "transport/base/ids.h"
#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/loop/inbox.h"
#include "transport/loop/loop_thread.h"
#include "transport/messages/rank.h"
#include "transport/messages/worker.h"
#include "transport/wire/frame.h"
#include "transport/zmq/client_link.h"
#include "transport/zmq/curve.h"
#include "worker/core/daemon_core.h"

namespace monarch::daemon {

// The main loop's last turn, in nanoseconds since boot: the one value that two threads share.
using TurnStamp = std::atomic<std::int64_t>;

// ---- from the beat thread ----

struct LinkUp {};
struct LinkDown {};
struct LinkRefused {
  Error why;
};
// Since the last one: what could not be decoded, and what the main loop had no room for.
struct FramesDropped {
  std::uint64_t malformed = 0;
  std::uint64_t overflow = 0;
  std::string last_malformed;
};
using FromBeat = std::variant<FrameHeard, LinkUp, LinkDown, LinkRefused, FramesDropped>;

// ---- to the beat thread ----

// What the next beat says; `at_once`: it does not wait until it is due.
struct NextBeat {
  BeatContent content;
  bool at_once = false;
};
// What Hello says from now on; `again`: it goes before the next beat, as it does on each new link.
struct HelloContent {
  Hello hello;
  bool again = false;
};
// Once, if there is a link. The last one is sent before the thread ends, or given up.
struct SendFrame {
  Frame frame;
  bool last = false;
};
using ToBeat = std::variant<NextBeat, HelloContent, SendFrame>;

inline constexpr std::size_t kBeatOrders = 1'024;  // that wait; more: the sender tries again later
inline constexpr std::size_t kBeatFrames = 256;    // of the main loop's inbox; more are dropped and counted

struct BeatOptions {
  ClientOptions control;
  JobUuid job;
  Duration heartbeat;
  std::uint32_t daemon_starts = 1;
  std::uint64_t seed = 0;  // of the jitter
};

using BeatThread = LoopThread<ToBeat>;
Result<std::unique_ptr<BeatThread>> start_beat_thread(const BeatOptions& options, const CurveKeyPair& keys,
                                                      const TurnStamp& main_turn, Inbox<FromBeat>& to_main);

}  // namespace monarch::daemon
