#pragma once

// How a supervisor takes over a journal (J6): read it, refuse a damaged one, begin a new segment with TERM e+1 and sync
// it; only then may its caller bind a socket. The caller holds the job's lock. A new job is the case of no files.
//
// Thread: any one, before the journal's own thread starts.

#include <memory>
#include <vector>

#include "supervisor/journal/journal_contents.h"
#include "supervisor/journal/journal_files.h"
#include "supervisor/journal/journal_writer.h"
#include "transport/base/result.h"

namespace monarch {

// Of who takes a job over by force: the one before, which may have another copy of this journal and may start again
// many times, does not reach the terms of this one. Whoever promised one of these refuses it.
inline constexpr std::uint64_t kForcedTermStep = 1'000'000;

struct RecoverOptions {
  WallTime wall;
  Instant now;
  JournalWriterOptions writer;
  bool forced = false;
  std::vector<FileBeside> beside = {};  // what has to be durable as TERM has
};

struct RecoveredJournal {
  JournalContents contents;  // as found; `end` and `why` tell of a torn tail, which is to be reported
  Term term;                 // ours
  std::unique_ptr<JournalWriter> writer;
};

// kInvalid: damaged (file, offset and reason in the message). kUnsupported: of another format. kBusy: no space. Other
// codes: the storage fails (exit 74).
Result<RecoveredJournal> recover_journal(JournalFiles& files, const RecoverOptions& options);

}  // namespace monarch
