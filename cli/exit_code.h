#pragma once

// The exit codes of `monarch`. A rank's own code wins over all of them: `run`, `attach` and `wait` exit as the job did, and
// verdict.json says which it was and why.
//
// Thread: constants.

namespace monarch {

enum ExitCode : int {
  kExitOk = 0,
  kExitUsage = 2,         // the command line or the spec
  kExitHostKey = 3,       // a host key was refused
  kExitUnreachable = 69,  // hosts that could not be reached in time
  kExitInternal = 70,     // ours
  kExitJournal = 74,      // the journal could not be written or read
  kExitBusy = 75,         // another supervisor holds the job
  kExitLost = 92,         // a host, preemption or the time limit ended it; requeue may help
  kExitTimeout = 124,     // --timeout
  kExitNotExecutable = 126,
  kExitNotFound = 127,
  kExitHangup = 129,
  kExitInterrupted = 130,
  kExitStopped = 143,  // by somebody else, or by TERM
};

}  // namespace monarch
