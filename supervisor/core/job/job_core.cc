#include "supervisor/core/job/job_core.h"

#include <algorithm>
#include <utility>

#include "supervisor/core/facts/some_of.h"
#include "supervisor/core/recovery/lifetime.h"
#include "supervisor/core/state/job_life.h"
#include "transport/base/assert.h"
#include "transport/base/exit_code.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Of one step. Two or three are usual; a chain may have as many as there are hosts.
constexpr std::size_t kMostRounds = 100'000;

template <class Part, class Event>
void give(Part& part, const Event& event) {
  if constexpr (requires { part.on(event); }) part.on(event);
}

}  // namespace

JobCore::JobCore(JobSpec spec, std::vector<PoolHost> hosts, JobCoreOptions options)
    : spec_(std::move(spec)),
      pool_(std::move(hosts)),
      options_(std::move(options)),
      placement_(spec_),
      stages_(spec_),
      resources_(spec_, placement_) {
  MONARCH_ASSERT(pool_.size() >= spec_.hosts_needed());
  for (std::uint32_t m = 0; m < spec_.meshes.size(); ++m) texts_.push_back(compile_texts(spec_, MeshId(m)));
  state_.hosts.resize(pool_.size());
  state_.last_words.resize(pool_.size());
  state_.slots = placement_.slots();
  for (const MeshSpec& mesh : spec_.meshes) {
    MeshState state;
    state.ranks.resize(mesh.size());
    state.gangs.resize(mesh.gangs());
    state_.meshes.push_back(std::move(state));
  }
  open_crews();
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
  MONARCH_ASSERT(state.crews.size() == state_.crews.size() && state.standbys.size() == spec_.meshes.size());
  state_ = std::move(state);
  placement_.put(state_.slots);
  hosts_.restored();
}

// Each part that takes it, in this order.
template <class Event>
void JobCore::hear(const Event& event) {
  give(drills_, event);
  give(end_, event);
  give(hosts_, event);
  settle_hosts();
  give(adoption_, event);
  if constexpr (requires { on(event); }) on(event);
}

std::vector<Action> JobCore::step(const CoreEvent& event, Instant now) {
  now_ = now;
  actions_.clear();
  std::visit([this](const auto& e) { hear(e); }, event);
  std::size_t before = 0;
  std::size_t rounds = 0;
  do {
    MONARCH_ASSERT_BECAUSE(++rounds < kMostRounds, "what is done for those who wait comes to an end");
    // Whatever was done may be what others waited for, also what was done for these.
    waits_due_ = waits_due_ || actions_.size() > before;
    before = actions_.size();
    look_at_waits();
    adoption_.look();
    look_at_end();
    tend_crews();
  } while (waits_due_ || actions_.size() > before);
  tell_waits();
  tend_waits();
  account();
  return std::move(actions_);
}

// Whoever waits for a host, for others or for a time is looked at until nothing comes of it: the start of a gang may
// find that a host lacks what it needs, which is out then.
void JobCore::look_at_waits() {
  while (std::exchange(waits_due_, false)) {
    looked_at_ = now_;
    fill_slots();
    start_waiting_gangs();
  }
}

// What follows from how far the job is: stages stop one after the other, then output is awaited, then workers end.
void JobCore::look_at_end() {
  end_.look_running();
  end_.look_done();
  if (end_.take_nothing_starts()) {
    // Of what will not be started: a spare's warming, standbys, and what hosts hold for gangs.
    stop_crews();
    each_gang([this](MeshId m, GangId g) { give_up_reservation(m, g); });
  }
  if (end_.take_stop()) stop_gangs();
  if (state_.phase == JobPhase::kStopping) check_stopping();
  end_.look_drained();
  if (end_.take_shut_down()) hosts_.shut_down();
  if (end_.take_kill()) {
    for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) hosts_.destroy(HostId(i));
  }
  end_.finish();
}

void JobCore::look_at_hosts() {
  look_at_crews();
  last_words_.look_at_times();
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    hosts_.look_at_time(HostId(i));
    settle_hosts();
  }
  hosts_.look_at_late();
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
  emit(event_of(EventKind::kJobStarting, Severity::kInfo,
                text(options_.job_id, ": starting on ", wanted, pool, known == 1 ? " host" : " hosts")));
  take_over(event);
  for (std::uint32_t i = 0; i < pool_.size() && i < wanted; ++i) hosts_.launch(HostId(i));
}

void JobCore::on(const DeadlinePassed&) {
  end_.look_at_times();
  drills_.look_at_times();
  each_gang([this](MeshId m, GangId g) {
    if (gang(m, g).cause_deadline <= now_) cause_is_due(m, g);
    GangState& state = gang(m, g);
    if (state.progress_deadline <= now_) progress_is_due(m, g);
    if (basis_.crew(m, g).deadline > now_) return;
    for (const HostId id : crews_.overdue({m, g})) {
      hosts_.give_up(id);
      settle_hosts();
    }
  });
  look_at_hosts();
  remind();
  // Whoever waits for a time has it looked at: a back-off, a fence, a pause between requests.
  waits_due_ = true;
}

bool JobCore::awaits(HostId where, const Reserved& reserved) const { return crews_.awaits(where, reserved); }

GangState& JobCore::gang(MeshId mesh, GangId gang) { return state_.meshes[mesh.value()].gangs[gang.value()]; }

const GangState& JobCore::gang(MeshId mesh, GangId gang) const {
  return state_.meshes[mesh.value()].gangs[gang.value()];
}

RankState& JobCore::rank(RankId id) { return state_.meshes[id.mesh.value()].ranks[id.rank.value()]; }

const RankState& JobCore::rank(RankId id) const { return state_.meshes[id.mesh.value()].ranks[id.rank.value()]; }

}  // namespace monarch
