#pragma once

// LostSubmission: what a viewer does about a job that Slurm started and whose supervisor does not answer any more. Its
// guard cannot start it again where the whole node is lost; then Slurm alone knows when the job is over, and nobody but
// a viewer writes a verdict. So Slurm is asked now and then, without a deadline: what is waited for is said every 30 s.
//
// Thread: the only one of its process (it forks). Lifetime: within the view's.

#include <functional>
#include <optional>
#include <string>

#include "cli/job/submitted_job.h"

namespace monarch {

class LostSubmission {
 public:
  using Say = std::function<void(const std::string&)>;
  // Nothing: it is no job that Slurm was given by us, or Slurm waits for this very process.
  static std::optional<LostSubmission> of(const JobView& view);

  struct Answer {
    std::optional<Verdict> verdict = {};  // the one that counts, once the job is over
    bool nobody_knows = false;            // Slurm, as it is asked here, has never known the job
  };
  // Often, while nobody answers. `stop`: somebody wants it ended; it is taken from Slurm once its first node is.
  // `interrupt`: readable when the caller has something else to do.
  Answer ask(const std::optional<StopRequest>& stop, int interrupt, const Say& say);
  // The supervisor is there again.
  void found_again();

 private:
  LostSubmission(const JobView& view, SubmittedJob submitted) : view_(&view), submitted_(std::move(submitted)) {}
  std::string words_of(const Result<QueuedJob>& found, bool stops);
  std::optional<Verdict> over(const QueuedJob& found, const std::optional<StopRequest>& stop) const;
  bool has_first_node(const QueuedJob& found) const;

  const JobView* view_;
  SubmittedJob submitted_;
  bool known_ = false;  // Slurm has said that it has it
  Instant ask_at_ = Instant();
  Instant over_since_ = Instant::never();
  std::string told_;
  Instant tell_at_ = Instant();
};

}  // namespace monarch
