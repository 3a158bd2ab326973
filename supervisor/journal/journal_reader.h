#pragma once

// Reading the journal of a directory: at recovery, and by `ps`, `status` and `events` while its supervisor lives, has
// gone, or runs on another host. Readers never write and take no lock: what they see is a valid prefix.
//
// Thread: any one; it touches the file system, so not a loop whose heartbeats matter.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/journal/journal_contents.h"
#include "supervisor/journal/journal_files.h"
#include "transport/base/result.h"

namespace monarch {

// An error only if the directory or a file cannot be read; damage is in the contents. No journal at all is empty
// contents. While a writer rolls segments under the reader it looks again, so damage that is reported was seen twice.
Result<JournalContents> read_journal(JournalFiles& files);

// The records that come after what it started with, as they are written. Ask when the directory changed (inotify) or
// by a timer. Lifetime: shorter than its JournalFiles'.
class JournalFollower {
 public:
  // Starts behind `so_far`.
  JournalFollower(JournalFiles& files, const JournalContents& so_far);

  struct News {
    std::vector<Record> records;
    std::uint64_t missed = 0;  // records that were deleted before they were seen
  };
  // kInvalid: the journal is damaged; the message names file and offset.
  Result<News> poll();

 private:
  Result<bool> read_on(News& news);
  Result<bool> newer_segment() const;
  Status read_again(News& news);

  JournalFiles& files_;
  std::string file_;
  std::uint64_t offset_;
  std::uint64_t lsn_;
  std::uint32_t chain_;
  std::size_t judged_bytes_ = 0;  // behind offset_, already found to hold no whole record
};

}  // namespace monarch
