#pragma once

// LogThread: everything of the daemon that waits for a disk, and the bulk port. It runs the LogWriter, streams output
// to the supervisor as far as the link takes it, passes stacks on, and makes promises durable for the main loop, which
// never waits for a file.
//
// Thread: start, put() and the destructor are the main loop's; the rest is its own thread's. Lifetime: within the keys'
// and the inbox's.

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "transport/base/ids.h"
#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/loop/inbox.h"
#include "transport/loop/loop_thread.h"
#include "transport/zmq/client_link.h"
#include "transport/zmq/curve.h"
#include "worker/core/daemon_core.h"
#include "worker/daemon/log_writer.h"

namespace monarch::daemon {

// Until something is told again that the inbox of another thread of the daemon had no room for.
inline constexpr Duration kTellAgain = Duration::milliseconds(100);

// ---- to the log thread ----

struct RankEnded {
  Incarnation incarnation;
};
struct RankForgotten {
  Incarnation incarnation;
};
struct MakePromise {
  Term term;
};
// The worker's end: nothing of its state stays but logs. Answered by StateRemoved.
struct RemoveState {};
// An answer of the keeper's, for the supervisor: as it is, as soon as the link takes it.
struct SayStacks {
  Incarnation incarnation;
  std::string payload;
};
using ToLog = std::variant<LogSource, RankEnded, RankForgotten, MakePromise, RemoveState, SayStacks>;

// ---- from the log thread ----

struct LogProgress {
  OutputTold told;
  OutputTotals totals;
};
struct PromiseMade {
  Term term;
  Status status;
};
struct StateRemoved {};
// Of a rank that was a standby: what comes from its pipes from now on is its own.
struct PipesTaken {
  Incarnation incarnation;
};
using FromLog = std::variant<LogProgress, PromiseMade, StateRemoved, PipesTaken>;

// Per rank of a host there are a few orders in its life; more than this many waiting means that the disk hangs, and the
// main loop tries again later.
inline constexpr std::size_t kLogOrders = 4'096;
inline constexpr std::size_t kLogReports = 4'096;  // of the main loop's inbox; they are told again

struct LogOptions {
  ClientOptions bulk;
  JobUuid job;
  std::string state_directory;
  std::string log_directory;
  bool copied = false;  // the supervisor keeps a copy of all output
  std::uint64_t seed = 0;
};

using LogThread = LoopThread<ToLog>;
Result<std::unique_ptr<LogThread>> start_log_thread(const LogOptions& options, const CurveKeyPair& keys,
                                                    Inbox<FromLog>& to_main);

}  // namespace monarch::daemon
