#pragma once

// Decider: feeds the job's core, journals what it was fed, and lets its actions out once the record is durable (J1):
// an act that the journal does not know can be repeated by the next supervisor. Leases are not its business: they
// wait for no disk. A record that lets nothing out has a little time for company (JournalThread). The end of the job
// lets nothing out but records, which go with that of what ended it. Where this process stood still, the core is told
// that before anything else.
//
// A record that the journal refuses ends it: what was decided with it, and all after it, is never done.
//
// Thread: the supervisor's loop. Lifetime: shorter than core's, journal's and loop's.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "supervisor/core/health/own_stall.h"
#include "supervisor/core/job/job_core.h"
#include "supervisor/journal/journal_thread.h"
#include "transport/loop/event_loop.h"

namespace monarch {

class Decider {
 public:
  // Called for each action in order, once it may be performed; EmitEvent has its time filled in.
  using Perform = std::function<void(const Action&)>;
  // A deadline of the core has passed: to decide DeadlinePassed, as its owner decides everything.
  using Due = std::function<void()>;

  Decider(EventLoop& loop, JobCore& core, JournalThread& journal, Term term, Perform perform, Due due);
  ~Decider();
  Decider(const Decider&) = delete;
  Decider& operator=(const Decider&) = delete;

  // The ticket of the record; durable once durable_ticket() has reached it.
  std::uint64_t decide(const CoreEvent& event);
  // Files of the state directory that have to be durable as the next decision has.
  void with_next(std::vector<FileBeside> beside) { beside_ = std::move(beside); }
  // For a record of the caller's own (kVerdict, kClean), and for a file of the state directory.
  std::uint64_t append(RecordType type, std::string payload, std::function<void()> when_durable = {});
  std::uint64_t write_file(WriteFileRequest request, std::function<void()> when_written);  // its ticket is ours
  // Once everything decided so far is durable: at once if it is, never if the journal refuses it.
  void when_durable(std::function<void()> then);
  // From the owner of the journal's reports.
  void on_durable(const RecordsDurable& report);
  void on_answered(std::uint64_t ticket);
  // False where that was a record: the caller has to step down.
  [[nodiscard]] bool on_refused(std::uint64_t ticket);
  // Nothing is decided, recorded or done from here on.
  void abandon();

  std::uint64_t durable_ticket() const { return durable_ticket_; }
  // And done.
  bool all_durable() const { return !abandoned_ && durable_ticket_ >= last_ticket_ && release_timer_ == 0; }

 private:
  struct Waiting {
    std::uint64_t ticket = 0;
    bool record = false;  // of the journal; otherwise a file or a snapshot
    std::deque<Action> actions;
    std::function<void()> then;
  };

  AppendRecord record(RecordType type, std::string payload) const;
  void submit(JournalRequest request);
  void retry();
  void release();
  bool next_ready();
  void set_deadline();
  void look_at_stall();
  void note_stall();

  EventLoop& loop_;
  JobCore& core_;
  JournalThread& journal_;
  Term term_;
  Perform perform_;
  Due due_;
  std::uint64_t last_ticket_ = 0;
  std::uint64_t durable_ticket_ = 0;
  std::uint64_t patient_ticket_ = 0;   // of the newest record that lets nothing out, if nothing was submitted behind it
  std::uint64_t snapshot_ticket_ = 0;  // of the newest that was asked for
  std::deque<Waiting> waiting_;
  Waiting ready_;                           // durable, and being done
  std::vector<FileBeside> beside_;          // of the next decision
  std::deque<JournalRequest> unsubmitted_;  // while the journal's inbox is full
  OwnStall stall_;
  TimerId stall_timer_ = 0;
  TimerId deadline_timer_ = 0;
  TimerId retry_timer_ = 0;
  TimerId release_timer_ = 0;
  bool releasing_ = false;
  bool abandoned_ = false;
};

}  // namespace monarch
