#pragma once

// The messages between supervisor and worker (control port, bulk port) and between a keeper and what it guards (socketpair),
// as values: pure cores take and give them. How they are written is wire/messages.h's, what they travel in is wire/frame.h's: the
// frame's header carries job, term, rank, generation and seq, and whoever receives a message checks those first.
//
// Every message of the control plane is idempotent: a lost or repeated one changes nothing that the next beat does not mend.
//
// Thread: values.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/bootstrap.h"
#include "transport/base/host_pressure.h"
#include "transport/base/ids.h"
#include "transport/base/report_limits.h"
#include "transport/base/time.h"
#include "transport/base/vault_messages.h"

namespace monarch {

enum class MessageType : std::uint16_t {
  kNone = 0,
  // worker → supervisor, control port
  kHello = 1,
  kBeat = 2,
  kReserved = 3,
  kGoodbye = 4,
  kKeeperGone = 5,
  // supervisor → worker, control port
  kAck = 16,
  kReserve = 17,
  kStart = 18,
  kStop = 19,
  kSignal = 20,
  kShutdown = 21,
  kTell = 22,
  kTakeStacks = 26,  // see stack_messages.h
  kCommitAnswer = 28,
  kVaultTable = 29,  // see vault_messages.h
  // worker → supervisor, bulk port
  kOutput = 32,
  kOutputGone = 33,
  kOutputUnkept = 34,
  kStacks = 36,  // and keeper → daemon
  // supervisor → worker, bulk port
  kOutputFrom = 40,
  // keeper → guarded process
  kKeeperHello = 48,
  kKeeperPipes = 49,
  kKeeperPing = 50,
  kKeeperChanged = 51,
  kKeeperEnded = 52,
  kKeeperWarned = 53,
  // guarded process → keeper (and kReserve, kStart, kStop, kSignal, kTell, kCommitAnswer as above; the keeper answers kReserved)
  kKeeperPong = 64,
  kKeeperStash = 65,
  kKeeperLease = 66,
  kKeeperForget = 67,
  kKeeperSpawn = 68,
  kKeeperShutdown = 69,
  kKeeperReady = 70,
  kKeeperLetLive = 71,
  kKeeperPipesTaken = 72,
  kKeeperKeepOpen = 73,
  // viewer → supervisor; see viewer_messages.h
  kAttach = 80,
  kStatusRequest = 81,
  kStopRequest = 82,
  kSignalRequest = 83,
  kOperatorRequest = 84,
  kStacksRequest = 90,
  kHoldRequest = 92,
  // supervisor → viewer
  kEvent = 96,
  kViewerOutput = 97,
  kViewerUnkept = 107,
  kStatus = 98,
  kVerdict = 99,
  kAccepted = 100,
  kRefused = 101,
  kRankStacks = 106,
  // who launches the hosts of a supervisor elsewhere; see launch_messages.h
  kStartThere = 112,
  kStartedThere = 113,
  kLauncherHello = 114,
  kHostLaunched = 115,
  kHostNotLaunched = 116,
  kHostEnded = 117,
  kLauncherWelcome = 120,
  kLaunchHost = 121,
  kEndHost = 122,
  kHostSaidGoodbye = 123,
  kLeaveLauncher = 124,
  // daemon ↔ vault (and kVaultTable to it), and vault ↔ vault; see vault_messages.h
  kVaultSetup = 128,
  kVaultReport = 129,
  kVaultOffer = 130,
  kVaultKept = 131,
  kVaultAsk = 132,
  kVaultPiece = 133,
};

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
  kSetupFailed,  // value: the exit code of the mesh's `setup` on this host, 128+n for a signal; the program was not executed
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

// The program itself never ran.
inline bool was_not_executed(const RankEnd& end) {
  return end.kind == EndKind::kNotExecuted || end.kind == EndKind::kSetupFailed;
}

// What a rank says of itself over its notify socket. The last of it travels with the beats; none of it is journalled.
struct RankProgress {
  std::optional<std::uint64_t> step;                         // X_MONARCH_STEP
  std::string phase;                                         // X_MONARCH_PHASE; empty: it never named one
  std::string status;                                        // STATUS; raw bytes
  std::vector<std::pair<std::string, std::string>> metrics;  // X_MONARCH_METRIC, by name: the number as it was written
  Instant at;                                                // the host's boot clock; meaningful once any of it is set
  bool operator==(const RankProgress&) const = default;
};

// What came to a rank's sockets and was not taken, by reason. It travels as the progress does.
struct TalkDrops {
  std::uint64_t bad_values = 0;    // of words that are ours
  std::uint64_t too_long = 0;      // messages
  std::uint64_t foreign = 0;       // messages and connections of another user
  std::uint64_t connections = 0;   // beyond the limit
  std::uint64_t slow_readers = 0;  // of events: their queue was full, and they were dropped
  bool operator==(const TalkDrops&) const = default;
};

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

struct RankReport {
  Incarnation process;
  RankPhase phase = RankPhase::kGated;
  std::int32_t pid = 0;
  bool held = false;   // frozen at the end of its lease (orphan: hold)
  Instant started_at;  // the host's boot clock; of the fork
  Instant ended_at;    // of the reaping; meaningful once end.kind is set
  RankEnd end;
  std::uint64_t stdout_bytes = 0;  // written to the host's file so far
  std::uint64_t stderr_bytes = 0;
  bool output_complete = false;  // both streams reached EOF and lie in their files
  bool ready = false;            // as Start::ready says; never taken back
  RankProgress progress;
  TalkDrops talk_drops;
  std::uint32_t error_bytes = 0;  // of its error file, once the output is complete; Bootstrap::copied hosts alone
  // When it wrote why it fails, on the host's boot clock: its error file, or a traceback that little followed; never(): nothing of the kind.
  Instant evidence_at = Instant::never();
  Standstill standstill = Standstill::kNone;
  std::optional<CommitRequest> commit;  // that is not answered
  bool at_gate = false;                 // of a standby: it has asked for its place, and waits; never taken back
};

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
  Term promised;  // the highest term it has promised
};

