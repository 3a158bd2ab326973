#pragma once

// JobState: all that the job's core knows. A value: it follows from the spec and the events alone, and two that came
// from the same events are equal (I6).
//
// Thread: a value.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/state/claim_state.h"
#include "supervisor/core/state/crew.h"
#include "supervisor/core/state/drill_watch.h"
#include "supervisor/core/state/first_cause.h"
#include "supervisor/core/state/foreseen_end.h"
#include "supervisor/core/state/gang_commits.h"
#include "supervisor/core/state/launch_failure.h"
#include "supervisor/core/state/launch_times.h"
#include "supervisor/core/state/ledger.h"
#include "supervisor/core/state/past_places.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/launch.h"
#include "transport/messages/rank.h"
#include "transport/messages/viewer.h"

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

inline bool is_cold(HostPhase phase) { return phase == HostPhase::kCold; }
inline bool is_launching(HostPhase phase) { return phase == HostPhase::kLaunching; }
inline bool is_launched(HostPhase phase) { return phase == HostPhase::kLaunched; }
inline bool is_joined(HostPhase phase) { return phase == HostPhase::kJoined; }
inline bool is_destroying(HostPhase phase) { return phase == HostPhase::kDestroying; }
inline bool is_out(HostPhase phase) { return phase == HostPhase::kEnded || phase == HostPhase::kLost; }

// May a host hold ranks?
enum class HostStanding : std::uint8_t {
  kGood,
  kQuarantined,  // on evidence about the host alone
  kDrained,      // by an operator
};
constexpr HostStanding monarch_enum_max(HostStanding) { return HostStanding::kDrained; }

// A rank's death, as the first cause of its gang's, that tells of the host rather than of the program.
struct Suspicion {
  RankId rank;
  Instant at;
};

// How far a spare is warmed (spares.prepare), by this worker.
enum class PrepareStage : std::uint8_t {
  kNone,  // not begun
  kRunning,
  kPrepared,
  kUnprepared,  // it failed, or was ended
};
constexpr PrepareStage monarch_enum_max(PrepareStage) { return PrepareStage::kUnprepared; }

struct Preparation {
  PrepareStage reached = PrepareStage::kNone;
  Instant began;
  std::string ended_because;  // by us
};

struct HostState {
  HostPhase phase = HostPhase::kCold;
  std::string public_key;
  std::int32_t keeper_pid = 0;
  std::uint64_t incarnation = 0;
  std::uint32_t daemon_starts = 0;  // of this worker, that people were told of; 0: none
  HostInventory inventory;
  std::string address;        // numeric, as its worker told it; for a host of which the pool knows none
  std::string log_directory;  // on that host: where its ranks' output and error files lie
  Instant launched_at;
  Instant answered_at;           // its worker had told its key
  LaunchTimes times;             // until then
  std::string control_endpoint;  // where its worker was told to call back
  std::string bulk_endpoint;
  std::string call_back_again;           // a command that tries it by hand; may be empty
  std::optional<LaunchFailure> failure;  // why it is out, if that was before the job ran
  bool wedged = false;
  bool shutdown_told = false;
  bool failing = false;       // kJoined: its keeper is gone, and its end is about to be proven
  bool doubted = false;       // kJoined: it is suspected, and takes nobody's place until it is heard again
  bool launch_again = false;  // kDestroying: it was being launched when the supervisor ended
  std::string lost_because;
  // kLaunched: when its hello must have come; kDestroying: when it is given up; after shutdown: when it is destroyed.
  Instant deadline = Instant::never();
  Duration late_before;  // as of JobState; of kLaunched
  HostStanding standing = HostStanding::kGood;
  bool unproven = false;               // it was given up, and its worker may still live
  bool wanted = false;                 // by an operator's undrain, once the end of its worker is proven
  std::uint32_t losses = 0;            // how often it was lost since it was last of use
  Instant cold_at = Instant::never();  // kEnded, kLost: when it may be launched again
  Instant fence;                       // a rank of it that is not proven to have ended may act until then
  std::vector<Suspicion> suspicions;
  std::vector<Instant> lost_at;  // while it was connected, within the window of `reallocate`
  std::string name;              // of a host on request: the machine that it is now; empty: none
};

