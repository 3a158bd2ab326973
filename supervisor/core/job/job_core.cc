#include "supervisor/core/job/job_core.h"

#include <tuple>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

JobCore::JobCore(JobSpec spec, std::vector<PoolHost> hosts, JobCoreOptions options)
    : spec_(std::move(spec)),
      pool_(std::move(hosts)),
      options_(std::move(options)),
      placement_(spec_),
      stages_(spec_),
      resources_(spec_, placement_) {
  MONARCH_ASSERT(pool_.size() >= spec_.hosts_needed());
  for (std::uint32_t m = 0; m < spec_.meshes.size(); ++m) texts_.push_back(compile_texts(spec_, MeshId(m)));
  crews_.create();
}

JobCore::JobCore(const JobCore& other) : JobCore(other.spec_, other.pool_, other.options_) { *this = other; }

// Between two steps: of one nothing is left.
JobCore& JobCore::operator=(const JobCore& other) {
  spec_ = other.spec_;
  pool_ = other.pool_;
  options_ = other.options_;
  placement_ = other.placement_;
  stages_ = other.stages_;
  resources_ = other.resources_;
  texts_ = other.texts_;
  state_ = other.state_;
  now_ = other.now_;
  looked_at_ = other.looked_at_;
  return *this;
}

void JobCore::restore(JobState state) {
  MONARCH_ASSERT(state_.phase == JobPhase::kNew);
  MONARCH_ASSERT(state.hosts.size() == pool_.size() && state.meshes.size() == spec_.meshes.size());
  MONARCH_ASSERT(state.last_words.size() == pool_.size());
  MONARCH_ASSERT(state.holds.held.size() == spec_.meshes.size() && state.reminders.gangs.size() == spec_.meshes.size());
  MONARCH_ASSERT(state.claims.slots.size() == spec_.meshes.size());
  MONARCH_ASSERT(state.crews.size() == state_.crews.size() && state.standbys.size() == spec_.meshes.size());
  state_ = std::move(state);
  slots_.restored();
  names_.restored();
}

template <class Visit>
void JobCore::each_time(Visit& visit) const {
  std::apply([&visit](const auto&... part) { (part.each_time(visit), ...); }, all_with_times());
}

Instant JobCore::next_deadline() const {
  if (state_.phase == JobPhase::kEnded) return Instant::never();
  // A time that has come stays due until all who wait were looked at, whatever else was decided since.
  NextTime next(looked_at_);
  each_time(next);
  return next.get();
}

void JobCore::on(const JobBegun& event) {
  end_.begin();
  state_.job = event.job;
  state_.term = event.term;
  state_.boot_id = event.boot_id;
  const std::uint32_t wanted = spec_.hosts_needed() + spec_.spares();
  const std::size_t known = pool_.size() - spec_.hosts_on_request();
  const std::string pool = wanted < known ? text(" of ", known) : "";
  basis_.emit(basis_.event(EventKind::kJobStarting, Severity::kInfo,
                           text(options_.job_id, ": starting on ", wanted, pool, known == 1 ? " host" : " hosts")));
  gangs_.take_over(event);
  for (std::uint32_t i = 0; i < pool_.size() && i < wanted; ++i) hosts_.launch(HostId(i));
}

void JobCore::on(const DeadlinePassed&) {
  end_.look_at_times();
  drills_.look_at_times();
  basis_.each_gang([this](MeshId m, GangId g) {
    gangs_.look_at_times(m, g);
    settle();
    if (basis_.crew(m, g).deadline > now_) return;
    for (const HostId id : crews_.overdue({m, g})) {
      hosts_.give_up(id);
      settle();
    }
  });
  look_at_hosts();
  reminders_.look_at_times();
  // Whoever waits for a time has it looked at: a back-off, a fence, a pause between requests.
  waits_due_ = true;
}

// What nobody could say or hear while we were away is not held against anybody. Limits of the job's own time stay as
// they were.
void JobCore::on(const SupervisorReturned& event) {
  MONARCH_ASSERT_BECAUSE(event.term > state_.term, "I7: terms only grow");
  state_.term = event.term;
  if (state_.boot_id != event.boot_id) {  // the machine was started again, and its boot clock with it
    state_.boot_id = event.boot_id;
    const MoveClock move{.by = now_ - (event.last_seen + event.away), .last_seen = event.last_seen, .now = now_};
    each_time(move);
  }
  if (state_.phase == JobPhase::kEnded) return;
  adoption_.begin();
  end_.returned();
  drills_.returned();
  last_words_.returned();
  crews_.returned();
  gangs_.returned();
  hosts_.returned();
  end_.foresee_without_answer();
  waits_due_ = true;
}

void JobCore::on(const StoodStill& event) {
  const GiveBack give_back{event.gap};
  each_time(give_back);
  state_.late = state_.late + event.gap;
  basis_.emit(basis_.event(
      EventKind::kSupervisorStoodStill, Severity::kInfo,
      text("the supervisor did not run for ", to_text(Duration::milliseconds(event.gap.count_milliseconds())),
           ": it was stopped, or its machine slept or had too much to do; nobody is blamed for that time")));
}

void JobCore::on(const PeopleTold& event) {
  if (state_.phase != JobPhase::kEnded) basis_.emit(event.event);
}

void JobCore::on(const HostsHeld& event) {
  basis_.emit(basis_.event(EventKind::kHostsHeld, Severity::kWarning,
                           text(event.silent, " of ", event.of,
                                " hosts fell silent together: the supervisor's own network, or a "
                                "switch, is suspected, and none of them is given up within ",
                                to_text(event.until - now_))));
}

std::vector<Action> JobCore::outstanding(HostId id, const std::vector<RankReport>& reported) const {
  std::vector<Action> missing;
  const HostState& state = state_.hosts[id.value()];
  const bool given_up = is_cold(state.phase) && state.unproven;
  if (is_destroying(state.phase) || state.phase == HostPhase::kLost || given_up) {
    // The launcher's order has not reached it, and it is heard again: it is told itself, or our answers would keep it
    // for ever.
    missing.emplace_back(SendShutdown{id, Shutdown{.reason = "this host was given up"}});
    return missing;
  }
  if (!is_joined(state.phase) || state.failing) return missing;
  if (state.shutdown_told) {
    missing.emplace_back(SendShutdown{id, Shutdown{.reason = state_.verdict->reason}});
    return missing;
  }
  crews_.add_outstanding(id, reported, missing);
  // What runs there at a generation that nobody wants: it is killed, whatever it is.
  for (const RankReport& report : reported) {
    if (report.phase >= RankPhase::kStopping || judge(basis_, id, report).granted) continue;
    missing.emplace_back(SendStop{id, Stop{.ranks = {report.process.rank},
                                           .generation = report.process.generation,
                                           .signal = 9,
                                           .grace = Duration::zero()}});
  }
  return missing;
}

}  // namespace monarch
