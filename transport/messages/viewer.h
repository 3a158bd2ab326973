#pragma once

// The messages between a viewer (run, attach, logs, status, stop …) and the supervisor, over a SEQPACKET socket whose
// peer's uid was checked. A viewer opens one connection for events and requests, and a second one for output if it
// wants output, so that a flood of the one never delays the other.
//
// Thread: values.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/exit_code.h"
#include "transport/base/host_pressure.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/event_kinds.h"
#include "transport/messages/message.h"
#include "transport/messages/output.h"
#include "transport/messages/rank.h"

namespace monarch {

// What an event's words say, for programs: by name, each once.
using EventDetails = std::vector<std::pair<std::string, std::string>>;

// One thing that happened to a job, as `events` shows it and the journal keeps it.
struct JobEvent {
  std::uint64_t number = 0;  // strictly increasing within a job, over all terms; 0: in no journal
  WallTime time;
  Severity severity = Severity::kInfo;
  EventKind kind = {};
  std::string host;  // empty: none
  std::string mesh;
  std::optional<std::uint32_t> rank;
  std::uint64_t generation = 0;  // the counter that users see; 0: none
  std::int32_t pid = 0;          // 0: none
  std::string message;           // one line for people, printable
  EventDetails details;
};
MONARCH_MESSAGE(JobEvent, 96, number, time, severity, kind, host, mesh, rank, generation, pid, message, details)

// What first went wrong. Which fields are set follows from `kind`.
enum class CauseKind : std::uint8_t { kNone, kRank, kHost, kStart, kTimeLimit, kRequest, kInternal };
constexpr CauseKind monarch_enum_max(CauseKind) { return CauseKind::kInternal; }

struct FirstCause {
  CauseKind kind = CauseKind::kNone;
  std::string host;
  std::string mesh;
  std::optional<std::uint32_t> rank;       // mesh-wide
  std::optional<std::uint32_t> gang;       // set with `gang_rank` where the mesh has more than one gang
  std::optional<std::uint32_t> gang_rank;  // RANK within the gang
  std::uint64_t generation = 0;
  std::int32_t pid = 0;
  RankEnd end;
  // "exit code 7", "killed by SIGSEGV (core dumped)", "could not execute /bin/nonesuch: No such file …".
  std::string summary;
  std::string rule;             // the rule that fired and what it does: "restart.max 0: fail"
  std::string stderr_tail;      // last lines, raw bytes
  std::uint32_t secondary = 0;  // later ends in the same gang
};
MONARCH_FIELDS(FirstCause, kind, host, mesh, rank, gang, gang_rank, generation, pid, end, summary, rule, stderr_tail,
               secondary)

// A host that did not start, or was lost before the job ran.
struct HostFailure {
  std::string host;
  std::string kind;   // "refused", "host key changed", …: the list is in launch_failure.cc of supervisor/core
  std::string phase;  // "connect", "authenticate", "start", "call back", …
  std::int64_t elapsed_milliseconds = 0;  // since its launch began
  std::string message;
  std::string again;  // a command that reproduces it; may be empty
};
MONARCH_FIELDS(HostFailure, host, kind, phase, elapsed_milliseconds, message, again)

enum class Outcome : std::uint8_t { kSucceeded, kFailed, kStopped, kInterrupted };
constexpr Outcome monarch_enum_max(Outcome) { return Outcome::kInterrupted; }

struct Verdict {
  Outcome outcome = Outcome::kFailed;
  std::int32_t exit_code = kExitInternal;
  FirstCause cause;
  std::string reason;  // one sentence
  WallTime started;
  WallTime ended;
  std::vector<std::string> left_behind;       // hosts of which it is not proven that nothing of the job lives there
  std::vector<HostFailure> failed_hosts;      // in the order of the pool, spares and replaced ones too
  std::uint32_t failed_hosts_untold = 0;      // more than a record holds
  std::vector<std::string> lost_output = {};  // a line for each host whose disk did not take all that its ranks wrote
};
MONARCH_MESSAGE(Verdict, 99, outcome, exit_code, cause, reason, started, ended, left_behind, failed_hosts,
                failed_hosts_untold, lost_output)

struct RankStatus {
  std::uint32_t rank = 0;
  std::string phase;  // pending starting running suspended stopping done failed lost restarting waiting parked
  std::string host;
  std::uint64_t generation = 0;
  std::int32_t pid = 0;
  std::string end;  // "exit code 0"; empty while it lives
  bool ready = false;
  RankProgress progress;
  std::int64_t progress_age_milliseconds = -1;  // since the rank's last word; -1: it never spoke
  std::string standstill;  // stopped traced frozen waiting; empty: it stands still by nothing of these
  bool watched = true;     // false: somebody holds it, and it is not watched for hangs
};
MONARCH_FIELDS(RankStatus, rank, phase, host, generation, pid, end, ready, progress, progress_age_milliseconds,
               standstill, watched)

struct GangStatus {
  std::string phase;             // as a mesh's
  std::uint64_t generation = 0;  // 0: it was never started
  std::uint64_t restarts = 0;    // in all: after failures, and as it was asked
  std::uint64_t failures = 0;    // that count against supervision.restart
};
MONARCH_FIELDS(GangStatus, phase, generation, restarts, failures)

// supervision.restart, of a mesh's gangs.
struct RestartBudget {
  std::optional<std::uint32_t> max = {};  // nothing: unlimited
  std::int64_t window_milliseconds = 0;
};
MONARCH_FIELDS(RestartBudget, max, window_milliseconds)

// The newest checkpoint that all ranks of a gang have committed.
struct CommittedStatus {
  std::uint32_t gang = 0;
  std::uint64_t step = 0;
  std::uint64_t generation = 0;
};
MONARCH_FIELDS(CommittedStatus, gang, step, generation)

// A gang without a place.
struct StandbyStatus {
  std::string phase;  // waiting starting ready taken stopping
  std::vector<std::string> hosts;
};
MONARCH_FIELDS(StandbyStatus, phase, hosts)

// Idle slots that a process has claimed.
struct ClaimStatus {
  std::uint64_t claim = 0;
  std::string name;  // as it calls them
  std::string host;  // where it is
  std::vector<std::uint32_t> ranks;
};
MONARCH_FIELDS(ClaimStatus, claim, name, host, ranks)

struct MeshStatus {
  std::string name;
  std::vector<std::pair<std::string, std::uint32_t>> dims;
  std::string phase;  // waiting starting running stopping done failed restarting parked
  std::vector<RankStatus> ranks;
  bool sidecar = false;
  std::vector<GangStatus> gangs = {};
  RestartBudget restart = {};                   // of each of them
  std::vector<CommittedStatus> committed = {};  // gangs that have one
  std::vector<StandbyStatus> standby = {};
  std::vector<std::pair<std::string, std::int64_t>> rank_milliseconds = {};  // where its time went, by bin
  std::vector<ClaimStatus> claims = {};
  bool trusts_job = false;  // its ranks run what any rank of the job sends
};
MONARCH_FIELDS(MeshStatus, name, dims, phase, ranks, sidecar, gangs, restart, committed, standby, rank_milliseconds,
               claims, trusts_job)

struct HostStatus {
  std::string name;
  std::string phase;  // cold launching joining ready suspect lost ended on request queued
  std::string role;   // rank | spare
  std::int32_t keeper_pid = 0;
  std::uint32_t daemon_starts = 0;
  std::int64_t silent_milliseconds = 0;
  std::int64_t round_trip_microseconds = 0;
  TalkDrops talk_drops;                    // of all its ranks
  std::string standing = {};               // empty: good | drained | quarantined
  std::string standing_because = {};       // "asked by monarch drain, pid 4711"
  std::int64_t returns_milliseconds = -1;  // until it may be launched again; below 0: not by itself
  std::int64_t held_milliseconds = -1;     // it is silent with many others, and is not given up before; below 0: no
  std::string preparation = {};            // by spares.prepare; empty: none | preparing | prepared | unprepared
  std::optional<HostPressure> pressure = {};
  std::string shortage = {};  // what of that is worth a word: "short of memory (63 % of the time)"
  std::string door = {};      // of its post, a path there; empty: it has none, or it does not answer
};
MONARCH_FIELDS(HostStatus, name, phase, role, keeper_pid, daemon_starts, silent_milliseconds, round_trip_microseconds,
               talk_drops, standing, standing_because, returns_milliseconds, held_milliseconds, preparation, pressure,
               shortage, door)

// The drill that has the job.
struct DrillStatus {
  std::string name;
  std::string drill;  // its id
  std::string who;    // "monarch drill, pid 4711"
  std::int64_t since_milliseconds = 0;
  std::vector<std::uint32_t> open;  // numbers of its faults that are not taken back or recovered from
  bool stopped = false;             // it was told to end
};
MONARCH_FIELDS(DrillStatus, name, drill, who, since_milliseconds, open, stopped)

struct JobStatus {
  std::string job_id;
  std::string phase;  // starting running stopping ended
  Term term;
  std::int32_t supervisor_pid = 0;  // 0: none is running
  WallTime started;
  std::vector<MeshStatus> meshes;
  std::vector<HostStatus> hosts;
  std::vector<std::pair<std::string, std::uint64_t>> counters;  // of the control plane, by name
  std::optional<Verdict> verdict;
  std::optional<DrillStatus> drill = {};
};
MONARCH_MESSAGE(JobStatus, 98, job_id, phase, term, supervisor_pid, started, meshes, hosts, counters, verdict, drill)

// What a request is answered, where it has no answer of its own.
struct Accepted {
  std::string message;
};
MONARCH_MESSAGE(Accepted, 100, message)

struct Refused {
  std::string message;
};
MONARCH_MESSAGE(Refused, 101, message)

template <class Request>
using AnswerTo = typename Request::Answer;

// ---- viewer → supervisor ----

struct Attach {
  bool output = false;            // this connection carries output, and nothing else
  bool events = false;            // this connection carries events, requests and their answers
  std::uint64_t after_event = 0;  // events up to this number are not sent again
  std::string viewer;             // "run", "attach", …: for the log
};
MONARCH_MESSAGE(Attach, 80, output, events, after_event, viewer)

struct StatusRequest {
  using Answer = JobStatus;
  std::uint64_t unused = 0;
};
MONARCH_MESSAGE(StatusRequest, 81, unused)

// Answered once the post of some host answers, and refused where the job's hosts have none.
struct DoorRequest {
  using Answer = JobStatus;
  std::uint64_t unused = 0;
};
MONARCH_MESSAGE(DoorRequest, 87, unused)

enum class StopHow : std::uint8_t {
  kOrderly,
  kKill,
  kOver,  // in order; who it was for needs it no more, and the job ends with 0
};
constexpr StopHow monarch_enum_max(StopHow) { return StopHow::kOver; }

struct StopRequest {
  using Answer = Accepted;
  StopHow how = StopHow::kOrderly;
  bool interrupted = false;    // by the Ctrl-C of the `run` that started it: exit 130; else 143
  std::int32_t exit_code = 0;  // not 0: the job ends with this one (124 of --timeout, 129 of HUP, …)
  std::string who;             // "monarch stop, pid 4711"
};
MONARCH_MESSAGE(StopRequest, 82, how, interrupted, exit_code, who)

struct SignalRequest {
  using Answer = Accepted;
  std::vector<RankId> ranks;  // empty: all
  std::int32_t number = 0;
  std::optional<SignalTo> to = {};  // nothing: as the spec says
};
MONARCH_MESSAGE(SignalRequest, 83, ranks, number, to)

enum class OperatorWish : std::uint8_t { kRestart, kDrain, kUndrain, kRetry };
constexpr OperatorWish monarch_enum_max(OperatorWish) { return OperatorWish::kRetry; }

// What an operator wants of a job's recovery: `monarch restart`, `drain`, `undrain` and `retry`.
struct OperatorRequest {
  using Answer = Accepted;
  OperatorWish wish = OperatorWish::kRestart;
  std::vector<RankId> ranks;       // kRestart, kRetry: the gangs of these; one rank of each is enough
  std::vector<std::string> hosts;  // kDrain, kUndrain: by what the job calls them
  bool now = false;                // kDrain: what runs there is moved, too
  std::string who;                 // "monarch restart, pid 4711"
};
MONARCH_MESSAGE(OperatorRequest, 84, wish, ranks, hosts, now, who)

// `monarch hold`: these ranks are not watched for hangs until they are released.
struct HoldRequest {
  using Answer = Accepted;
  std::vector<RankId> ranks;
  bool release = false;
  std::string who;  // "monarch hold, pid 4711"
};
MONARCH_MESSAGE(HoldRequest, 92, ranks, release, who)

enum class DrillWhat : std::uint8_t {
  kBegin,   // the drill has the job from here on; asked again, it goes on
  kFault,   // a fault is about to be injected: once this is answered
  kUndone,  // what it did is taken back, or there was nothing to take back
  kEnd,
  kStop,  // by somebody else: nothing more is injected
};
constexpr DrillWhat monarch_enum_max(DrillWhat) { return DrillWhat::kStop; }

// What `monarch drill` does to the job, told before it is done. One drill has a job at a time.
struct DrillNotice {
  using Answer = Accepted;
  DrillWhat what = DrillWhat::kBegin;
  std::string drill;         // its id, drawn by itself; kStop: empty means whichever there is
  std::string name;          // kBegin: of its scenario
  std::string text;          // one line for people; may be empty
  std::uint32_t number = 0;  // kFault, kUndone: from 1, in the order in which they are told
  std::string fault;         // kFault, kUndone: its name
  std::string host;          // of faults of hosts and ranks, by what the job calls it; of a rank it may be empty
  std::string mesh;          // of faults of ranks
  std::optional<std::uint32_t> rank;  // of the mesh
  Duration lasts;                     // kFault; zero: what it does is done
  bool forgiven = false;              // kFault: what follows from it is no evidence against hosts
  Duration lease;                     // kBegin: without another notice for so long the drill counts as ended
  std::string who;                    // "monarch drill, pid 4711"
};
MONARCH_MESSAGE(DrillNotice, 86, what, drill, name, text, number, fault, host, mesh, rank, lasts, forgiven, lease, who)

// What `run` has read for the ranks that the spec's `stdin` names. It is answered once all of them have it; one without
// bytes and end says who gives it, and is answered at once. Asked again, it changes nothing.
struct InputRequest {
  using Answer = Accepted;
  std::uint64_t offset = 0;  // of all that was read
  std::string bytes;         // at most kInputBytes
  bool end = false;          // nothing follows
};
MONARCH_MESSAGE(InputRequest, 85, offset, bytes, end)

// ---- supervisor → viewer (and JobEvent, Verdict and JobStatus) ----

// A piece of output. Header: rank and generation. Pieces may be missing: the viewer reads [what it has, offset) from
// the file `logs/<mesh>/<rank>.<generation>.{out,err}` of the job's directory.
struct ViewerOutput : Output {};
MONARCH_MESSAGE(ViewerOutput, 97, stream, offset, bytes)

// What no file took, when that ended at `offset`.
struct ViewerUnkept : Output {};
MONARCH_MESSAGE(ViewerUnkept, 107, stream, offset, bytes)

}  // namespace monarch
