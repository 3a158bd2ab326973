#include "cli/start/allocation_check.h"

#include <algorithm>

#include "supervisor/core/spec/hostlist.h"
#include "transport/base/text.h"
#include "transport/process/run_program.h"

namespace monarch {

namespace {

constexpr Duration kPatience = Duration::seconds(5);

}  // namespace

std::optional<std::string> objection_to(const Allocation& allocation, const QueuedJob& found) {
  const std::string job = text("Slurm's job ", allocation.job);
  switch (found.state) {
    case QueuedJob::State::kUnknown: return text(job, " is not known to Slurm (any more)");
    case QueuedJob::State::kWaiting: return text(job, " has no nodes: it is ", printable(found.word));
    case QueuedJob::State::kEnding:
    case QueuedJob::State::kOver: return text(job, " is over: ", printable(found.word));
    case QueuedJob::State::kRunning: break;
  }
  const auto nodes = expand_hostlist(found.nodes);
  if (!nodes.ok()) return std::nullopt;
  const auto has = [&](const std::string& node) {
    return std::find(nodes->begin(), nodes->end(), node) != nodes->end();
  };
  if (std::all_of(allocation.nodes.begin(), allocation.nodes.end(), has)) return std::nullopt;
  return text(job, " has ", printable(found.nodes), ", and not ", fold_hostlist(allocation.nodes));
}

std::optional<std::string> ask_of_allocation(const Allocation& allocation) {
  const auto answer = run_program(queue_query(allocation.job), {.deadline = kPatience, .without = not_for_asking()});
  if (!answer.ok()) {
    const bool unknown = says_unknown_job(answer.error().message);
    return unknown ? objection_to(allocation, QueuedJob{}) : std::nullopt;
  }
  const QueuedJob found = read_queue(*answer, allocation.job);
  return found.job == 0 ? std::nullopt : objection_to(allocation, found);
}

}  // namespace monarch