// How all stands on a host.
struct BeatContent {
  std::vector<RankReport> ranks;           // all that the keeper knows of, ended ones until they are forgotten
  std::uint64_t output_dropped_bytes = 0;  // not streamed; read again from the file
  std::uint64_t output_lost_bytes = 0;     // in all: no file took them
  std::string output_failure = {};         // why none takes them now, with the file; empty: all is well
  std::optional<HostPressure> pressure;    // nothing: its kernel does not count it
  std::optional<VaultReport> vault;        // nothing: this host has none, or it does not serve yet
  std::uint32_t warnings = 0;              // how often who gave this host has foretold the end of what runs there
};

struct Beat {
  std::uint64_t seq = 0;
  Instant sent_at;    // worker's boot clock
  Duration loop_age;  // since the daemon's main loop last turned
  std::uint64_t acked_seq = 0;
  Duration round_trip;  // of the last beat that was acknowledged, on the worker's clock; zero: none yet
  BeatContent content;
};

struct Ack {
  std::uint64_t seq = 0;             // of the beat it answers
  Duration lease;                    // counted from that beat's sent_at
  std::vector<Incarnation> granted;  // whose lease is renewed: those wanted here
  std::vector<Incarnation> forget;   // ended ones whose report was journalled
  bool say_hello = false;            // resync: the supervisor does not know this link
};

// Reserve ports and GPUs on this host for a gang's generation. The keeper holds the ports, bound and not listening, until the ranks
// of that generation have ended, or release them at their start; the GPUs are locked against other jobs of this user.
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

struct Reserved {
  MeshId mesh;
  GangId gang;
  Generation generation;
  std::vector<std::uint16_t> ports;  // `count` of them, then those of `fixed`
  std::string error;                 // empty: they are held; else what is taken, and by whom where that is known
};