// What ranks wrote last on one host.
struct HostWords {
  std::vector<Incarnation> owed;  // their generations are over, and the rest of what they wrote is on its way
  Instant until;                  // it is waited for
};

struct RankState {
  RankEnd end;
  Instant ended_at;
  bool ending = false;             // its exit has begun: it can be long at it
  bool ready = false;              // it was, and stays so
  bool reaped = false;             // end is known; its tree may not be empty yet
  std::uint64_t stdout_bytes = 0;  // final, once its output is complete
  std::uint64_t stderr_bytes = 0;
  std::optional<std::uint64_t> step;  // that it named last, at its end
  bool suspended = false;             // by `monarch signal`; until the same lets it go on
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
  kParked,  // no host is left for it and the job goes on without it; it may return
  kIdle,    // nobody has claimed it, and nothing of it is wanted
};
constexpr GangPhase monarch_enum_max(GangPhase) { return GangPhase::kIdle; }

inline bool is_waiting(GangPhase phase) { return phase == GangPhase::kWaiting; }
inline bool is_reserving(GangPhase phase) { return phase == GangPhase::kReserving; }
inline bool is_running(GangPhase phase) { return phase == GangPhase::kRunning; }
inline bool is_failing(GangPhase phase) { return phase == GangPhase::kFailing; }
inline bool is_parked(GangPhase phase) { return phase == GangPhase::kParked; }
inline bool is_idle(GangPhase phase) { return phase == GangPhase::kIdle; }
// All of its work is done, or none of it will be, and the job goes on without it.
inline bool is_through(GangPhase phase) { return phase == GangPhase::kDone || is_parked(phase); }
inline bool waits(GangPhase phase) { return phase == GangPhase::kWaiting || phase == GangPhase::kReserving; }
inline bool runs(GangPhase phase) { return phase == GangPhase::kStarting || phase == GangPhase::kRunning; }

inline bool has_ranks(GangPhase phase) { return runs(phase) || is_failing(phase) || phase == GangPhase::kStopping; }

// The same rank, at the same step, again.
struct Crash {
  RankId rank;
  std::uint64_t step = 0;
  std::uint32_t count = 1;
};

struct GangState {
  GangPhase phase = GangPhase::kWaiting;
  bool was_ready = false;                     // every rank of it, in this generation
  std::vector<EndedRank> ends;                // of this generation, in order of arrival
  Instant cause_deadline = Instant::never();  // kFailing: when the first cause is decided
  bool cause_decided = false;
  bool host_lost = false;  // kFailing: one of its hosts
  HostId lost_host;
  bool ever_ready = false;         // every rank of it, in any generation
  std::vector<HostId> fenced_by;   // kWaiting: hosts on which the generation before may still act
  Instant not_before;              // kWaiting: back-off, and the fence of what may still act
  std::optional<Verdict> failure;  // of the generation before: what the job fails with if no other can start
  std::vector<Instant> failures;   // that count against supervision.restart
  std::uint32_t restarts = 0;      // in all
  Instant failed_at;               // the last time
  bool out_of_memory = false;      // one such end was retried, and no progress came since
  std::optional<Crash> crash;      // the last, where its program names steps
  Instant progress_deadline = Instant::never();  // to be ready by; then: when being so for so long is progress
  Duration late_before;                          // as of JobState; of the time to be ready
  std::string asked;                             // kStopping: by whom, to be started again
  std::optional<RankId> hung;                    // kFailing: because this one made no progress
  std::string hung_because;
  // The highest step that a rank of the generations before had named last; none: its program names no steps.
  std::optional<std::uint64_t> furthest;
  std::optional<std::uint64_t> reached;     // the same of this generation, of ranks that have ended or are lost
  Instant started_at;                       // this generation: its START was decided
  std::optional<std::uint64_t> first_step;  // that a rank of this generation has named
  bool caught_up = false;                   // one of this generation is past `furthest`
  Ledger time;                              // where it went, over all its generations
  GangCommits commits;                      // over all its generations
};

// A gang without a place, on spares.
struct StandbyState {
  std::uint32_t failures = 0;   // since it was last at its gate
  Instant not_before;           // the end of its back-off
  std::optional<GangId> place;  // whose it has, and whose its members become with the next START
};

struct MeshState {
  std::vector<RankState> ranks;
  std::vector<GangState> gangs;
};

