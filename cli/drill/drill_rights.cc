#include "cli/drill/drill_rights.h"

#include <utility>

#include "cli/drill/reached_job.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/drill/injector.h"
#include "supervisor/launch/reach/check_reach.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"

namespace monarch {

namespace {

constexpr Duration kRightsPatience = Duration::seconds(10);
constexpr Duration kRightsByThen = Duration::seconds(60);

drill::HostRights rights_of(const std::string& host, const CheckOutcome& outcome) {
  if (const auto* failure = std::get_if<LaunchFailure>(&outcome)) {
    return {.host = host, .rights = {}, .error = text("it was not reached: ", failure->message)};
  }
  const CheckAnswer& answer = std::get<TimedAnswer>(outcome).answer;
  if (answer.rights) return {.host = host, .rights = *answer.rights, .error = ""};
  return {.host = host, .rights = {}, .error = "the worker there knows no faults: it is older than this monarch"};
}

}  // namespace

Result<JobRights> ask_rights(const OpenedJob& job, const Context& context) {
  MONARCH_ASSIGN(const SupervisorBinaries binaries,
                 find_binaries(context.executable, context.env.get("MONARCH_WORKER")));
  MONARCH_ASSIGN(const JobStatus status, job.view.status(job.spec));
  if (!job.view.live()) return Error{ErrorCode::kGone, text(job.view.id(), " has ended")};
  MONARCH_ASSIGN(const ReachedJob reached, reached_job(job.view, job.spec));
  MONARCH_ASSIGN(const auto loop, EventLoop::create());
  const ReachSurroundings around{.loop = *loop,
                                 .spec = job.spec,
                                 .hosts = reached.pool,
                                 .job = reached.job.uuid,
                                 .job_id = job.view.id(),
                                 .worker_path = binaries.worker};
  MONARCH_ASSIGN(const auto reach, open_reach(around));
  drill::Injector injector(*loop, *reach, kRightsPatience);
  JobRights rights;
  rights.traced = job.spec.drills ? drill::RanksTraced::kByAnybody : drill::RanksTraced::kByTheirKeeper;
  std::size_t awaited = 0;
  for (std::uint32_t i = 0; i < reached.pool.size() && i < status.hosts.size(); ++i) {
    if (status.hosts[i].phase != "ready") continue;
    const std::size_t place = rights.hosts.size();
    rights.hosts.push_back({.host = reached.pool[i].name, .rights = {}, .error = "it did not answer"});
    ++awaited;
    injector.look(HostId(i), {.patience = kRightsPatience, .rights = true}, [&, place](const CheckOutcome& outcome) {
      --awaited;
      rights.hosts[place] = rights_of(rights.hosts[place].host, outcome);
    });
  }
  const Instant end = boot_now() + kRightsByThen;
  loop->at(end, [] {});
  while (awaited > 0 && boot_now() < end) loop->run_once();
  return rights;
}

}  // namespace monarch