// The daemon's last word: of this worker nothing is left on its host but the daemon and its keeper, which are about to leave. Said
// once and not repeated: who does not hear it has to look.
struct Goodbye {
  std::uint64_t incarnation = 0;  // of the worker, as in Hello
  bool orderly = true;            // false: its keeper was killed, and the daemon killed what that kept
};

// A daemon's, at once: its keeper ended unexpectedly, and it is about to kill what that kept. Said once: who does not hear it hears the
// end.
struct KeeperGone {
  std::uint64_t incarnation = 0;  // of the worker, as in Hello
};

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

// The cores of a rank. They are numbered from 0 among those that the keeper may use, neighbours of one NUMA node together.
struct RankBinding {
  BindKind kind = BindKind::kNone;
  std::uint32_t first_cpu = 0;
  std::uint32_t cpus = 0;
  std::vector<std::string> gpus;  // UUIDs; kNuma: the node of the first of them, if it is known, else of first_cpu
  bool operator==(const RankBinding&) const = default;
};

struct RankStart {
  RankId rank;
  std::map<std::string, std::string> env;  // of this rank alone; wins over Start::env
  std::vector<std::string> program;        // argv of this rank alone; empty: Start's
  std::string workdir;                     // empty: Start's; relative: below this host's tree of the workspace
  std::vector<std::uint16_t> ports;        // reserved ones that are its own: released when it is executed
  std::uint16_t ready_port = 0;            // Start::ready kTcp: one of them
  RankBinding binding;
  std::optional<Incarnation>
      standby;  // whose process becomes this rank, if it waits at its gate here; else one is forked
};

// To whom a signal for a rank goes.
enum class SignalTo : std::uint8_t {
  kAuto,   // its own process; where that is a shell that waits for a child, its process group
  kRank,   // its own process
  kGroup,  // its process group
};
constexpr SignalTo monarch_enum_max(SignalTo) { return SignalTo::kGroup; }

// Start these ranks of one gang. They are forked at once and wait at their gates: START grants nothing, the first matching ACK
// does.
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
  std::string
      setup;  // bash; its environment is the base of the ranks'. Run once per host and mesh, by the first rank past its gate
  bool standby = false;  // who asks for its place waits for it, instead of being told what it was started as
};

// Stop these ranks if they run at `generation` or below, and never start that generation of them again. CONT, `signal`, the
// whole grace for each, then KILL of everything in the rank's containment, then the check that it is empty.
struct Stop {
  std::vector<RankId> ranks;
  Generation generation;
  std::int32_t signal = 15;
  Duration grace;  // zero: KILL at once
};

struct Signal {
  std::vector<RankId> ranks;
  Generation generation;
  std::int32_t number = 0;
  std::optional<SignalTo> to = {};  // nothing: as their START says
};

// A line for ranks that listen on MONARCH_EVENTS; those that do not miss it.
struct Tell {
  std::vector<RankId> ranks;
  Generation generation;
  std::string json;  // one object
};

// What became of a rank's CommitRequest: it is durable, or it does not count. Said again for as long as beats ask.
struct CommitAnswer {
  Incarnation process;
  std::uint64_t number = 0;
  bool committed = false;
  std::string why = {};               // where it is not
  std::optional<std::uint64_t> gang;  // where it is: the newest step that all ranks of its gang have committed
};

// Kill what is left, remove the worker's state but for logs, exit 0.
struct Shutdown {
  std::string reason;
};

enum class OutputStream : std::uint8_t {
  kStdout,
  kStderr,
  kErrorFile,  // TORCHELASTIC_ERROR_FILE, whole; Bootstrap::copied hosts alone, and never passed to a viewer
};
constexpr OutputStream monarch_enum_max(OutputStream) { return OutputStream::kErrorFile; }

