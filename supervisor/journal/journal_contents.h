#pragma once

// What a journal says, from the bytes of its files: the pure core of every reader. It never invents: what it returns is
// the snapshot and a prefix of what was written, and `end` says how that prefix ends. A tail that was never known to be
// on disk may be cut (S04); a byte that changed where something later vouches for it is damage and refused (S05).
//
// Thread: values and a pure function.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/journal/journal_layout.h"
#include "supervisor/journal/record.h"

namespace monarch {

struct JournalImage {
  struct Segment {
    std::string name;
    std::string bytes;
  };
  std::optional<std::string> snapshot;  // bytes of `snap`
  std::vector<Segment> segments;        // in order of their numbers
};

enum class JournalEnd : std::uint8_t {
  kClean,        // ends with a whole record
  kTorn,         // the last batch is cut: normal after a crash, and while somebody writes
  kDamaged,      // refuse: `file`, `offset` and `why` name the place
  kUnsupported,  // refuse: a build with another format wrote this (J5); `why` names both
};

struct JournalContents {
  std::optional<Snapshot> snapshot;
  std::vector<Record> history;  // what the snapshot covers and is still there; to be shown, not replayed
  std::vector<Record> records;  // after the snapshot

  std::uint64_t last_lsn = 0;
  std::uint32_t last_chain = 0;  // crc of that record
  Term last_term;
  std::uint64_t proven_lsn = 0;  // a later byte says that all up to here were on disk
  std::uint32_t proven_chain = 0;
  std::vector<Record> unproven;    // those of `records` after proven_lsn, with the types that this build passes over
  std::uint64_t last_segment = 0;  // highest number in use, whether readable or not

  // Where the valid prefix ends, and so where a follower goes on.
  std::string end_file;
  std::uint64_t end_offset = 0;

  JournalEnd end = JournalEnd::kClean;
  std::string why;  // empty if clean

  bool usable() const { return end == JournalEnd::kClean || end == JournalEnd::kTorn; }
  // "journal.0002 at byte 512: …" for any end but a clean one.
  std::string describe_end() const;
};

JournalContents parse_journal(const JournalImage& image);

}  // namespace monarch
