#pragma once

// A supervisor's life on a journal, small enough to be repeated thousands of times. The core it stands for appends
// "input <lsn>" and its state is the list of all of them, so that every record's right content follows from its LSN.

#include <gtest/gtest.h>

#include <string>

#include "supervisor/journal/journal_reader.h"
#include "supervisor/journal/journal_writer.h"
#include "supervisor/journal/recover.h"
#include "transport/base/text.h"

namespace monarch::testing {

inline std::string payload_of(std::uint64_t lsn) { return text("input ", lsn, std::string(lsn % 7, '.')); }

inline AppendRecord input(Term term, std::uint64_t lsn) {
  return {RecordType::kInput, term, WallTime{static_cast<std::int64_t>(lsn)},
          Instant::since_boot(Duration::seconds(static_cast<std::int64_t>(lsn))), payload_of(lsn)};
}

// The state after a replay: every input, in order.
inline std::string replay(const JournalContents& contents) {
  std::string state = contents.snapshot ? contents.snapshot->bytes : std::string();
  for (const Record& record : contents.records) {
    if (record.type == RecordType::kInput) state += text(record.lsn, '=', record.payload, '\n');
  }
  return state;
}

// What is there is what was written, in order, without a hole.
inline void expect_only_truth(const JournalContents& contents) {
  std::uint64_t due = contents.snapshot ? contents.snapshot->lsn + 1 : 1;
  for (const Record& record : contents.records) {
    ASSERT_EQ(record.lsn, due++);
    if (record.type == RecordType::kInput) {
      ASSERT_EQ(record.payload, payload_of(record.lsn));
    }
  }
  ASSERT_EQ(contents.last_lsn, due - 1);
  for (const Record& record : contents.history) {
    ASSERT_LE(record.lsn, contents.snapshot->lsn);
    if (record.type == RecordType::kInput) {
      ASSERT_EQ(record.payload, payload_of(record.lsn));
    }
  }
}

struct StoryOptions {
  int batches = 8;
  int per_batch = 2;
  JournalWriterOptions writer;
};

struct StoryEnd {
  std::uint64_t acknowledged = 0;  // LSN
  Term term;
  std::string state;  // after all that was appended
};

// Recovers, appends in batches, takes a snapshot whenever one is due. Ends early when the directory fails.
inline StoryEnd live(JournalFiles& files, const StoryOptions& options) {
  StoryEnd end;
  auto recovered = recover_journal(files, {.wall = {}, .now = {}, .writer = options.writer});
  if (!recovered.ok()) return end;
  JournalWriter& writer = *recovered->writer;
  end.term = recovered->term;
  end.acknowledged = writer.durable_lsn();
  end.state = replay(recovered->contents);
  for (int batch = 0; batch < options.batches; ++batch) {
    for (int i = 0; i < options.per_batch; ++i) {
      const std::uint64_t lsn = writer.last_lsn() + 1;
      if (!writer.append(input(end.term, lsn)).ok()) return end;
      end.state += text(lsn, '=', payload_of(lsn), '\n');
    }
    const JournalHealth health = writer.flush();
    end.acknowledged = writer.durable_lsn();
    if (health != JournalHealth::kGood) return end;
    if (writer.snapshot_due())
      (void)writer.take_snapshot(end.state, {.term = end.term});  // it may fail; the story goes on
    end.acknowledged = writer.durable_lsn();
  }
  return end;
}

}  // namespace monarch::testing
