#pragma once

// What can happen to a job, as `monarch events` shows it: each kind with its name, how grave it mostly is (an event may
// be graver or less so), and what it means. monarch-events(7) is written from this list.
//
// Those of journal, guard, descriptors, output.lost, output.kept, output.refused, call, post, library, job.limit,
// host.queued, host.out_of_reach and workspace are seen by the supervisor's driver: they have no number and are in no
// journal.
//
// Thread: constants.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace monarch {

enum class Severity : std::uint8_t { kInfo, kWarning, kError };
constexpr Severity monarch_enum_max(Severity) { return Severity::kError; }

#define MONARCH_EVENT_KINDS(KIND)                                                                                      \
  KIND(kJobStarting, "job.starting", kInfo, "Its hosts are being launched.")                                           \
  KIND(kJobContinues, "job.continues", kInfo,                                                                          \
       "It goes on from an earlier job: its committed checkpoints and its generations.")                               \
  KIND(kJobRunning, "job.running", kInfo, "Every mesh is ready, for the first time.")                                  \
  KIND(kJobExpiring, "job.expiring", kWarning, "Its time limit, lifetime or allocation is about to end.")              \
  KIND(kJobPreempted, "job.preempted", kWarning, "Slurm takes its nodes back: nothing is started any more.")           \
  KIND(kJobLimit, "job.limit", kInfo, "The time limit of Slurm's job is shorter than launch.slurm.warn asks for.")     \
  KIND(kJobStopping, "job.stopping", kInfo, "The verdict is known, and ranks still live.")                             \
  KIND(kJobEnded, "job.ended", kInfo, "Nothing of it runs any more; the message is the verdict.")                      \
  KIND(kHostQueued, "host.queued", kInfo, "A node was asked for, and Slurm lets the request wait.")                    \
  KIND(kHostNamed, "host.named", kInfo, "A host on request is this machine from now on.")                              \
  KIND(kHostReady, "host.ready", kInfo, "Its worker is connected; in brackets where the time went.")                   \
  KIND(kHostFailed, "host.failed", kError, "Its worker did not start.")                                                \
  KIND(kHostOutOfReach, "host.out_of_reach", kWarning,                                                                 \
       "Its worker cannot be ended from here: without a supervisor it ends by itself.")                                \
  KIND(kHostPreparing, "host.preparing", kInfo, "The program of spares.prepare was started there.")                    \
  KIND(kHostPrepared, "host.prepared", kInfo, "The program of spares.prepare has ended well.")                         \
  KIND(kHostUnprepared, "host.unprepared", kWarning, "The program of spares.prepare has failed, or was ended.")        \
  KIND(kHostSuspect, "host.suspect", kWarning,                                                                         \
       "Nothing was heard of it for suspect_after; nothing is stopped for that.")                                      \
  KIND(kHostHeard, "host.heard", kInfo, "It was suspected, and is heard again.")                                       \
  KIND(kHostReached, "host.reached", kInfo, "It is silent, and answers over SSH.")                                     \
  KIND(kHostUnreachable, "host.unreachable", kWarning, "It is silent, and does not answer over SSH either.")           \
  KIND(kHostsHeld, "hosts.held", kWarning,                                                                             \
       "So many fell silent together that none of them is given up before the time that is named.")                    \
  KIND(kHostLost, "host.lost", kError, "It is given up: its ranks are lost.")                                          \
  KIND(kHostWedged, "host.wedged", kError,                                                                             \
       "A process there does not end after SIGKILL; nothing is started in its place.")                                 \
  KIND(kHostReplaced, "host.replaced", kWarning, "Another host has its place.")                                        \
  KIND(kHostQuarantined, "host.quarantined", kWarning, "It gets no ranks any more, on evidence about the host alone.") \
  KIND(kHostDoubtful, "host.doubtful", kWarning,                                                                       \
       "Evidence speaks against it, and no other host is left to take its place.")                                     \
  KIND(kHostRecalled, "host.recalled", kWarning, "It was quarantined, and serves again for want of another one.")      \
  KIND(kHostDrained, "host.drained", kInfo, "It gets no ranks any more, as an operator asked.")                        \
  KIND(kHostUndrained, "host.undrained", kInfo, "It may have ranks again, as an operator asked.")                      \
  KIND(kHostReleased, "host.released", kInfo,                                                                          \
       "It is given back: the gang that it was for is parked, and no other host is granted.")                          \
  KIND(kHostDaemon, "host.daemon", kWarning, "Its daemon had ended and was started again; its ranks go on.")           \
  KIND(kHostPressure, "host.pressure", kWarning,                                                                       \
       "Its processes wait for processors, memory or disk more than they work.")                                       \
  KIND(kGangWaiting, "gang.waiting", kInfo, "It waits for hosts, for another mesh, or for its back-off.")              \
  KIND(kGangStarting, "gang.starting", kInfo, "Its ranks are being started, as a new generation.")                     \
  KIND(kGangRunning, "gang.running", kInfo, "Every rank of it was executed.")                                          \
  KIND(kGangReady, "gang.ready", kInfo, "Every rank of it is ready.")                                                  \
  KIND(kGangCaughtUp, "gang.caught_up", kInfo, "It is past the step where it was before it was started again.")        \
  KIND(kGangDone, "gang.done", kInfo, "Every rank of it has ended with 0.")                                            \
  KIND(kGangFailed, "gang.failed", kError,                                                                             \
       "A rank or a host of it failed; in brackets the rule, what is spent of its budget, and what comes next.")       \
  KIND(kGangParked, "gang.parked", kWarning, "No host is left for it, and the job goes on without it.")                \
  KIND(kGangReturning, "gang.returning", kInfo, "It was parked, and hosts are there again.")                           \
  KIND(kGangStopping, "gang.stopping", kInfo, "It is stopped, to be started again as an operator asked.")              \
  KIND(kGangStopped, "gang.stopped", kInfo, "It was stopped in order.")                                                \
  KIND(kGangEnded, "gang.ended", kInfo,                                                                                \
       "It has ended, and is not started again, for the end of its hosts is foreseen.")                                \
  KIND(kSlotsClaimed, "slots.claimed", kInfo, "A process of the job has them, and they are started for it.")           \
  KIND(kSlotsLetGo, "slots.let_go", kInfo, "They are stopped, and idle again; it tells why.")                          \
  KIND(kStandbyStarting, "standby.starting", kInfo, "A standby gang is being started.")                                \
  KIND(kStandbyReady, "standby.ready", kInfo, "It is at its gate.")                                                    \
  KIND(kStandbyTaken, "standby.taken", kInfo, "It takes the place of a gang that has failed.")                         \
  KIND(kStandbyLate, "standby.late", kWarning, "It is not at its gate within start_timeout; it is waited for.")        \
  KIND(kStandbyFailed, "standby.failed", kWarning, "A rank of it has ended; it is started again after a pause.")       \
  KIND(kStandbyStopping, "standby.stopping", kInfo, "It is ended: a host of it is needed.")                            \
  KIND(kRankHung, "rank.hung", kWarning,                                                                               \
       "It makes no progress: it stands still, or a phase has lasted longer than it may.")                             \
  KIND(kRankStopped, "rank.stopped", kWarning,                                                                         \
       "It stands still: stopped, traced, frozen, or in an uninterruptible wait.")                                     \
  KIND(kRankContinued, "rank.continued", kInfo, "It stood still, and goes on.")                                        \
  KIND(kMeshUnwatched, "mesh.unwatched", kInfo, "No rank of it says a step or a phase: a hang of it is not seen.")     \
  KIND(kRanksHeld, "ranks.held", kInfo, "They are not watched for hangs, as somebody asked.")                          \
  KIND(kRanksReleased, "ranks.released", kInfo, "They are watched for hangs again.")                                   \
  KIND(kFailuresForgiven, "failures.forgiven", kInfo,                                                                  \
       "What failures had counted against budgets is forgotten, as an operator asked.")                                \
  KIND(kCheckpointCommitted, "checkpoint.committed", kInfo,                                                            \
       "All ranks of a gang have this step: its next generation goes on from there.")                                  \
  KIND(kSupervisorReturned, "supervisor.returned", kWarning,                                                           \
       "The supervisor before this one had ended; this one goes on in its place.")                                     \
  KIND(kSupervisorAdopted, "supervisor.adopted", kInfo, "Every host of before has answered, or was given up.")         \
  KIND(kSupervisorStoodStill, "supervisor.stood_still", kInfo,                                                         \
       "The supervisor, or all of its machine, did not run for more than 1.5 s.")                                      \
  KIND(kGuardLost, "guard.lost", kWarning, "The process that starts a crashed supervisor again has ended.")            \
  KIND(kJournalStuck, "journal.stuck", kError, "The journal cannot be written; nothing new is started until it can.")  \
  KIND(kJournalMended, "journal.mended", kInfo, "The journal can be written again.")                                   \
  KIND(kJournalFailed, "journal.failed", kError,                                                                       \
       "The journal could not be written for too long: the supervisor steps down.")                                    \
  KIND(kDescriptorsScarce, "descriptors.scarce", kWarning,                                                             \
       "So few descriptors are left that the supervisor's ports take no new connection.")                              \
  KIND(kDescriptorsEnough, "descriptors.enough", kInfo, "The supervisor's ports take connections again.")              \
  KIND(kOutputIncomplete, "output.incomplete", kWarning,                                                               \
       "What the ranks that are named wrote last may be missing here.")                                                \
  KIND(kOutputLost, "output.lost", kWarning, "The disk of a host does not take what its ranks write.")                 \
  KIND(kOutputKept, "output.kept", kInfo, "It takes it again.")                                                        \
  KIND(kOutputRefused, "output.refused", kWarning,                                                                     \
       "A host sends output of ranks that were not started there; it is dropped.")                                     \
  KIND(                                                                                                                \
      kCallWaiting, "call.waiting", kInfo,                                                                             \
      "Calls without a deadline have waited for 30 s: which actors wait for which calls of which ranks, in one line.") \
  KIND(kPostUnreached, "post.unreached", kWarning, "The posts of two hosts do not reach each other: calls wait.")      \
  KIND(kLibraryOld, "library.old", kWarning, "A library of this machine has a known fault.")                           \
  KIND(kWorkspaceSending, "workspace.sending", kInfo, "How far the copy of the workspace is.")                         \
  KIND(kPostEnded, "post.ended", kWarning,                                                                             \
       "The post of a host has ended, and another one was started: calls from or to its ranks have an unknown end.")   \
  KIND(kInputEnded, "input.ended", kWarning, "Nobody gives ranks their standard input any more: they read its end.")   \
  KIND(kDrillBegun, "drill.begun", kInfo,                                                                              \
       "From here on a drill injects faults: what fails of them is no sick cluster.")                                  \
  KIND(kDrillFault, "drill.fault", kWarning, "The drill is about to inject a fault.")                                  \
  KIND(kDrillUndone, "drill.undone", kInfo, "What the fault did is taken back, or there was nothing to take back.")    \
  KIND(kDrillStopped, "drill.stopped", kWarning, "Nothing more is injected, as somebody asked.")                       \
  KIND(kDrillEnded, "drill.ended", kInfo, "The drill is over, or it was not heard of any more.")

