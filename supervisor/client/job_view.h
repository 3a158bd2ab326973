#pragma once

// JobView: what a job's directory tells a viewer, whether its supervisor lives, has ended or has crashed, without
// changing anything.
//
// Thread: the viewer's; it touches the file system. Lifetime: it reads the files anew at each call.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/client/link/endpoint.h"
#include "supervisor/core/spec/job_spec.h"
#include "supervisor/core/state/inheritance.h"
#include "supervisor/journal/job_lock.h"
#include "supervisor/journal/journal_reader.h"
#include "supervisor/journal/state_dir.h"
#include "transport/messages/viewer.h"

namespace monarch {

class JobView {
 public:
  // kInvalid: the directory is not ours.
  static Result<JobView> open(const StateDir& state, const std::string& id);

  const std::string& id() const { return job_.id; }
  const JobDirectory& directory() const { return job_; }
  std::string path() const { return job_.directory.path(); }
  std::string log_directory() const;

  // Somebody holds its lock.
  bool live() const;
  // Nobody holds it any more, at once or by then; waits for that.
  bool is_left_within(Duration patience) const;
  // Its supervisor has ended, and this guard starts the next.
  std::optional<LockHolder> awaited_from() const;
  // It was given to Slurm from outside of an allocation, and no supervisor of it ever began: what it is, its verdict
  // says, or Slurm.
  bool never_began() const;
  bool submitted() const;  // it was given to Slurm, or is being given
  bool queued() const;     // never_began(), and there is no verdict
  // Where its supervisor listens; kNotFound if none ever said so.
  Result<Endpoint> endpoint() const;
  // From verdict.json; without, and once nobody supervises the job, from the journal, which a supervisor fills before
  // it writes the file. Nothing if it has not ended.
  Result<std::optional<Verdict>> verdict() const;

  Result<std::string> spec_text() const;
  Result<std::string> spec_directory() const;

  // As the live supervisor says, or if none answers what the journal says; `spec` is the job's own.
  Result<JobStatus> status(const JobSpec& spec) const;
  Result<JobStatus> status_from_journal(const JobSpec& spec) const;
  // What a job for `spec` has of this one, whose own spec is `before`. Nothing: this one never began.
  Result<std::optional<Inheritance>> inheritance(const JobSpec& before, const JobSpec& spec) const;
  // All events that the journal still has, in order. `cut` says how the journal ends if not well.
  struct Events {
    std::vector<JobEvent> events;
    std::string cut;
  };
  Result<Events> events() const;
  // Of a job with a verdict that nobody supervises any more: where its journal ends, if that is before its end was
  // recorded or in the middle of a record. What came after is not shown by status() and events(). Empty where nothing
  // is missing.
  Result<std::string> missing_end() const;

 private:
  explicit JobView(JobDirectory job) : job_(std::move(job)) {}
  Result<JournalContents> read_journal_contents() const;

  JobDirectory job_;
};

// Of a kEvent record; nothing for other records and for events that this build cannot read.
std::optional<JobEvent> event_of(const Record& record);

}  // namespace monarch
