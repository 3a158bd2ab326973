#include "worker/keeper/release_allocation.h"

#include <poll.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <optional>
#include <set>

#include "transport/base/clock.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/process/run_program.h"
#include "worker/core/abandoned_allocation.h"

namespace monarch {

namespace {

constexpr Duration kFirstPause = Duration::seconds(5);
constexpr Duration kLongestPause = Duration::seconds(60);
constexpr Duration kLookDeadline = Duration::seconds(60);  // an srun that does not reach a node ends by itself before
// Beyond SlurmdTimeout, 300 s mostly, after which Slurm knows that a node is lost.
constexpr Duration kReleasePatience = Duration::seconds(30 * 60);

std::optional<std::uint32_t> number_of(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  if (found == environment.end()) return std::nullopt;
  std::uint32_t number = 0;
  const std::string& digits = found->second;
  const auto [stopped, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || stopped != digits.data() + digits.size()) return std::nullopt;
  return number;
}

std::string value_of(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

enum class Others : std::uint8_t { kNone, kSome, kUnknown };

// Whether any of these nodes has a worker.
Others look_at(std::uint32_t job, const std::set<std::string>& nodes, const ReleaseOptions& options) {
  RunProgramOptions run;
  run.deadline = kLookDeadline;
  run.without = {"SLURM_*", "SRUN_*"};  // of this step: options to srun
  const auto told = run_program(others_query({.job = job,
                                              .job_id = options.job_id,
                                              .job_uuid = options.job_uuid,
                                              .nodes = nodes,
                                              .slurm_conf = value_of(options.environment, "SLURM_CONF")}),
                                run);
  if (!told.ok()) return Others::kUnknown;
  return told->empty() ? Others::kNone : Others::kSome;
}

// A controller that does not answer is asked again; one that does not know the job says so.
AllocationFate look(std::uint32_t job, AllocationView view, const ReleaseOptions& options) {
  const auto told = run_program(allocation_query(job));
  if (!told.ok()) return told.error().code == ErrorCode::kNotFound ? AllocationFate::kLeave : AllocationFate::kWait;
  const AllocationFacts facts = read_allocation(*told, job);
  if (fate_of(facts, view.node) == AllocationFate::kLeave) return AllocationFate::kLeave;
  const auto nodes = run_program(nodes_query(facts));
  const auto steps = run_program(allocation_steps_query(job));
  if (!nodes.ok() || !steps.ok()) return AllocationFate::kWait;
  view.nodes = read_nodes(*nodes);
  view.steps = read_allocation_steps(*steps);
  const std::string own = value_of(options.environment, "SLURM_STEP_NODELIST");
  const auto of_step = run_program({"scontrol", "show", "hostnames", own.empty() ? view.node : own});
  if (!of_step.ok()) return AllocationFate::kWait;
  view.step_nodes = read_nodes(*of_step);
  AllocationFate fate = fate_of(facts, view);
  if (fate == AllocationFate::kLookBefore) {
    const Others before = look_at(job, before_of(facts, view), options);
    if (before == Others::kSome) return AllocationFate::kLeave;
    if (before == Others::kUnknown) return AllocationFate::kWait;
    view.none_before = true;
    fate = fate_of(facts, view);
  }
  if (fate != AllocationFate::kLook) return fate;
  // Who cannot be asked may have one.
  return look_at(job, others_of(view), options) == Others::kNone ? AllocationFate::kRelease : AllocationFate::kWait;
}

}  // namespace

void release_allocation(const ReleaseOptions& options) {
  // Nothing is here any more that had to be ended in order.
  sigset_t none;
  (void)::sigemptyset(&none);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
  const auto job = number_of(options.environment, "SLURM_JOB_ID");
  const auto step = number_of(options.environment, "SLURM_STEP_ID");
  const auto node = options.environment.find("SLURMD_NODENAME");
  if (!job || !step || node == options.environment.end()) return;
  const AllocationView view{
      .job_id = options.job_id, .node = node->second, .step = *step, .nodes = {}, .steps = {}, .step_nodes = {}};
  const Instant until = boot_now() + kReleasePatience;
  for (Duration pause = kFirstPause; boot_now() < until; pause = std::min(pause * 2, kLongestPause)) {
    const AllocationFate fate = look(*job, view, options);
    if (fate == AllocationFate::kLeave) return;
    if (fate == AllocationFate::kRelease) {
      log_warn("the first node of Slurm's job ", *job, " is lost, and with it the supervisor: giving the nodes back");
      if (run_program(release_command(*job)).ok()) return;
    }
    (void)::poll(nullptr, 0, static_cast<int>(pause.count_milliseconds()));
  }
}

}  // namespace monarch
