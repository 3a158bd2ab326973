#pragma once

// JobState: all that the job's core knows. A value: it follows from the spec and the events alone, and two that came from the
// same events are equal (I6).
//
// Thread: a value.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/first_cause.h"
#include "supervisor/core/launch_failure.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/base/viewer_messages.h"

namespace monarch {

enum class JobPhase : std::uint8_t {
  kNew,           // before JobBegun
  kStarting,      // some mesh has never been ready
  kRunning,       // every mesh has been ready
  kStopping,      // the verdict is known, ranks still live
  kDraining,      // every rank has ended; waiting for the last of their output
  kShuttingDown,  // workers are told to end
  kEnded,
};
constexpr JobPhase monarch_enum_max(JobPhase) { return JobPhase::kEnded; }

enum class HostPhase : std::uint8_t {
  kCold,
  kLaunching,  // the launcher was told
  kLaunched,   // its worker runs and told its key; it has not called back
  kJoined,
  kDestroying,  // lost, or not ending by itself: the launcher was told to destroy its worker
  kEnded,       // the launcher reported its worker's end
  kLost,        // given up: it is not proven that its worker ended
};
constexpr HostPhase monarch_enum_max(HostPhase) { return HostPhase::kLost; }

struct HostState {
  HostPhase phase = HostPhase::kCold;
  std::string public_key;
  std::int32_t keeper_pid = 0;
  std::uint64_t incarnation = 0;
  HostInventory inventory;
  std::string address;        // numeric, as its worker told it; for a host of which the pool knows none
  std::string log_directory;  // on that host: where its ranks' output and error files lie
  Instant launched_at;
  std::string control_endpoint;          // where its worker was told to call back
  std::string call_back_again;           // a command that tries it by hand; may be empty
  std::optional<LaunchFailure> failure;  // why it is out, if that was before the job ran
  bool wedged = false;
  bool shutdown_told = false;
  std::string lost_because;
  // kLaunched: when its hello must have come; kDestroying: when it is given up; after shutdown: when it is destroyed.
  Instant deadline = Instant::never();
};

enum class RankStage : std::uint8_t {
  kPending,   // no process
  kStarting,  // START was decided
  kRunning,
  kStopping,  // a stop was decided
  kEnded,     // see end
  kLost,      // its host is lost
};
constexpr RankStage monarch_enum_max(RankStage) { return RankStage::kLost; }

struct RankState {
  RankStage stage = RankStage::kPending;
  std::int32_t pid = 0;
  RankEnd end;
  Instant ended_at;
  bool ready = false;   // it was, and stays so
  bool reaped = false;  // end is known; its tree may not be empty yet
  bool output_complete = false;
  std::uint64_t stdout_bytes = 0;  // final, once output_complete
  std::uint64_t stderr_bytes = 0;
};

enum class GangPhase : std::uint8_t {
  kWaiting,    // for its hosts, and for the meshes that its own depends on
  kReserving,  // for the ports that its hosts hold for it
  kStarting,
  kRunning,   // every rank was executed
  kFailing,   // a rank failed: survivors are being stopped, ends are collected
  kStopping,  // ordered
  kDone,
  kFailed,
  kStopped,
};
constexpr GangPhase monarch_enum_max(GangPhase) { return GangPhase::kStopped; }

// What one host of a gang holds for it.
struct HostPorts {
  bool held = false;                 // it has answered
  std::vector<std::uint16_t> ports;  // as Reserved has them
};

struct GangState {
  GangPhase phase = GangPhase::kWaiting;
  Generation generation;
  std::vector<HostPorts> ports;               // of each of its hosts, from the first
  bool was_ready = false;                     // every rank of it, in this generation
  std::vector<EndedRank> ends;                // of this generation, in order of arrival
  Instant cause_deadline = Instant::never();  // kFailing: when the first cause is decided
  bool cause_decided = false;
  bool host_lost = false;  // kFailing: one of its hosts
  HostId lost_host;
  Instant stop_deadline = Instant::never();  // when hosts that still hold ranks of it are destroyed
  Duration stop_grace;                       // of the stop that was ordered
  std::int32_t stop_signal = 15;
};

struct MeshState {
  std::vector<RankState> ranks;
  std::vector<GangState> gangs;
};

struct JobState {
  JobPhase phase = JobPhase::kNew;
  JobUuid job;
  Term term;
  std::vector<HostState> hosts;
  std::vector<HostId> slots;  // of the placement: the host of each
  std::vector<MeshState> meshes;
  std::optional<Verdict> verdict;  // known before the job has ended
  bool kill_ordered = false;
  std::uint64_t next_event = 1;
  std::uint64_t last_counter = 0;  // of generations, over the whole job
  Instant start_deadline = Instant::never();
  Instant time_deadline = Instant::never();
  Instant lifetime_deadline = Instant::never();
  Instant lifetime_warning = Instant::never();  // before it
  Instant drain_deadline = Instant::never();
};

// Wanted alive: the stages in which a lease is granted.
inline bool lives(RankStage stage) {
  return stage == RankStage::kStarting || stage == RankStage::kRunning || stage == RankStage::kStopping;
}

inline bool has_ended(GangPhase phase) {
  return phase == GangPhase::kDone || phase == GangPhase::kFailed || phase == GangPhase::kStopped;
}

}  // namespace monarch
