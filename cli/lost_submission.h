#pragma once

// LostSubmission: what a viewer does about a job that Slurm started and whose supervisor does not answer any more. Its guard cannot start it
// again where the whole node is lost; then Slurm alone knows when the job is over, and nobody but a viewer writes a verdict. So Slurm
// is asked now and then, without a deadline: who is missing is said every 30 s.
//
// Thread: the only one of its process (it forks). Lifetime: within the view's.

#include <functional>
#include <optional>
#include <string>

#include "cli/submitted_job.h"

namespace monarch {

class LostSubmission {
 public:
  using Say = std::function<void(const std::string&)>;
  // Nothing: it is no job that Slurm was given by us.
  static std::optional<LostSubmission> of(const JobView& view);

  // Often, while nobody answers. `stop`: somebody wants it ended, and it is taken from Slurm. The verdict that counts, once it is over.
  std::optional<Verdict> ask(const std::optional<StopRequest>& stop, const Say& say);
  // The supervisor is there again.
  void found_again();

 private:
  LostSubmission(const JobView& view, SubmittedJob submitted) : view_(&view), submitted_(std::move(submitted)) {}
  std::optional<Verdict> over(const QueuedJob& found, const std::optional<StopRequest>& stop) const;
  void cancel(const Say& say);

  const JobView* view_;
  SubmittedJob submitted_;
  Instant ask_at_ = Instant();
  Instant over_since_ = Instant::never();
  std::string told_;
  Instant tell_at_ = Instant();
};

}  // namespace monarch
