#include "supervisor/journal/journal_contents.h"

#include <algorithm>
#include <utility>

#include "transport/base/little_endian.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Checksums tried while looking for a record behind a broken place; what would need more is called damaged.
constexpr std::size_t kSearchBudgetBytes = 64U << 20U;

std::string_view fault_text(RecordFault fault) {
  switch (fault) {
    case RecordFault::kIncomplete: return "the record is cut short";
    case RecordFault::kGarbage: return "no record starts here";
    case RecordFault::kChecksum: return "the record has a wrong checksum";
  }
  return "";
}

// Whether the bytes behind a broken place at `offset` hold a record that says that `due_lsn`, the one which should be
// at `offset`, was on disk. Such a record chains over the four bytes before it or, if those are the broken ones, over
// the checksum that the record at `offset` should have had.
bool vouched_for(std::string_view bytes, std::size_t offset, std::uint64_t due_lsn, std::uint32_t chain) {
  const std::string_view broken = bytes.substr(std::min(offset, bytes.size()));
  std::optional<std::uint32_t> should_have;
  if (const auto claim = claimed_record(broken)) should_have = record_crc(broken, claim->size, chain);
  std::size_t budget = kSearchBudgetBytes;
  for (std::size_t at = find_record_magic(bytes, offset + 1); at != std::string_view::npos;
       at = find_record_magic(bytes, at + 1)) {
    const std::string_view candidate = bytes.substr(at);
    const auto claim = claimed_record(candidate);
    if (!claim || at < 4 || claim->synced_lsn < due_lsn || claim->lsn <= claim->synced_lsn) continue;
    if (budget < 2 * claim->size) return true;
    budget -= 2 * claim->size;
    const auto before = little_endian::get<std::uint32_t>(bytes, at - 4);
    if (record_crc(candidate, claim->size, before) == claim->stored_crc) return true;
    if (should_have && record_crc(candidate, claim->size, *should_have) == claim->stored_crc) return true;
  }
  return false;
}

class Assembler {
 public:
  explicit Assembler(const JournalImage& image) {
    if (image.snapshot) read_snapshot(*image.snapshot);
    for (const auto& segment : image.segments) {
      contents_.last_segment = std::max(contents_.last_segment, segment_number(segment.name).value_or(0));
      if (contents_.usable()) read_segment(segment);
    }
    if (contents_.usable()) check_against_snapshot(image);
    hand_over();
  }

  JournalContents take() { return std::move(contents_); }

 private:
  struct Kept {
    Record record;
    std::uint32_t crc;
  };

  std::uint64_t snapshot_lsn() const { return contents_.snapshot ? contents_.snapshot->lsn : 0; }
  std::uint64_t last_lsn() const { return base_lsn_ + kept_.size(); }
  // The record that has to come next in the segment that is being read.
  std::uint64_t due_lsn() const { return started_ ? at_lsn_ + 1 : snapshot_lsn() + 1; }
  // The crc of record `lsn`, which is between base_lsn_ and last_lsn().
  std::uint32_t chain_at(std::uint64_t lsn) const {
    return lsn == base_lsn_ ? base_chain_ : kept_[static_cast<std::size_t>(lsn - base_lsn_ - 1)].crc;
  }

  // None for what is no longer there.
  Term term_at(std::uint64_t lsn) const {
    return lsn == base_lsn_ ? Term() : kept_[static_cast<std::size_t>(lsn - base_lsn_ - 1)].record.term;
  }

  void end(JournalEnd how, std::string why) {
    contents_.end = how;
    contents_.why = std::move(why);
  }
  void refuse_at(const std::string& file, std::uint64_t offset, JournalEnd how, std::string why) {
    contents_.end_file = file;
    contents_.end_offset = offset;
    end(how, std::move(why));
  }

  void read_snapshot(const std::string& bytes) {
    auto snapshot = decode_snapshot(bytes);
    if (snapshot.ok()) {
      contents_.snapshot = std::move(*snapshot);
      return;
    }
    const bool another = snapshot.error().code == ErrorCode::kUnsupported;
    refuse_at(std::string(kSnapshotName), 0, another ? JournalEnd::kUnsupported : JournalEnd::kDamaged,
              snapshot.error().message);
  }

  void read_segment(const JournalImage::Segment& segment) {
    const auto header = decode_segment_header(segment.bytes);
    if (!header.ok()) {
      if (header.error().code == ErrorCode::kUnsupported) {
        refuse_at(segment.name, 0, JournalEnd::kUnsupported, header.error().message);
      } else {
        cut(segment, 0, header.error().message);
      }
      return;
    }
    if (!place(segment, *header)) return;
    end(JournalEnd::kClean, "");
    contents_.end_file = segment.name;
    contents_.end_offset = kSegmentHeaderBytes;
    while (contents_.usable() && contents_.end_offset < segment.bytes.size()) {
      if (!read_record(segment)) return;
    }
  }

  // The valid prefix ends here, unless a later segment starts at or before the same record.
  void cut(const JournalImage::Segment& segment, std::uint64_t offset, std::string_view why) {
    const bool earlier_cut = contents_.end == JournalEnd::kTorn;
    if (!earlier_cut) refuse_at(segment.name, offset, JournalEnd::kTorn, std::string(why));
    if (vouched_for(segment.bytes, static_cast<std::size_t>(offset), due_lsn(), started_ ? chain_at(at_lsn_) : 0)) {
      contents_.end = JournalEnd::kDamaged;
    }
  }

