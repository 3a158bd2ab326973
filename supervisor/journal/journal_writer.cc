#include "supervisor/journal/journal_writer.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/little_endian.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Errors that pass when somebody makes room or mounts the file system again; any other is final.
bool may_pass(Errno failure) {
  return failure == ENOSPC || failure == EDQUOT || failure == EROFS || failure == ENOMEM || failure == EMFILE ||
         failure == ENFILE;
}

std::vector<std::string> segments_in_order(const std::vector<std::string>& names) {
  std::vector<std::pair<std::uint64_t, std::string>> numbered;
  for (const std::string& name : names) {
    if (const auto number = segment_number(name)) numbered.emplace_back(*number, name);
  }
  std::sort(numbered.begin(), numbered.end());
  std::vector<std::string> sorted;
  for (auto& [number, name] : numbered) sorted.push_back(std::move(name));
  return sorted;
}

}  // namespace

Result<std::unique_ptr<JournalWriter>> JournalWriter::create(JournalFiles& files, const JournalContents& so_far,
                                                             const JournalWriterOptions& options) {
  MONARCH_ASSERT_BECAUSE(so_far.usable(), "J5: a damaged journal is not continued");
  std::unique_ptr<JournalWriter> writer(new JournalWriter(files, options));
  MONARCH_ASSIGN(const std::vector<std::string> names, files.list());
  for (const std::string& name : segments_in_order(names)) {
    // Sizes are only for the budget of kept history: what an earlier supervisor left counts as one segment's worth.
    writer->old_segments_.push_back({name, so_far.last_lsn, options.segment_bytes});
  }
  writer->last_term_ = so_far.last_term;
  writer->durable_lsn_ = writer->last_lsn_ = so_far.proven_lsn;
  writer->durable_chain_ = writer->last_chain_ = so_far.proven_chain;
  writer->segment_number_ = so_far.last_segment;
  writer->next_snapshot_lsn_ = (so_far.snapshot ? so_far.snapshot->lsn : 0) + options.snapshot_every;
  for (const Record& record : so_far.unproven) {
    EncodedRecord encoded = encode_record(record, writer->last_chain_);
    writer->last_chain_ = encoded.crc;
    writer->last_lsn_ = record.lsn;
    writer->pending_bytes_ += encoded.bytes.size();
    writer->pending_.push_back({std::move(encoded.bytes), encoded.crc});
  }
  MONARCH_ASSERT_BECAUSE(writer->last_lsn_ == so_far.last_lsn && writer->last_chain_ == so_far.last_chain,
                         "records that are written again are the same to the bit");
  return writer;
}

Result<std::uint64_t> JournalWriter::append(const AppendRecord& append) {
  if (append.payload.size() > limits::kJournalPayloadBytes) {
    return Error{ErrorCode::kInvalid, text("a journal record of ", append.payload.size(), " bytes is larger than ",
                                           limits::kJournalPayloadBytes)};
  }
  if (health_ == JournalHealth::kFailed) return trouble_;
  if (pending_bytes_ + append.payload.size() > limits::kJournalPendingBytes) {
    return Error{ErrorCode::kBusy, text("the journal holds ", pending_bytes_, " bytes that wait for the disk")};
  }
  MONARCH_ASSERT_BECAUSE(append.term >= last_term_, "terms never go back in one journal");
  Record record;
  record.type = append.type;
  record.term = append.term;
  record.lsn = last_lsn_ + 1;
  record.synced_lsn = durable_lsn_;
  record.wall = append.wall;
  record.now = append.now;
  record.payload = append.payload;
  EncodedRecord encoded = encode_record(record, last_chain_);
  last_lsn_ = record.lsn;
  last_chain_ = encoded.crc;
  last_term_ = append.term;
  pending_bytes_ += encoded.bytes.size();
  pending_.push_back({std::move(encoded.bytes), encoded.crc});
  return last_lsn_;
}

JournalHealth JournalWriter::flush() {
  std::vector<FileBeside> none;
  return flush(none);
}

JournalHealth JournalWriter::flush(std::vector<FileBeside>& beside) {
  if (health_ == JournalHealth::kFailed || (pending_.empty() && beside.empty())) return health_;
  Errno failure = 0;
  for (int attempt = 0; attempt < 2; ++attempt) {  // this segment, then a fresh one
    failure = write_pending(beside);
    if (failure == 0) {
      health_ = JournalHealth::kGood;
      return health_;
    }
  }
  trouble_ = errno_error(text("write the journal ", segment_name_), failure);
  health_ = may_pass(failure) ? JournalHealth::kStuck : JournalHealth::kFailed;
  return health_;
}