// A piece of a rank's output (rank and generation are the frame header's). Best effort: what is missing between two offsets
// is read again from the file. As kOutputUnkept it is what no file took, when that ended at `offset`; it is said once.
struct Output {
  OutputStream stream = OutputStream::kStdout;
  std::uint64_t offset = 0;
  std::string bytes;
};

// Say this stream again from `offset` on (rank and generation are the frame header's): what follows on it was missed.
struct OutputFrom {
  OutputStream stream = OutputStream::kStdout;
  std::uint64_t offset = 0;
};

// What was asked for, or was about to be said, before `oldest` is no longer in the host's file: it was rotated away.
struct OutputGone {
  OutputStream stream = OutputStream::kStdout;
  std::uint64_t oldest = 0;
};

// ---- keeper ↔ guarded process ----

// The keeper's first frame to every guarded process that it starts. With a stash, its memfd comes along as the descriptor.
struct KeeperHello {
  std::uint64_t incarnation = 0;  // of the keeper
  std::int32_t keeper_pid = 0;
  std::uint32_t starts = 1;  // which start of the guarded process this is
  bool has_stash = false;
  std::vector<RankReport> ranks;  // adopted; kKeeperPipes follows for each whose pipes are open
  std::vector<RankId> spawned;    // processes of KeeperSpawn that live
  std::uint32_t warnings = 0;     // as in KeeperWarned
};

// Two descriptors: the read ends of the rank's stdout and stderr. Header: rank and generation.
struct KeeperPipes {
  std::string mesh_name;
  std::uint64_t log_max_bytes = 0;
  std::uint16_t ready_port = 0;        // not 0: the rank is ready once this port accepts a connection
  std::optional<Incarnation> standby;  // whose pipes they were: what comes from now on is this rank's
};

struct KeeperPing {
  std::uint64_t number = 0;
};

struct KeeperPong {
  std::uint64_t number = 0;
};

struct KeeperChanged {
  RankReport report;
};

// The keeper is ending, and all that it kept has ended; what it starts from now on is nothing.
struct KeeperEnded {
  std::uint32_t left = 0;  // processes that it could not kill
};

// The keeper was sent TERM, which is the word of who gave this host that what runs there is about to be ended (see Bootstrap).
struct KeeperWarned {
  std::uint32_t warnings = 0;  // so often until now
};

// What the next guarded process needs to go on: opaque to the keeper, kept in a sealed memfd.
struct KeeperStash {
  std::string bytes;
};

struct KeeperLease {
  std::vector<Incarnation> processes;
  Instant until;  // this host's boot clock
};

struct KeeperForget {
  std::vector<Incarnation> processes;
};

// A process without gate, lease or pipes of the keeper's: a worker of the local launcher. Three descriptors: its stdin, stdout
// and stderr. Its end is reported by kKeeperChanged. Header: rank (the launcher's key) and generation.
struct KeeperSpawn {
  std::vector<std::string> program;
  std::map<std::string, std::string> env;  // added to the keeper's
  std::string workdir;
  std::string executable = {};  // of the keeper's host; empty: the program's first word
  Duration memory_patience =
      {};  // beyond kKillDeadline, from SIGKILL to its end: for the kernel to give its memory back
};

// A process of KeeperSpawn that lives on where the keeper ends before the job does: what it carries is worth more than this keeper.
struct KeeperLetLive {
  Incarnation process;
};

// The pipes of a rank that was a standby are read as the rank's: nothing that it writes from now on is taken for the standby's.
struct KeeperPipesTaken {
  Incarnation process;
};

// These descriptors, which come with it, are the guard's from now on: each process that it guards after this one has them, too.
struct KeeperKeepOpen {
  std::uint32_t count = 0;
};

struct KeeperShutdown {
  std::int32_t exit_code = 0;  // the keeper's own, once all that it keeps has ended
};

// The ready port of this rank accepts connections.
struct KeeperReady {
  Incarnation process;
};

}  // namespace monarch
