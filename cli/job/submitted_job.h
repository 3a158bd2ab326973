#pragma once

// What its folder and Slurm say of a job that Slurm starts for us, and the verdict that is left in its folder when
// there is no supervisor to write one.
//
// Thread: the only one of its process (it forks).

#include <cstdint>
#include <optional>
#include <string>

#include "supervisor/client/job_view.h"
#include "supervisor/launch/slurm/submission.h"
#include "transport/base/clock.h"
#include "transport/base/limits.h"

namespace monarch {

Verdict verdict_without_supervisor(Outcome outcome, int exit_code, CauseKind kind, std::string reason);
// The one that counts by then: what was written first. Nothing: it could not be written, or the job has a supervisor.
std::optional<Verdict> leave_verdict(const JobView& view, const Verdict& verdict);
// As above, of a job whose supervisor is lost; what opens something goes with it.
std::optional<Verdict> leave_verdict_for_supervisor(const JobView& view, const Verdict& verdict);

std::optional<SubmittedJob> submitted_of(const JobView& view);
// `job`: Slurm's number; 0: it is looked for by ours. kGone: `interrupt` was readable first.
Result<QueuedJob> ask_queue(const JobView& view, std::uint32_t job, int interrupt = -1);
// "job 12 of Slurm"
std::string called_of(const SubmittedJob& submitted);

// From the word in its folder that a job is being submitted, until it is known whether it is.
inline constexpr Duration kMaySubmit = Duration::seconds(90);
// Of what Slurm has ended: that its folder may still say more, on this machine too.
inline constexpr Duration kSureOfOneThatRan = Duration::seconds(10);

// A word each time that a wait has taken another half of a minute.
class QueuePatience {
 public:
  explicit QueuePatience(Duration limit) : until_(boot_now() + limit), word_(boot_now() + limits::kNamesMissingEvery) {}
  bool over() const { return boot_now() >= until_; }
  bool wants_word() {
    if (boot_now() < word_) return false;
    word_ = boot_now() + limits::kNamesMissingEvery;
    return true;
  }

 private:
  Instant until_;
  Instant word_;
};

// True: the descriptor became readable meanwhile.
bool pause(Duration time, int interrupt);

}  // namespace monarch
