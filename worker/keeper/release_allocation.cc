#include "worker/keeper/release_allocation.h"

#include <poll.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <optional>

#include "transport/base/clock.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/process/run_program.h"
#include "worker/core/abandoned_allocation.h"

namespace monarch {

namespace {

constexpr Duration kFirstPause = Duration::seconds(5);
constexpr Duration kLongestPause = Duration::seconds(60);
// Beyond SlurmdTimeout, 300 s mostly, after which Slurm knows that a node is lost.
constexpr Duration kPatience = Duration::seconds(30 * 60);

std::optional<std::uint32_t> job_of(const Environment& environment) {
  const auto found = environment.find("SLURM_JOB_ID");
  if (found == environment.end()) return std::nullopt;
  std::uint32_t job = 0;
  const std::string& digits = found->second;
  const auto [stopped, error] = std::from_chars(digits.data(), digits.data() + digits.size(), job);
  if (error != std::errc() || stopped != digits.data() + digits.size() || job == 0) return std::nullopt;
  return job;
}

// A controller that does not answer is asked again; one that does not know the job says so at once.
AllocationFate look(std::uint32_t job, const std::string& node) {
  const auto told = run_program(allocation_query(job));
  if (!told.ok()) return told.error().code == ErrorCode::kNotFound ? AllocationFate::kLeave : AllocationFate::kWait;
  const AllocationFacts facts = read_allocation(*told, job);
  if (fate_of(facts, node, false) == AllocationFate::kLeave) return AllocationFate::kLeave;
  const auto nodes = run_program(nodes_query(facts));
  return fate_of(facts, node, nodes.ok() && lost_first_node(*nodes, facts, node));
}

}  // namespace

void release_allocation(const ReleaseOptions& options) {
  // Nothing is here any more that had to be ended in order.
  sigset_t none;
  (void)::sigemptyset(&none);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
  const auto job = job_of(options.environment);
  const auto node = options.environment.find("SLURMD_NODENAME");
  if (!job || node == options.environment.end()) return;
  const Instant until = boot_now() + kPatience;
  for (Duration pause = kFirstPause; boot_now() < until; pause = std::min(pause * 2, kLongestPause)) {
    const AllocationFate fate = look(*job, node->second);
    if (fate == AllocationFate::kLeave) return;
    if (fate == AllocationFate::kRelease) {
      const auto steps = run_program(allocation_steps_query(*job));
      if (steps.ok() && !only_ours(*steps, options.job_id)) {
        return log_warn("the first node of Slurm's job ", *job,
                        " is lost, and not all in it is ours: it is left alone");
      }
      log_warn("the first node of Slurm's job ", *job, " is lost, and with it the supervisor: giving the nodes back");
      if (steps.ok() && run_program(release_command(*job)).ok()) return;
    }
    (void)::poll(nullptr, 0, static_cast<int>(pause.count_milliseconds()));
  }
}

}  // namespace monarch