// One write and one round of everything that waits; on failure the segment is given up.
Errno JournalWriter::write_pending(std::vector<FileBeside>& beside) {
  if (pending_.empty()) return sync_round(files_, {}, beside, waits_);
  if (segment_ != nullptr && segment_full()) {
    old_segments_.push_back({segment_name_, durable_lsn_, segment_size_});
    segment_.reset();
  }
  std::string bytes;
  const bool fresh = segment_ == nullptr;
  if (fresh) {
    const Errno failure = begin_segment();
    if (failure != 0) return failure;
    bytes = encode_segment_header({segment_number_, durable_lsn_ + 1, durable_chain_});
  }
  bytes.reserve(bytes.size() + pending_bytes_);
  for (const Pending& pending : pending_) bytes.append(pending.bytes);
  Errno failure = segment_->write(bytes);
  if (failure == 0) {
    failure = sync_round(files_, {.segment = segment_.get(), .new_segment = fresh}, beside, waits_);
  }
  if (failure != 0) {
    give_up_segment();
    return failure;
  }
  segment_size_ += bytes.size();
  segment_records_ += pending_.size();
  durable_lsn_ = last_lsn_;
  durable_chain_ = last_chain_;
  pending_.clear();
  pending_bytes_ = 0;
  return 0;
}

Errno JournalWriter::begin_segment() {
  Errno failure = EEXIST;
  // Numbers of segments that were given up stay used if they could not be removed.
  for (int tries = 0; failure == EEXIST && tries < 16; ++tries) {
    segment_name_ = segment_name(++segment_number_);
    failure = files_.create(segment_name_, segment_);
  }
  segment_size_ = 0;
  segment_records_ = 0;
  return failure;
}

// J4: never written again. One without a durable record of ours goes; one that cannot be removed does no harm, since
// the next segment starts where it starts.
void JournalWriter::give_up_segment() {
  segment_.reset();
  if (segment_records_ == 0) {
    (void)files_.remove(segment_name_);
    return;
  }
  old_segments_.push_back({segment_name_, durable_lsn_, segment_size_});
}

bool JournalWriter::segment_full() const {
  return segment_size_ >= options_.segment_bytes || segment_records_ >= options_.segment_records;
}

Status JournalWriter::take_snapshot(std::string_view state, const AppendRecord& stamp) {
  next_snapshot_lsn_ = last_lsn_ + options_.snapshot_every;
  if (state.size() > limits::kSnapshotBytes) {
    return Error{ErrorCode::kInvalid,
                 text("a snapshot of ", state.size(), " bytes is larger than ", limits::kSnapshotBytes)};
  }
  if (flush() != JournalHealth::kGood) return trouble_;
  const Snapshot snapshot{durable_lsn_, durable_chain_, last_term_, std::string(state)};
  const Errno failure = write_file_atomically(files_, std::string(kSnapshotName), encode_snapshot(snapshot));
  if (failure != 0) return errno_error("write the journal's snapshot", failure);

  // From here on the snapshot counts. The next segment starts right behind it; only when that one is durable are those
  // that the snapshot covers superfluous.
  if (segment_ != nullptr) {
    old_segments_.push_back({segment_name_, durable_lsn_, segment_size_});
    segment_.reset();
  }
  AppendRecord note = stamp;
  note.type = RecordType::kSnapshotTaken;
  note.payload.clear();
  little_endian::put(note.payload, snapshot.lsn);
  little_endian::put(note.payload, snapshot.chain);
  const Result<std::uint64_t> noted = append(note);
  if (!noted.ok()) return noted.error();
  if (flush() != JournalHealth::kGood) return trouble_;
  delete_covered_segments(snapshot.lsn);
  return {};
}

void JournalWriter::delete_covered_segments(std::uint64_t snapshot_lsn) {
  std::size_t kept = 0;
  for (const OldSegment& old : old_segments_) kept += old.bytes;
  while (!old_segments_.empty() && kept > options_.history_bytes && old_segments_.front().last_lsn <= snapshot_lsn) {
    const Errno failure = files_.remove(old_segments_.front().name);
    if (failure != 0 && failure != ENOENT) return;  // it stays in the list: tried again after the next snapshot
    kept -= old_segments_.front().bytes;
    old_segments_.erase(old_segments_.begin());
  }
}

bool JournalWriter::deleted() { return files_.deleted() || (segment_ != nullptr && segment_->deleted()); }

}  // namespace monarch
