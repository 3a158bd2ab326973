#pragma once

// Launcher: puts a worker on a host, reports its end exactly once, destroys it for certain. One implementation for each
// way to reach hosts (launchers.h lists them); what follows from an outcome is the core's to decide.
//
// Thread: the supervisor's loop; an implementation may have threads of its own, whose words arrive by the loop.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/core/health/second_path.h"
#include "supervisor/core/state/events.h"
#include "transport/base/ids.h"
#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/base/unique_fd.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/event_kinds.h"
#include "transport/messages/keeper.h"
#include "transport/messages/launch.h"
#include "transport/messages/viewer.h"
#include "transport/messages/worker.h"

namespace monarch {

// What who gave a host thinks of it. It proves nothing about what runs there.
enum class NodeSight : std::uint8_t {
  kWell,
  kDraining,  // nothing new is to start there
  kDown,      // or the job's no longer: what is there is to go elsewhere
};

struct SeenNode {
  NodeSight sight = NodeSight::kWell;
  std::string words;  // "down: Not responding"
  bool operator==(const SeenNode&) const = default;
};

// None of these within a call of the owner's, except where it is said.
struct LauncherHandlers {
  std::function<void(HostId, LaunchedWorker)> on_launched;
  std::function<void(HostId, LaunchFailure)> on_failed;  // it never told its key; final, retries are over
  std::function<void(HostId, std::string how, bool orderly)> on_ended;
  // For people; on_sending: now and then, how far that is which is sent to hosts that are launched.
  std::function<void(EventKind, Severity, std::string)> say = {};
  std::function<void(std::string)> on_sending = {};
  // What doubt() found.
  std::function<void(HostId, const SecondPath&)> on_seen = {};
  // Of a host on request: which machine it is, where a worker is launched next, and how it came. The name that it has
  // from now on.
  std::function<std::string(HostId, const std::string& machine, std::string how)> on_named = {};
  // Each time, of all that are not well, and those that were not.
  std::function<void(HostId, const SeenNode&)> on_node_seen = {};
  // All hosts are taken back at a time; they are taken, or nothing can be launched any more.
  std::function<void(EndForeseen)> on_foreseen = {};
  std::function<void(StopRequest)> on_over = {};
};

// A host on which an earlier supervisor has launched a worker that nobody saw end.
struct AdoptedHost {
  bool runs = false;  // as far as that one knew
  std::string control_endpoint;
  std::string bulk_endpoint;
};

// A host that is heard, and is asked of another one.
struct LookPeer {
  HostId host;
  std::string suspect_address;  // numeric, as peers reach it
};

// A job that goes on as another one, by who takes its hosts (LaunchFacts::on_preempt).
struct ContinuationOrder {
  std::string job_id;     // of the one that goes on
  std::string directory;  // its folder
  bool again = false;     // a supervisor before this one may have asked
  Instant until;          // then nobody is asked any more
};
class Continuation {
 public:
  virtual ~Continuation() = default;
  // It asks once; who ordered it is told once, and not within this call.
  virtual void ask() = 0;
};

class Launcher {
 public:
  // The batch system's number of the job that goes on. kUnsupported: it is refused; kTimeout: nobody answered.
  using OnContinued = std::function<void(Result<std::uint32_t>)>;

  virtual ~Launcher() = default;
  // Its endpoints have the right ports, and any address.
  virtual void launch(HostId host, const Bootstrap& bootstrap) = 0;
  virtual void destroy(HostId host) = 0;

  virtual void adopt(HostId, const AdoptedHost&) {}
  // All hosts of an earlier supervisor's are adopted, and the job begins or goes on.
  virtual void begin() {}
  // The next launch on this host looks at it before anything is started there.
  virtual void check_first(HostId) {}

  // Its daemon has this number, and has said hello.
  virtual void on_greeted(HostId, std::int32_t /*daemon_pid*/) {}
  // The worker's last word: nothing of it is left but itself, and it leaves.
  virtual void on_goodbye(HostId, bool /*orderly*/) {}
  // It was told that what runs on its machine is to end.
  virtual void on_warned(HostId) {}
  // Of the guard: what it keeps, what became of that, and that it has gone.
  virtual void on_hello(const KeeperHello&) {}
  virtual void on_changed(const RankReport&) {}
  virtual void on_guard_lost() {}

  // Looks by other ways at a host whose beats are late; until it is heard again, or given up.
  virtual void doubt(HostId, const std::vector<LookPeer>&) {}
  virtual void stop_doubting(HostId) {}

  // Who launches for us has come, over a connection whose peer was checked.
  virtual Status take(UniqueFd) { return Error{ErrorCode::kUnsupported, "this supervisor launches its hosts itself"}; }
  // It is there, and nothing is asked of it now: it may be released.
  virtual bool has_idle_helper() const { return false; }
  virtual void release_helper(const std::string& /*reason*/) {}

  // Nothing: the hosts are nobody's to take.
  virtual std::unique_ptr<Continuation> continuation(ContinuationOrder, OnContinued) { return nullptr; }
};

}  // namespace monarch
