#pragma once

// What the job's core is told. Each is journalled with its `now` before it is acted on, so that a replay of them is the
// job's state. Beats and ticks are not among them: what a beat says is compared with what is known, and only the
// difference comes here.
//
// Thread: values.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/core/state/claim_state.h"
#include "supervisor/core/state/foreseen_end.h"
#include "supervisor/core/state/inheritance.h"
#include "supervisor/core/state/launch_failure.h"
#include "supervisor/core/state/launch_times.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/launch.h"
#include "transport/messages/rank.h"
#include "transport/messages/viewer.h"

namespace monarch {

// The first term begins.
struct JobBegun {
  Term term;
  JobUuid job;
  std::string boot_id = {};            // of its machine
  std::string continues = {};          // the job that it goes on from; empty: none
  std::vector<std::string> lost = {};  // of that; for people
};

// Before it begins: what gangs of a job that goes on from another one have of that, in parts.
struct GangsInherited {
  std::vector<InheritedGang> gangs;
};

// A later term begins: the supervisor of the one before it ended without a verdict.
struct SupervisorReturned {
  Term term;
  std::string boot_id = {};  // of its machine
  // Where that is another than before: what the clock of the boot before showed last, and how long ago, by the wall
  // clock, that was.
  Instant last_seen = {};
  Duration away = {};
};

// The launcher: the worker on this host runs and has told its key.
struct WorkerLaunched {
  HostId host;
  LaunchedWorker worker;
};

// The launcher: this host does not start. It has tried what is worth a try.
struct WorkerLaunchFailed {
  HostId host;
  LaunchFailure failure;
};

// The launcher: which machine a host on request is, until its end. It is being launched.
struct HostNamed {
  HostId host;
  std::string name;
  std::string how;  // "Slurm job 12, after 3.2 s"
};

// The worker's first hello.
struct WorkerJoined {
  HostId host;
  std::uint64_t incarnation = 0;
};

// The launcher, exactly once for each worker it launched.
struct WorkerEnded {
  HostId host;
  std::string how;  // "exit code 0", "killed by SIGKILL"
  bool orderly = false;
};

// Nothing was heard of this host for supervision.lost_after.
struct HostSilent {
  HostId host;
  Duration silence;
  Instant grants_until = {};  // the latest end of a lease that it may hold, with the margin for its clock
};

// What this host says is not to be believed any more: whatever runs there is given up, and it serves no longer.
struct HostDistrusted {
  HostId host;
  std::string why;            // one line for people
  Instant grants_until = {};  // as in HostSilent
};

// Its keeper ended unexpectedly, and its daemon kills what runs there: the worker is about to end. WorkerEnded or
// HostSilent follows.
struct WorkerFailing {
  HostId host;
};

// The daemon of this host's worker has ended, and its keeper has started it again: for the so manieth time, the first
// being its first.
struct DaemonStarted {
  HostId host;
  std::uint32_t start = 0;
};

// A host is suspected, or was heard again. Nothing is stopped for it; nothing new is put there meanwhile.
struct HostDoubted {
  HostId host;
  bool heard_again = false;
  Duration silence;
};

// For people alone: nobody has used the job, and in `left` it is stopped by lifetime.idle. Nothing follows from it.
struct IdleNoted {
  Duration left;
};

struct PortsReserved {
  HostId host;
  Reserved reserved;
};

// A report that differs from the last one in phase, end or completeness of output.
struct RankChanged {
  HostId host;
  RankReport report;
  Instant ended_at;                        // on the supervisor's clock; meaningful once report.end.kind is set
  Duration uncertainty;                    // of ended_at, to either side
  std::optional<std::uint64_t> step = {};  // that the rank named last; told with its end
  Instant grants_until = {};               // as in HostSilent; told with kWedged
  Instant evidence_at = Instant::never();  // as in its report, on the supervisor's clock
  Instant step_at = {};                    // when it last said anything, on that clock; told with `step`
};

// A rank of this gang named the first step of this generation, or the first beyond all that the generations before had
// reached.
struct GangProgressed {
  MeshId mesh;
  GangId gang;
  Generation generation;
  std::uint64_t step = 0;
  Instant at;  // when it said so, on the supervisor's clock
};

// How far this generation of a gang had come, as its ranks on one host had last said.
struct GangStep {
  MeshId mesh;
  GangId gang;
  Generation generation;
  std::uint64_t step = 0;
};

// What a host that is about to be given up, or has ended, had told of its ranks' steps: they will not tell it with
// their ends.
struct StepsHeard {
  std::vector<GangStep> gangs;
};

// No rank of this gang named a new step for longer than usual, and one of them has again.
struct GangPaused {
  MeshId mesh;
  GangId gang;
  Generation generation;
  Instant from;  // the last step before it, on the supervisor's clock
  Instant to;
};

// A rank makes no progress: it stands still, or its phase has lasted longer than it may.
struct RankHung {
  HostId host;
  Incarnation process;
  std::string why;    // one line for people
  std::string phase;  // that it named last; may be empty
  Duration waited;
  Duration limit;
  HangAction action = HangAction::kReport;
  std::string stacks = {};  // of it, taken before anything was done; may be empty
};

// For people alone: so many hosts fell silent together that none of them is given up before `until`. Nothing follows
// from it.
struct HostsHeld {
  std::uint32_t silent = 0;
  std::uint32_t of = 0;
  Instant until;
};

// `monarch restart | drain | undrain | retry`. Who asked has checked that these are there.
struct OperatorAsked {
  OperatorWish wish = OperatorWish::kRestart;
  std::vector<RankId> ranks;  // kRestart, kRetry: their gangs
  std::vector<HostId> hosts;  // kDrain, kUndrain
  std::string who;            // "monarch restart, pid 4711"
};

enum class HoldWish : std::uint8_t { kHold, kRelease, kStop, kContinue };
constexpr HoldWish monarch_enum_max(HoldWish) { return HoldWish::kContinue; }

// `monarch hold` and its --release, and a `monarch signal` that stops processes or lets them go on: whose gangs are
// watched for hangs, and whose are not. The ranks are there.
struct HoldAsked {
  HoldWish wish = HoldWish::kHold;
  std::vector<RankId> ranks;
  std::string who;  // "monarch hold, pid 4711"
};

// Idle slots are given to who asked for them. Who tells it has asked claim_plan().
struct SlotsClaimed {
  SlotClaim claim;
};

// These claims are let go, by who has them, or since he is gone. One that is not there is let go already.
struct SlotsLetGo {
  std::vector<ClaimId> claims;
  std::string why;  // one line for people
};

// What `monarch drill` tells of itself. Who asked has checked that it may, and that what it names is there.
struct DrillNoted {
  DrillWhat what = DrillWhat::kBegin;
  std::string drill;
  std::string name;  // kBegin
  std::string text;
  std::uint32_t number = 0;  // of the fault
  std::string fault;
  std::optional<HostId> host;
  std::optional<RankId> rank;
  Duration lasts;
  bool forgiven = false;
  Duration lease;  // kBegin
  std::string who;
};

// A rank has written a checkpoint, which counts from here on (I20). Who tells it has asked rule_on().
struct CheckpointCommitted {
  HostId host;
  Incarnation process;
  CommitRequest commit;
};

// For people alone: what a driver has seen. The core numbers it. Nothing follows from it.
struct PeopleTold {
  JobEvent event;
};

struct StopOrdered {
  StopRequest request;
};

// Who gave the hosts takes them back: what is there at `by` is killed. Nothing is started from then on. Where it is not
// known by when, that is told in another one, which follows soon.
struct EndForeseen {
  ForeseenKind kind = ForeseenKind::kPreempted;
  std::string why;                // one line for people: "Slurm preempts job 7"
  Instant by = Instant::never();  // never(): not known yet
};

// The supervisor did not run for so long, nor, it may be, did anybody else: what others were given to act in grows by
// it. Times of the job's own, and fences, do not.
struct StoodStill {
  Duration gap;
};

// next_deadline() has passed.
struct DeadlinePassed {};

using CoreEvent =
    std::variant<JobBegun, SupervisorReturned, WorkerLaunched, WorkerLaunchFailed, WorkerJoined, WorkerEnded,
                 HostSilent, PortsReserved, RankChanged, StopOrdered, DeadlinePassed, HostDoubted, IdleNoted,
                 GangProgressed, RankHung, HostsHeld, OperatorAsked, CheckpointCommitted, PeopleTold, HoldAsked,
                 WorkerFailing, HostNamed, EndForeseen, GangsInherited, StoodStill, HostDistrusted, DrillNoted,
                 GangPaused, StepsHeard, DaemonStarted, SlotsClaimed, SlotsLetGo>;

}  // namespace monarch