enum class EventKind : std::uint8_t {
#define MONARCH_EVENT_KIND(kind, name, severity, meaning) kind,
  MONARCH_EVENT_KINDS(MONARCH_EVENT_KIND)
#undef MONARCH_EVENT_KIND
};

struct EventKindFacts {
  EventKind kind;
  std::string_view name;
  Severity severity;
  std::string_view meaning;
};

inline constexpr std::array kEventKinds = {
#define MONARCH_EVENT_KIND(kind, name, severity, meaning) \
  EventKindFacts{EventKind::kind, name, Severity::severity, meaning},
    MONARCH_EVENT_KINDS(MONARCH_EVENT_KIND)
#undef MONARCH_EVENT_KIND
};

constexpr EventKind monarch_enum_max(EventKind) { return kEventKinds.back().kind; }
constexpr const EventKindFacts& facts_of(EventKind kind) { return kEventKinds[static_cast<std::size_t>(kind)]; }
constexpr std::string_view name_of(EventKind kind) { return facts_of(kind).name; }

// Nothing: no kind has that name.
constexpr std::optional<EventKind> event_kind_of(std::string_view name) {
  for (const EventKindFacts& facts : kEventKinds) {
    if (facts.name == name) return facts.kind;
  }
  return std::nullopt;
}

// By name, so that who reads an older journal or speaks with an older supervisor reads what was meant.
template <class Writer>
void codec_write(Writer& writer, const EventKind& kind) {
  writer.string(name_of(kind));
}
template <class Reader>
bool codec_read(Reader& reader, EventKind& kind) {
  std::string_view name;
  if (!reader.string(name)) return false;
  const auto known = event_kind_of(name);
  if (!known) return reader.fail("an event of a kind that is not known");
  kind = *known;
  return true;
}

}  // namespace monarch
