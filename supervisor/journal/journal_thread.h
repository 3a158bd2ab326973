#pragma once

// JournalThread: the only thread that touches the state directory while a job runs, so that a slow disk (S03) stalls
// no heartbeat. It appends records and writes the other files of the directory with one round of syncs per batch, and
// takes snapshots, strictly in the order of the requests. Each request is answered by exactly one report that names
// its ticket. A batch that nobody waits for has a little time for company: most of what ranks say at their beginnings
// and ends is synced with the next record that lets a message go.
//
// Without space (S01, S08) it says kStuck once, holds everything in order, and tries again each second; the requests
// that wait fill the bounded inbox, and submit() answers false. When the storage fails (S02), or the directory is
// removed under it (S07), it says JournalFailed and refuses whatever comes: the supervisor steps down with exit 74.
//
// Thread: submit() and begin_stop() from any. Lifetime: the reports inbox outlives it; the destructor stops and joins.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/journal/journal_files.h"
#include "supervisor/journal/journal_writer.h"
#include "transport/base/result.h"
#include "transport/loop/inbox.h"
#include "transport/loop/joining_thread.h"

namespace monarch {

struct AppendRequest {
  std::uint64_t ticket = 0;
  std::vector<AppendRecord> records;    // all or none; none: what was submitted before is waited for
  std::vector<FileBeside> beside = {};  // what has to be durable as these have
  bool patient = false;                 // nobody waits for them
};
// Replaces a file of the state directory as a whole, mode 0600. `name` is one component and not one of the journal's.
struct WriteFileRequest {
  std::uint64_t ticket = 0;
  std::string name;
  std::string bytes;
};
// `state` is the core's after all records that were submitted before.
struct SnapshotRequest {
  std::uint64_t ticket = 0;
  std::string state;
  AppendRecord stamp;  // term and times; type and payload are the journal's
};
using JournalRequest = std::variant<AppendRequest, WriteFileRequest, SnapshotRequest>;

struct RecordsDurable {
  std::uint64_t ticket = 0;
  std::uint64_t durable_lsn = 0;
  bool snapshot_due = false;
  Duration took = {};          // its write and sync: how the disk is doing
  std::uint64_t waits = 0;     // for the disk, one after the other, that somebody waited for so far
  std::uint64_t unwaited = 0;  // and others
};
struct FileWritten {
  std::uint64_t ticket = 0;
};
struct SnapshotTaken {
  std::uint64_t ticket = 0;
};
// That request was not done; later ones may be.
struct RequestRefused {
  std::uint64_t ticket = 0;
  Error why;
};
struct JournalStuck {
  Error why;
};
struct JournalUnstuck {};
struct JournalFailed {
  Error why;
};
// The last report. `drained`: everything that was submitted before begin_stop() has been done.
struct JournalStopped {
  bool drained = false;
};
using JournalReport = std::variant<RecordsDurable, FileWritten, SnapshotTaken, RequestRefused, JournalStuck,
                                   JournalUnstuck, JournalFailed, JournalStopped>;

struct JournalThreadOptions {
  std::unique_ptr<JournalFiles> files;
  std::unique_ptr<JournalWriter> writer;  // made on those files
  Inbox<JournalReport>* reports = nullptr;
  std::size_t capacity = 4096;  // requests that wait; submit() answers false beyond
  Duration retry_every = Duration::seconds(1);
  Duration look_every = Duration::seconds(2);     // for a removed directory
  Duration patience = Duration::milliseconds(5);  // of patient requests, for one that is not
};

class JournalThread {
 public:
  static Result<std::unique_ptr<JournalThread>> start(JournalThreadOptions options);
  JournalThread(const JournalThread&) = delete;
  JournalThread& operator=(const JournalThread&) = delete;
  ~JournalThread();

  // False: full, the request was not taken. The caller defers what would need it.
  [[nodiscard]] bool submit(JournalRequest request) { return requests_->put(std::move(request)); }
  // Does what was submitted, then reports JournalStopped and ends. A stuck journal is tried once more.
  void begin_stop() { thread_->begin_stop(); }

 private:
  class Worker;
  JournalThread();

  std::unique_ptr<Inbox<JournalRequest>> requests_;
  std::unique_ptr<Worker> worker_;  // not the thread's: who reads its files after JournalStopped finds them
  std::unique_ptr<JoiningThread> thread_;
};

}  // namespace monarch
