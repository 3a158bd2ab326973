#pragma once

// Disk and Journal: the supervisor's state directory in memory, with the real journal on it, and the journal's thread
// in virtual time: what is submitted becomes durable in batches after a sync that may be slow, may find no space, and
// may be cut off by a crash in the middle.
//
// Thread: one simulation's. Lifetime: Disk the world's, a Journal one supervisor's.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/core/state/job_state.h"
#include "supervisor/journal/journal_thread.h"
#include "supervisor/journal/journal_writer.h"
#include "supervisor/journal/recover.h"
#include "tests/sim/kernel.h"
#include "tests/supervisor/journal/fake_journal_files.h"

namespace monarch::sim {

class World;

using StatePtr = std::shared_ptr<const JobState>;

class Disk {
 public:
  explicit Disk(World& world);
  JournalFiles& files() { return *files_; }
  void set_full(bool full) { full_ = full; }
  void fail_next_sync() { fail_next_sync_ = true; }
  // The writer's process is gone; `flush` may have been under way.
  void crash(const std::function<void()>& flush);

  // For the checker: the core's state after the input of each LSN, as its live core had it; of what is durable only the
  // last.
  std::map<std::uint64_t, StatePtr> state_after;
  void durable(std::uint64_t lsn);

 private:
  void arm();
  World& world_;
  std::unique_ptr<testing::FakeJournalFiles> files_;
  bool full_ = false;
  bool fail_next_sync_ = false;
};

class Journal {
 public:
  using OnReport = std::function<void(const JournalReport&)>;

  Journal(World& world, const LifePtr& life, std::unique_ptr<JournalWriter> writer, OnReport on_report);

  // `state` is the core's after the request's input, if it has one.
  void submit(JournalRequest request, StatePtr state = nullptr);
  void crash();

 private:
  struct Queued {
    JournalRequest request;
    StatePtr state;
  };
  void begin(Duration patience);
  void work();
  void add(const Queued& queued);
  bool flush();
  Duration sync_time();

  World& world_;
  LifePtr life_;  // of its thread
  std::unique_ptr<JournalWriter> writer_;
  OnReport on_report_;
  std::deque<Queued> queue_;
  std::vector<std::uint64_t> batch_;
  bool busy_ = false;
  bool patient_ = false;     // and waits for company
  std::uint64_t turns_ = 0;  // that were begun: an older one is not done
  bool failed_ = false;
};

}  // namespace monarch::sim
