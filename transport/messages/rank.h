#pragma once

// What a supervisor orders about ranks, which the daemon passes on to its keeper (all but Start unopened), and what of
// them is told: the values that worker.h's beats and keeper.h's reports are made of. They travel in frames
// (wire/frame.h): the header carries job, term, rank, generation and seq, and whoever receives a message checks those
// first.
//
// Every message of the control plane is idempotent: a lost or repeated one changes nothing that the next beat does not
// mend.
//
// Thread: values.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/report_limits.h"
#include "transport/base/time.h"
#include "transport/messages/message.h"

namespace monarch {

// As the first word of a program: monarch-rank, which the worker has.
inline constexpr std::string_view kActorProgram = "@monarch-rank";

// How a rank's process stands on its host. States only move down this list within one generation.
enum class RankPhase : std::uint8_t {
  kGated,     // forked, waiting at its gate for the first lease; its program has not been executed
  kRunning,   // past the gate: executed
  kStopping,  // a stop was ordered, its tree is not empty yet
  kWedged,    // killed, and something of it is still there after kKillDeadline; nothing may be started in its place
  kEnded,     // reaped, its tree verified empty
};
constexpr RankPhase monarch_enum_max(RankPhase) { return RankPhase::kEnded; }

enum class EndKind : std::uint8_t {
  kNone,         // not ended
  kExited,       // value: the exit code
  kSignaled,     // value: the signal
  kNotExecuted,  // value: the errno of the step that failed; detail says which step on what
  kSetupFailed,  // value: the exit code of the mesh's `setup` on this host, 128+n for a signal; the program was not
                 // executed
};
constexpr EndKind monarch_enum_max(EndKind) { return EndKind::kSetupFailed; }

struct RankEnd {
  EndKind kind = EndKind::kNone;
  std::int32_t value = 0;
  std::string detail;             // kNotExecuted: "exec /bin/nonesuch" or "chdir /data"
  bool after_our_signal = false;  // we had signalled it (stop, kill, lease end) before it ended
  bool out_of_memory = false;     // the kernel's OOM killer took it
  bool core_dumped = false;
};
MONARCH_FIELDS(RankEnd, kind, value, detail, after_our_signal, out_of_memory, core_dumped)

// The program itself never ran.
inline bool was_not_executed(const RankEnd& end) {
  return end.kind == EndKind::kNotExecuted || end.kind == EndKind::kSetupFailed;
}

// What a rank says of itself over its notify socket. The last of it travels with the beats; none of it is journalled.
// A step that a rank has named, and when.
struct StepMark {
  std::uint64_t step = 0;
  Instant at;  // the host's boot clock
  bool operator==(const StepMark&) const = default;
};
MONARCH_FIELDS(StepMark, step, at)

struct RankProgress {
  std::optional<std::uint64_t> step;                         // X_MONARCH_STEP
  std::string phase;                                         // X_MONARCH_PHASE; empty: it never named one
  std::string status;                                        // STATUS; raw bytes
  std::vector<std::pair<std::string, std::string>> metrics;  // X_MONARCH_METRIC, by name: the number as it was written
  Instant at;                                                // the host's boot clock; meaningful once any of it is set
  std::optional<StepMark> first = {};                        // step of this start of it
  std::optional<StepMark> past = {};                         // the first beyond the `furthest` of its START
  bool operator==(const RankProgress&) const = default;
};
MONARCH_FIELDS(RankProgress, step, phase, status, metrics, at, first, past)

// What came to a rank's sockets and was not taken, by reason. It travels as the progress does.
struct TalkDrops {
  std::uint64_t bad_values = 0;    // of words that are ours
  std::uint64_t too_long = 0;      // messages
  std::uint64_t foreign = 0;       // messages and connections of another user
  std::uint64_t connections = 0;   // beyond the limit
  std::uint64_t slow_readers = 0;  // of events: their queue was full, and they were dropped
  bool operator==(const TalkDrops&) const = default;
};
MONARCH_FIELDS(TalkDrops, bad_values, too_long, foreign, connections, slow_readers)

// Why a rank that should run does not, though nobody here wants that.
enum class Standstill : std::uint8_t {
  kNone,
  kStopped,  // by a signal
  kTraced,   // a debugger holds it
  kFrozen,   // with its cgroup
  kWaiting,  // in one uninterruptible wait for long: a disk or a network file system
};
constexpr Standstill monarch_enum_max(Standstill) { return Standstill::kWaiting; }

// A rank has written a checkpoint and asks that it count. It goes with the beats until it is answered.
struct CommitRequest {
  std::uint64_t number = 0;  // of the incarnation's questions
  std::uint64_t step = 0;
  std::string what = {};  // a digest or a name, as the rank said it; printable ASCII
  bool whole = false;     // it speaks for all ranks of its gang
  bool operator==(const CommitRequest&) const = default;
};
MONARCH_FIELDS(CommitRequest, number, step, what, whole)

struct RankReport {
  Incarnation process;
  RankPhase phase = RankPhase::kGated;
  std::int32_t pid = 0;
  bool held = false;    // frozen at the end of its lease (orphan: hold)
  Instant started_at;   // the host's boot clock; of the fork
  bool ending = false;  // its exit has begun, and how it ends is not known yet
  Instant ended_at;     // when its exit was first seen to have begun; meaningful with `ending` and once end.kind is set
  RankEnd end;
  std::uint64_t stdout_bytes = 0;  // written to the host's file so far
  std::uint64_t stderr_bytes = 0;
  bool output_complete = false;  // both streams reached EOF and lie in their files
  bool ready = false;            // as Start::ready says; never taken back
  RankProgress progress;
  TalkDrops talk_drops;
  std::uint32_t error_bytes = 0;  // of its error file, once the output is complete; Bootstrap::copied hosts alone
  // When it wrote why it fails, on the host's boot clock: its error file, or a traceback that little followed; never():
  // nothing of the kind.
  Instant evidence_at = Instant::never();
  Standstill standstill = Standstill::kNone;
  std::optional<CommitRequest> commit;  // that is not answered
  bool at_gate = false;                 // of a standby: it has asked for its place, and waits; never taken back
};
MONARCH_FIELDS(RankReport, process, phase, pid, held, started_at, ending, ended_at, end, stdout_bytes, stderr_bytes,
               output_complete, ready, progress, talk_drops, error_bytes, evidence_at, standstill, commit, at_gate)

// ---- supervisor → daemon → keeper ----

// Reserve ports and GPUs on this host for a gang's generation. The keeper holds the ports, bound and not listening,
// until the ranks of that generation have ended, or release them at their start; the GPUs are locked against other jobs
// of this user.
struct Reserve {
  MeshId mesh;
  GangId gang;
  Generation generation;
  std::uint32_t count = 1;           // ports of the keeper's choice
  std::vector<std::uint16_t> fixed;  // and these
  std::vector<std::string> gpus;     // their UUIDs
  std::uint16_t first_port = 0;      // the keeper's choice is among these; 0: any
  std::uint16_t last_port = 0;
  std::vector<std::uint16_t> spared;  // but none of these
};
MONARCH_MESSAGE(Reserve, 17, mesh, gang, generation, count, fixed, gpus, first_port, last_port, spared)

// What becomes of ranks whose lease has ended, for nobody renews it.
enum class OrphanPolicy : std::uint8_t {
  kHold,  // they are frozen, and killed after Start::orphan_ttl
  kStop,  // they are killed at once
  kRun,
};
constexpr OrphanPolicy monarch_enum_max(OrphanPolicy) { return OrphanPolicy::kRun; }

// When a rank is ready.
enum class ReadyKind : std::uint8_t {
  kExec,    // its program was executed
  kNotify,  // it said READY=1
  kTcp,     // RankStart::ready_port accepts a connection
};
constexpr ReadyKind monarch_enum_max(ReadyKind) { return ReadyKind::kTcp; }

enum class BindKind : std::uint8_t { kNone, kCore, kNuma };
constexpr BindKind monarch_enum_max(BindKind) { return BindKind::kNuma; }

// The cores of a rank. They are numbered from 0 among those that the keeper may use, neighbours of one NUMA node
// together.
struct RankBinding {
  BindKind kind = BindKind::kNone;
  std::uint32_t first_cpu = 0;
  std::uint32_t cpus = 0;
  std::vector<std::string> gpus;  // UUIDs; kNuma: the node of the first of them, if it is known, else of first_cpu
  bool operator==(const RankBinding&) const = default;
};
MONARCH_FIELDS(RankBinding, kind, first_cpu, cpus, gpus)

struct RankStart {
  RankId rank;
  std::map<std::string, std::string> env;  // of this rank alone; wins over Start::env
  std::vector<std::string> program;        // argv of this rank alone; empty: Start's
  std::string workdir;                     // empty: Start's; relative: below this host's tree of the workspace
  std::vector<std::uint16_t> ports;        // reserved ones that are its own: released when it is executed
  std::uint16_t ready_port = 0;            // Start::ready kTcp: one of them
  RankBinding binding;
  // Whose process becomes this rank, if it waits at its gate here; else one is forked.
  std::optional<Incarnation> standby;
  bool input = false;  // its standard input is a pipe, which gets what Input has
};
MONARCH_FIELDS(RankStart, rank, env, program, workdir, ports, ready_port, binding, standby, input)

// To whom a signal for a rank goes.
enum class SignalTo : std::uint8_t {
  kAuto,   // its own process; where that is a shell that waits for a child, its process group
  kRank,   // its own process
  kGroup,  // its process group
};
constexpr SignalTo monarch_enum_max(SignalTo) { return SignalTo::kGroup; }

// Whom a rank lets trace it, where the kernel asks for its leave (Yama's scope 1).
enum class TracedBy : std::uint8_t {
  kKeeper,   // and what descends from that
  kAnybody,  // of its user: faults may be injected
};
constexpr TracedBy monarch_enum_max(TracedBy) { return TracedBy::kAnybody; }

// Start these ranks of one gang. They are forked at once and wait at their gates: START grants nothing, the first
// matching ACK does.
struct Start {
  MeshId mesh;
  std::string mesh_name;
  GangId gang;
  Generation generation;
  std::vector<std::string> program;  // argv
  std::map<std::string, std::string> env;
  std::map<std::string, std::string> defaults = {};  // of variables that neither the host nor the mesh's setup sets
  std::string workdir;
  std::vector<RankStart> ranks;
  OrphanPolicy orphan = OrphanPolicy::kHold;
  Duration orphan_ttl = Duration::seconds(60);
  std::int32_t stop_signal = 15;
  Duration stop_grace = Duration::seconds(30);
  SignalTo signal_to = SignalTo::kAuto;
  std::uint64_t log_max_bytes = 0;  // per rank and stream
  ReadyKind ready = ReadyKind::kExec;
  std::string setup;  // bash; its environment is the base of the ranks'. Run once per host and mesh, by the first rank
                      // past its gate
  bool standby = false;  // who asks for its place waits for it, instead of being told what it was started as
  std::optional<std::uint64_t> furthest = {};  // step that its gang had reached before
  TracedBy traced_by = TracedBy::kKeeper;
};
MONARCH_MESSAGE(Start, 18, mesh, mesh_name, gang, generation, program, env, defaults, workdir, ranks, orphan,
                orphan_ttl, stop_signal, stop_grace, signal_to, log_max_bytes, ready, setup, standby, furthest,
                traced_by)

// Stop these ranks if they run at `generation` or below, and never start that generation of them again. CONT, `signal`,
// the whole grace for each, then KILL of everything in the rank's containment, then the check that it is empty.
struct Stop {
  std::vector<RankId> ranks;
  Generation generation;
  std::int32_t signal = 15;
  Duration grace;  // zero: KILL at once
};
MONARCH_MESSAGE(Stop, 19, ranks, generation, signal, grace)

struct Signal {
  std::vector<RankId> ranks;
  Generation generation;
  std::int32_t number = 0;
  std::optional<SignalTo> to = {};  // nothing: as their START says
};
MONARCH_MESSAGE(Signal, 20, ranks, generation, number, to)

// A line for ranks that listen on MONARCH_EVENTS; those that do not miss it.
struct Tell {
  std::vector<RankId> ranks;
  Generation generation;
  std::string json;  // one object
};
MONARCH_MESSAGE(Tell, 22, ranks, generation, json)

inline constexpr std::size_t kInputBytes = 64U << 10U;  // of one Input

// For the standard input of ranks. Answered by InputTaken, also where it was said before.
struct Input {
  std::vector<RankId> ranks;
  Generation generation;
  std::uint64_t offset = 0;  // of all that the job was given
  std::string bytes;
  bool end = false;  // nothing follows
};
MONARCH_MESSAGE(Input, 23, ranks, generation, offset, bytes, end)

// What became of a rank's CommitRequest: it is durable, or it does not count. Said again for as long as beats ask.
struct CommitAnswer {
  Incarnation process;
  std::uint64_t number = 0;
  bool committed = false;
  std::string why = {};               // where it is not
  std::optional<std::uint64_t> gang;  // where it is: the newest step that all ranks of its gang have committed
};
MONARCH_MESSAGE(CommitAnswer, 28, process, number, committed, why, gang)

// ---- keeper → daemon → supervisor ----

struct Reserved {
  MeshId mesh;
  GangId gang;
  Generation generation;
  std::vector<std::uint16_t> ports;  // `count` of them, then those of `fixed`
  std::string error;                 // empty: they are held; else what is taken, and by whom where that is known
};
MONARCH_MESSAGE(Reserved, 3, mesh, gang, generation, ports, error)

// A rank's pipe has all of its input up to `offset`.
struct InputTaken {
  Incarnation process;
  std::uint64_t offset = 0;
  bool over = false;  // it takes no more: it has been given the end, or reads no longer
};
MONARCH_MESSAGE(InputTaken, 6, process, offset, over)

}  // namespace monarch
