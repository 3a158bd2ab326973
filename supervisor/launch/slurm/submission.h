#pragma once

// A job that is given to Slurm from outside of any allocation: the script that sbatch gets, how it is submitted and
// found again, and what its folder says of that until a supervisor runs (submitted.json):
//
//   {"v":1,"slurm":{"job":12,"submitted":"2026-11-23T09:12:07"},"host":"login1"}
//
// The script is whole: it has the spec in it, and does the same when somebody else submits it. Which job of ours it is
// says the environment (kSubmittedVariable); without that it makes a new one.
//
// Thread: pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "transport/base/result.h"

namespace monarch {

inline constexpr char kSubmittedFile[] = "submitted.json";
inline constexpr std::size_t kSubmittedBytes = 16U << 10U;  // a larger file is not ours
inline constexpr char kSubmissionScriptFile[] = "slurm.sh";
inline constexpr char kSubmissionOutputFile[] = "slurm.out";  // what the script wrote
inline constexpr char kSubmittedVariable[] = "MONARCH_SUBMITTED";

struct SubmissionOrder {
  std::string spec;       // the whole of it, as one file
  std::string directory;  // absolute; where its relative paths start
  std::string monarch;    // absolute; this program, as the nodes see it too
};
// kInvalid: a value of launch.slurm has a character that no line of a script can hold, or an option makes another job
// of it.
Result<std::string> submission_script(const JobSpec& job, const SubmissionOrder& order);

// As `sbatch` is run; its answer is read by read_submission().
std::vector<std::string> submit_command(const std::string& job_id, const std::string& job_directory);
Result<std::uint32_t> read_submission(std::string_view answer);

struct SubmittedJob {
  std::uint32_t job = 0;  // Slurm's number of it; 0: it is being submitted, or was when somebody was killed
  std::string submitted;  // when, as Slurm writes it; empty: not known
  std::string host;       // where it was submitted
  bool operator==(const SubmittedJob&) const = default;
};
std::string write_submitted(const SubmittedJob& submitted);
Result<SubmittedJob> parse_submitted(const std::string& json);

// Of a job of Slurm's that goes on as another one of ours: that it is the submission for that one, and may be requeued;
// and that it is.
std::vector<std::string> mark_command(std::uint32_t job, const std::string& job_id);
std::vector<std::string> requeue_command(std::uint32_t job);
// As submit_command(), from within another job of Slurm's, of whose environment, by the names of its variables, nothing
// is an option.
std::vector<std::string> successor_command(const std::string& job_id, const std::string& job_directory,
                                           const std::vector<std::string>& variables);

// What Slurm says of it.
struct QueuedJob {
  enum class State : std::uint8_t {
    kUnknown,  // Slurm does not know it, or not any more
    kWaiting,
    kRunning,
    kEnding,  // how, Slurm tells once it has ended
    kOver,
  };
  State state = State::kUnknown;
  std::uint32_t job = 0;
  std::string word;    // "PENDING"
  std::string reason;  // "Priority"; empty: none is told
  std::string nodes;   // as Slurm writes them
  std::string submitted;
  std::string name;
  std::string comment;
  bool taken = false;  // kOver: Slurm took its nodes, or its time was over, so that it may be submitted again
};
std::vector<std::string> queue_query(std::uint32_t job);
QueuedJob read_queue(std::string_view answer, std::uint32_t job);
// Of all jobs of this user, by the word that submit_command() gave it: where an answer of sbatch was lost.
std::vector<std::string> lost_submission_query();
std::optional<QueuedJob> find_submission(std::string_view answer, const std::string& job_id);
// That a job of this number is the one that was submitted for the job of this id: by its comment, or, where a cluster
// has comments of its own, by its name.
bool is_submission(const QueuedJob& found, const std::string& job_id);
// That it is the one of some job of ours, by its comment.
bool is_any_submission(const QueuedJob& found);
// What of this shell would be an option to them that nobody wrote, for run_program(): of squeue and scancel everything,
// of sbatch what the spec says, and what makes another job of it.
std::vector<std::string> not_for_asking();
std::vector<std::string> not_for_submitting(const JobSpec& job);
std::vector<std::string> cancel_command(std::uint32_t job);

// Of what sbatch or squeue said as they failed: that they will not, rather than that nobody answers; that there is no
// such job (any more).
bool says_refused(std::string_view words);
bool says_unknown_job(std::string_view words);

}  // namespace monarch
