#pragma once

// sync_round(): makes what was written to a folder durable in one round, with two waits for the disk at most: the
// bytes of all files side by side, then, where there are new names, the folder once. A name appears only when the
// bytes of the segment and its own are durable.
//
// Thread: one at a time, as JournalFiles.

#include <cstdint>
#include <string>
#include <vector>

#include "supervisor/journal/journal_files.h"

namespace monarch {

// A file of the folder that becomes durable beside records.
struct FileBeside {
  enum class Stage : std::uint8_t {
    kWritten,  // its bytes are not known to be durable
    kSynced,   // they are
    kNamed,    // and its name was given to it, or it had one
    kDurable,  // and that is durable
    kFailed,   // for good (J4): the kernel may have dropped what could not be synced, and says that once
  };
  std::string name;
  bool aside = false;  // its bytes lie at aside_of(name), and get the name once they are durable
  Stage stage = Stage::kWritten;
  Errno failure = 0;  // of kFailed
};

struct SyncRound {
  JournalFile* segment = nullptr;  // nothing: records are not among it
  bool new_segment = false;        // its name is new
};

// What the segment or the folder answered; each file beside has its own answer. A round that is repeated does only
// what is left of it. Counts the waits.
Errno sync_round(JournalFiles& files, const SyncRound& round, std::vector<FileBeside>& beside, std::uint64_t& waits);

}  // namespace monarch