  bool place(const JournalImage::Segment& segment, const SegmentHeader& header) {
    const std::uint64_t before = header.first_lsn - 1;
    if (started_ && before <= last_lsn() && before >= base_lsn_) {
      if (before < proven_lsn_) return refuse_place(segment, "the segment takes back records that were on disk");
      if (chain_at(before) != header.seed)
        return refuse_place(segment, "the segment does not follow the one before it");
    } else {
      if (before > snapshot_lsn() || (started_ && before < base_lsn_)) {
        // Name the torn place if there is one: that is where the records were.
        if (contents_.end == JournalEnd::kTorn) {
          contents_.end = JournalEnd::kDamaged;
          return false;
        }
        return refuse_place(segment, text("records ", std::max(last_lsn(), snapshot_lsn()) + 1, " to ", before,
                                          " are missing before this segment"));
      }
      // The first segment, or the first behind a hole that the snapshot covers.
      const std::uint32_t expected = contents_.snapshot && before == snapshot_lsn() ? contents_.snapshot->chain : 0;
      if ((before == 0 || before == snapshot_lsn()) && header.seed != expected) {
        return refuse_place(segment, "the segment does not follow the snapshot");
      }
      kept_.clear();
      base_lsn_ = before;
      base_chain_ = header.seed;
      started_ = true;
    }
    at_lsn_ = before;
    proven_lsn_ = std::max(proven_lsn_, before);
    return true;
  }

  bool refuse_place(const JournalImage::Segment& segment, std::string why) {
    refuse_at(segment.name, 0, JournalEnd::kDamaged, std::move(why));
    return false;
  }

  bool read_record(const JournalImage::Segment& segment) {
    const auto offset = static_cast<std::size_t>(contents_.end_offset);
    auto decoded = decode_record(std::string_view(segment.bytes).substr(offset), chain_at(at_lsn_));
    if (const auto* fault = std::get_if<RecordFault>(&decoded)) {
      cut(segment, offset, fault_text(*fault));
      return false;
    }
    DecodedRecord& found = *std::get_if<DecodedRecord>(&decoded);
    const Record& record = found.record;
    if (record.lsn != due_lsn() || record.synced_lsn >= record.lsn || record.term < term_at(at_lsn_) ||
        record.term.value() >= kLargestNumber) {
      refuse_at(segment.name, offset, JournalEnd::kDamaged,
                text("record ", record.lsn, " of term ", record.term.value(), " stands where record ", due_lsn(),
                     " of term ", term_at(at_lsn_).value(), " or later is due"));
      return false;
    }
    if (!is_known(record) && !is_skippable(record)) {
      refuse_at(segment.name, offset, JournalEnd::kUnsupported, why_unknown(record));
      return false;
    }
    proven_lsn_ = std::max(proven_lsn_, record.synced_lsn);
    contents_.end_offset += found.size;
    keep(std::move(found));
    return true;
  }

  // A record that an earlier segment has too is the same one, written again. It is there from whichever of the two is
  // whole: a crash may have cut the second before it reached the end of the first.
  void keep(DecodedRecord found) {
    ++at_lsn_;
    const auto index = static_cast<std::size_t>(at_lsn_ - base_lsn_ - 1);
    if (index < kept_.size() && kept_[index].crc == found.crc) return;
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(index), kept_.end());
    kept_.push_back({std::move(found.record), found.crc});
  }

  void check_against_snapshot(const JournalImage& image) {
    if (!contents_.snapshot) return;
    const std::uint64_t lsn = snapshot_lsn();
    if (!started_ || last_lsn() < lsn) {
      const std::string file = image.segments.empty() ? std::string(kSnapshotName) : contents_.end_file;
      refuse_at(file, contents_.end_offset, JournalEnd::kDamaged,
                text("the records end at ", started_ ? last_lsn() : 0, ", before the snapshot at ", lsn));
    } else if (chain_at(lsn) != contents_.snapshot->chain) {
      refuse_at(std::string(kSnapshotName), 0, JournalEnd::kDamaged, "the snapshot is not one of these records");
    }
    proven_lsn_ = std::max(proven_lsn_, lsn);
  }

  void hand_over() {
    contents_.last_lsn = std::max(last_lsn(), snapshot_lsn());
    contents_.last_chain = last_lsn() >= snapshot_lsn() ? chain_at(last_lsn()) : contents_.snapshot->chain;
    contents_.last_term = std::max(term_at(last_lsn()), contents_.snapshot ? contents_.snapshot->term : Term());
    contents_.proven_lsn = std::min(proven_lsn_, contents_.last_lsn);
    const bool readable = contents_.proven_lsn >= base_lsn_ && contents_.proven_lsn <= last_lsn();
    contents_.proven_chain = readable ? chain_at(contents_.proven_lsn) : contents_.last_chain;
    for (Kept& kept : kept_) {
      if (kept.record.lsn > contents_.proven_lsn) contents_.unproven.push_back(kept.record);
      if (!is_known(kept.record)) continue;  // skippable: read_record refused the others
      auto& to = kept.record.lsn <= snapshot_lsn() ? contents_.history : contents_.records;
      to.push_back(std::move(kept.record));
    }
  }

  JournalContents contents_;
  std::vector<Kept> kept_;  // records base_lsn_ + 1, base_lsn_ + 2, …
  std::uint64_t base_lsn_ = 0;
  std::uint32_t base_chain_ = 0;
  bool started_ = false;
  std::uint64_t at_lsn_ = 0;  // the record that was read last
  std::uint64_t proven_lsn_ = 0;
};

}  // namespace

std::string JournalContents::describe_end() const {
  return why.empty() ? std::string() : text(end_file, " at byte ", end_offset, ": ", why);
}

JournalContents parse_journal(const JournalImage& image) { return Assembler(image).take(); }

}  // namespace monarch
