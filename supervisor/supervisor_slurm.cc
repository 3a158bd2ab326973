// What a supervisor hears of the end of Slurm's job, which holds its hosts.

#include <utility>

#include "supervisor/launch/slurm/end_watch.h"
#include "supervisor/supervisor_loop.h"
#include "transport/base/text.h"

namespace monarch {

void Supervisor::watch_end(const LaunchSlurm& slurm, const Words& environment) {
  end_watch_ = std::make_unique<EndWatch>(
      *loop_, slurm_launcher_->calls(),
      EndWatchOptions{.job = slurm.allocation->job, .environment = environment, .warn = slurm.warn},
      EndWatchHandlers{
          .on_foreseen = [this](EndForeseen event) { on_end_foreseen(event); },
          .on_ending = [this] { slurm_launcher_->check_over(); },
          .on_short = [this](std::string words) { announce("job.limit", Severity::kInfo, std::move(words)); }});
}

// Whoever sees it first: what was told before counts.
void Supervisor::on_end_foreseen(const EndForeseen& event) {
  const auto& known = core_.state().foreseen;
  if (known && event.by >= known->by) return;  // a record less
  (void)decide(event);
}

void Supervisor::on_warned(HostId host) {
  if (end_watch_) end_watch_->on_warned(core_.hosts()[host.value()].name);
}

}  // namespace monarch
