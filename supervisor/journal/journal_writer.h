#pragma once

// JournalWriter: appends records to the newest segment and makes them durable in batches: append(), append(), flush().
// A failed write or sync poisons the file (J4): nothing is ever written to it again; what was not yet durable is
// written anew to a fresh segment, and if that fails as well the writer is stuck (no space, read-only: flush() again
// later) or has failed (the supervisor steps down with exit 74). It decides no policy and knows no record's meaning.
//
// Thread: one, the journal thread's. Lifetime: shorter than its JournalFiles'.

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/journal/journal_contents.h"
#include "supervisor/journal/journal_files.h"
#include "supervisor/journal/record.h"
#include "supervisor/journal/sync_round.h"
#include "transport/base/limits.h"
#include "transport/base/result.h"

namespace monarch {

// What the writer adds to a record: lsn and synced_lsn.
struct AppendRecord {
  RecordType type = RecordType::kInput;
  Term term;
  WallTime wall;
  Instant now;
  std::string payload;
};

struct JournalWriterOptions {
  std::size_t segment_bytes = 4U << 20U;
  std::uint64_t segment_records = limits::kSnapshotEvery;
  std::uint64_t snapshot_every = limits::kSnapshotEvery;
  // Segments that a snapshot covers are kept for `events` up to this many bytes, then the oldest goes first.
  std::size_t history_bytes = 8U << 20U;
};

enum class JournalHealth : std::uint8_t {
  kGood,    // all that was flushed is durable
  kStuck,   // no space or read-only: nothing is lost, nothing new is durable; flush() again later
  kFailed,  // the storage answered what leaves no way on; final
};

class JournalWriter {
 public:
  // Goes on after what was read. Writes nothing before the first flush(), which begins a new segment: records that
  // nothing proves to be on disk are written there again, so an earlier lost sync does no harm.
  static Result<std::unique_ptr<JournalWriter>> create(JournalFiles& files, const JournalContents& so_far,
                                                       const JournalWriterOptions& options = {});
  JournalWriter(const JournalWriter&) = delete;
  JournalWriter& operator=(const JournalWriter&) = delete;

  // The record's LSN; it is durable once durable_lsn() reaches it. kInvalid: the payload is too large. kBusy: too much
  // waits for the disk (only while stuck). A refused record leaves no trace.
  Result<std::uint64_t> append(const AppendRecord& record);

  // Writes what waits, with one sync.
  JournalHealth flush();
  // And makes these files of the directory durable in the same round. What became of each it says itself: while the
  // answer is kStuck, they are for the next flush.
  JournalHealth flush(std::vector<FileBeside>& beside);

  JournalHealth health() const { return health_; }
  // What was tried and what the system answered, while not kGood.
  const Error& trouble() const { return trouble_; }

  std::uint64_t last_lsn() const { return last_lsn_; }
  std::uint64_t durable_lsn() const { return durable_lsn_; }
  // Waits for the disk, one after the other, that flushes have made.
  std::uint64_t waits() const { return waits_; }

  // Enough records since the last snapshot, or since the last attempt at one.
  bool snapshot_due() const { return last_lsn_ >= next_snapshot_lsn_; }
  // `state` is the core's after every record appended so far; flushes them first. A failure costs nothing but the
  // attempt: the journal goes on, and asks again after as many records. On success old segments are deleted.
  Status take_snapshot(std::string_view state, const AppendRecord& stamp);

  // Whether the directory or the segment has been removed under us (S07).
  bool deleted();

 private:
  struct Pending {
    std::string bytes;
    std::uint32_t crc;
  };
  struct OldSegment {
    std::string name;
    std::uint64_t last_lsn;
    std::size_t bytes;
  };

  JournalWriter(JournalFiles& files, const JournalWriterOptions& options) : files_(files), options_(options) {}
  Errno write_pending(std::vector<FileBeside>& beside);
  Errno begin_segment();
  void give_up_segment();
  void delete_covered_segments(std::uint64_t snapshot_lsn);
  bool segment_full() const;

  JournalFiles& files_;
  JournalWriterOptions options_;
  JournalHealth health_ = JournalHealth::kGood;
  Error trouble_;

  std::uint64_t last_lsn_ = 0;
  std::uint32_t last_chain_ = 0;
  Term last_term_;
  std::uint64_t durable_lsn_ = 0;
  std::uint32_t durable_chain_ = 0;
  std::uint64_t waits_ = 0;
  std::deque<Pending> pending_;  // records durable_lsn_ + 1 to last_lsn_
  std::size_t pending_bytes_ = 0;
  std::uint64_t next_snapshot_lsn_ = 0;

  std::unique_ptr<JournalFile> segment_;  // nullptr: begin one before the next write
  std::string segment_name_;
  std::uint64_t segment_number_ = 0;
  std::size_t segment_size_ = 0;
  std::uint64_t segment_records_ = 0;
  std::vector<OldSegment> old_segments_;  // oldest first
};

}  // namespace monarch