// Where the job is between its begin and its end. At each deadline that others have, `late_before` is how late the
// supervisor was in all when it was set.
struct JobCourse {
  JobPhase phase = JobPhase::kNew;
  std::optional<Verdict> verdict;  // known before the job has ended
  bool kill_ordered = false;
  Instant start_deadline = Instant::never();
  Instant time_deadline = Instant::never();
  Instant lifetime_deadline = Instant::never();
  Instant lifetime_warning = Instant::never();  // before it
  Instant drain_deadline = Instant::never();
  std::optional<ForeseenEnd> foreseen;           // since then nothing is started
  Instant foreseen_deadline = Instant::never();  // when the job is stopped for it
  Duration late_before;                          // of start_deadline
};

// When it is said again for whom a gang waits.
struct GangReminder {
  Instant since;  // it waits, or is parked, while the job runs
  Instant at = Instant::never();
};

struct ReminderState {
  std::vector<std::vector<GangReminder>> gangs;
  Instant held_since;  // some rank was left alone on purpose
  Instant hold_at = Instant::never();
};

// By `monarch hold`, over generations.
struct HeldRanks {
  std::vector<std::vector<Rank>> held;  // of each mesh, in order
  std::string by;                       // who asked for it last, or stopped a rank by a signal
};

// Of hosts on request.
struct HostRequests {
  std::uint32_t refusals = 0;  // since one was granted
  Instant no_request_before;   // after them
};

// Of a supervisor that came back.
struct AdoptionState {
  Instant returned_at;          // the last time; in its first term: nothing
  bool adopting = false;        // hosts of before are awaited; until it is told which have spoken
  std::vector<HostId> awaited;  // these; in order
  std::vector<HostId> unheard;  // lost before they spoke
};

struct JobState : JobCourse, HostRequests, AdoptionState {
  JobUuid job;
  Term term;
  std::vector<HostState> hosts;
  std::vector<HostId> slots;  // of the placement: the host of each
  std::vector<MeshState> meshes;
  std::vector<std::vector<Crew>> crews;  // of each mesh, those behind the spec's included
  HeldRanks holds;
  ReminderState reminders;
  std::vector<HostWords> last_words;                // of each host
  std::vector<Preparation> preparations;            // of each host; empty: spares are not warmed
  std::vector<std::vector<StandbyState>> standbys;  // of each mesh
  ClaimState claims;
  std::uint64_t next_event = 1;
  std::vector<Instant> reallocations;  // that count against supervision.reallocate
  std::string boot_id;                 // of the machine whose boot clock all times here are of
  Duration late;                       // how long the supervisor did not run, in all
  DrillWatch drill;
};

// A supervisor came back, and it has not spoken since.
inline bool is_awaited(const JobState& state, HostId host) {
  return std::binary_search(state.awaited.begin(), state.awaited.end(), host);
}

// On the way to its first word.
inline bool is_coming(const HostState& host) {
  return host.phase == HostPhase::kLaunching || host.phase == HostPhase::kLaunched || host.launch_again;
}

// May ranks be put there, now or soon?
inline bool may_serve(const HostState& host) {
  if (host.standing != HostStanding::kGood) return false;
  return is_coming(host) || (host.phase == HostPhase::kJoined && !host.wedged && !host.shutdown_told && !host.failing);
}

inline const Crew& crew_in(const JobState& state, MeshId mesh, GangId gang) {
  return state.crews[mesh.value()][gang.value()];
}

inline PrepareStage prepare_stage(const JobState& state, HostId host) {
  return state.preparations.empty() ? PrepareStage::kNone : state.preparations[host.value()].reached;
}

// Of a gang that failed and is to be started again: until its next generation runs.
inline bool recovers(const GangState& gang) { return gang.failure.has_value(); }

// What ran there may still act: the gang's next generation waits for it.
inline void fence_by(GangState& gang, HostId host) {
  if (std::find(gang.fenced_by.begin(), gang.fenced_by.end(), host) == gang.fenced_by.end())
    gang.fenced_by.push_back(host);
}

inline bool has_ended(GangPhase phase) {
  return phase == GangPhase::kDone || phase == GangPhase::kFailed || phase == GangPhase::kStopped;
}

}  // namespace monarch
