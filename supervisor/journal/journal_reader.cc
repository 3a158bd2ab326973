#include "supervisor/journal/journal_reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// What a writer of ours leaves is far below; a larger file is not read into memory.
constexpr std::size_t kFileBytes = 64U << 20U;
constexpr int kLooks = 4;

// Nothing if a file vanished between listing and reading.
Result<std::optional<JournalImage>> read_image(JournalFiles& files) {
  JournalImage image;
  // The snapshot first: one that is too old for the segments that are left is seen as a hole, and looked at again.
  auto snapshot = files.read(std::string(kSnapshotName), 0, kFileBytes);
  if (snapshot.ok()) {
    image.snapshot = std::move(*snapshot);
  } else if (snapshot.error().code != ErrorCode::kNotFound) {
    return snapshot.error();
  }
  MONARCH_ASSIGN(const std::vector<std::string> names, files.list());
  std::vector<std::pair<std::uint64_t, std::string>> segments;
  for (const std::string& name : names) {
    if (const auto number = segment_number(name)) segments.emplace_back(*number, name);
  }
  std::sort(segments.begin(), segments.end());
  for (const auto& [number, name] : segments) {
    auto bytes = files.read(name, 0, kFileBytes + 1);
    if (!bytes.ok() && bytes.error().code == ErrorCode::kNotFound) return std::optional<JournalImage>();
    if (!bytes.ok()) return bytes.error();
    if (bytes->size() > kFileBytes) {
      return Error{ErrorCode::kInvalid, text(name, " is larger than ", kFileBytes, " bytes: not a journal of ours")};
    }
    image.segments.push_back({name, std::move(*bytes)});
  }
  return std::optional(std::move(image));
}

}  // namespace

Result<JournalContents> read_journal(JournalFiles& files) {
  std::optional<JournalContents> refused;
  for (int look = 0; look < kLooks; ++look) {
    MONARCH_ASSIGN(const std::optional<JournalImage> image, read_image(files));
    if (!image) continue;
    JournalContents contents = parse_journal(*image);
    const bool same = refused && refused->end_file == contents.end_file && refused->end_offset == contents.end_offset;
    if (contents.usable() || same) return contents;
    refused = std::move(contents);
  }
  if (refused) return std::move(*refused);
  return Error{ErrorCode::kBusy, "read the journal: its files are being replaced faster than they can be read"};
}

JournalFollower::JournalFollower(JournalFiles& files, const JournalContents& so_far)
    : files_(files),
      file_(so_far.end_file),
      offset_(so_far.end_offset),
      lsn_(so_far.last_lsn),
      chain_(so_far.last_chain) {}

Result<JournalFollower::News> JournalFollower::poll() {
  News news;
  MONARCH_ASSIGN(const bool unclear, read_on(news));
  MONARCH_ASSIGN(const bool newer, newer_segment());
  if (unclear || newer) MONARCH_TRY(read_again(news));
  return news;
}

// What was appended to the segment that was read last. True if it holds new bytes that make no whole record here.
Result<bool> JournalFollower::read_on(News& news) {
  if (!segment_number(file_)) return false;
  auto read = files_.read(file_, offset_, kFileBytes);
  if (!read.ok() && read.error().code == ErrorCode::kNotFound) return false;
  if (!read.ok()) return read.error();
  std::string_view bytes = *read;
  if (bytes.size() == judged_bytes_) return false;
  while (!bytes.empty()) {
    auto decoded = decode_record(bytes, chain_);
    auto* found = std::get_if<DecodedRecord>(&decoded);
    if (found == nullptr || found->record.lsn != lsn_ + 1) break;
    if (!is_known(found->record) && !is_skippable(found->record)) {
      return Error{ErrorCode::kUnsupported, text(file_, " at byte ", offset_, ": ", why_unknown(found->record))};
    }
    lsn_ = found->record.lsn;
    chain_ = found->crc;
    offset_ += found->size;
    bytes.remove_prefix(found->size);
    if (is_known(found->record)) news.records.push_back(std::move(found->record));
  }
  // What is left is torn, or just being written, or repeats what an earlier segment holds: read_again() tells.
  judged_bytes_ = bytes.size();
  return !bytes.empty();
}

Result<bool> JournalFollower::newer_segment() const {
  const std::uint64_t current = segment_number(file_).value_or(0);
  MONARCH_ASSIGN(const std::vector<std::string> names, files_.list());
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return segment_number(name).value_or(0) > current; });
}

Status JournalFollower::read_again(News& news) {
  MONARCH_ASSIGN(JournalContents contents, read_journal(files_));
  if (!contents.usable()) return Error{ErrorCode::kInvalid, contents.describe_end()};
  const std::uint64_t before = lsn_;
  std::uint64_t first = contents.last_lsn + 1;
  for (auto* records : {&contents.history, &contents.records}) {
    for (Record& record : *records) {
      first = std::min(first, record.lsn);
      if (record.lsn > before) news.records.push_back(std::move(record));
    }
  }
  if (first > before + 1) news.missed = first - before - 1;
  // A segment that was begun and not yet written to does not take us back.
  if (contents.last_lsn < before) return {};
  lsn_ = contents.last_lsn;
  chain_ = contents.last_chain;
  if (file_ != contents.end_file || offset_ != contents.end_offset) judged_bytes_ = 0;
  file_ = contents.end_file;
  offset_ = contents.end_offset;
  return {};
}

}  // namespace monarch
