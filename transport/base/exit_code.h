#pragma once

// What our processes exit with: `monarch`, its supervisor, and the keepers and workers on the hosts. A rank's own code
// wins over all of them: `run`, `attach` and `wait` exit as the job did, and verdict.json says which it was and why.
// Two names have one number where one meaning must not be taken for the other.
//
// Thread: constants.

namespace monarch {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;        // a check, a workspace or a rank failed, whichever was asked about
inline constexpr int kExitHung = 1;          // a rank made no progress: it has no end of its own
inline constexpr int kExitQuit = 1;          // a rank of actors ended by itself, with 0
inline constexpr int kExitStill = 1;         // `monarch-worker end`: processes of the job live on
inline constexpr int kExitUsage = 2;         // the command line or the spec
inline constexpr int kExitBadPlugin = 2;     // monarch-rank: wrong for ever, so no restart (fatal_exit_codes)
inline constexpr int kExitHostKey = 3;       // a host key was refused
inline constexpr int kExitUnreachable = 69;  // hosts that could not be reached in time, or ports that are taken
inline constexpr int kExitOrphaned = 69;     // a worker: no supervisor was heard of for orphan_ttl, and no rank lives
inline constexpr int kExitInternal = 70;     // ours; a keeper: the guarded process could not be kept alive
inline constexpr int kExitCutOff = 71;       // monarch-rank: it lived, and no call reached it any more
inline constexpr int kExitJournal = 74;      // the journal could not be written or read
inline constexpr int kExitOutput = 74;       // a command's: what it was to print is lost
inline constexpr int kExitBusy = 75;         // another supervisor holds the job
inline constexpr int kExitSuperseded = 75;   // a supervisor: another one of a later term has taken its job meanwhile
inline constexpr int kExitLost = 92;         // a host, preemption or the time limit ended it; requeue may help
inline constexpr int kExitTimeout = 124;     // --timeout
inline constexpr int kExitNotExecutable = 126;  // a program that is there, as shells say it
inline constexpr int kExitNotFound = 127;       // a program, as shells say it
inline constexpr int kExitSignalBase = 128;     // plus the signal that ended it, as shells say it
inline constexpr int kExitHangup = 129;
inline constexpr int kExitInterrupted = 130;
inline constexpr int kExitStopped = 143;  // by somebody else, or by TERM

}  // namespace monarch
