#pragma once

// JobCore: decides what becomes of a job. step(event, now) changes the state and returns what is to be done. It reads
// no clock, touches nothing outside itself, and the same events give the same state and actions (I6, I24).
//
// A gang that fails is started again as its next generation, on the same hosts or on others, within budgets
// (recovery.h); where these are spent, or nothing can be mended, it fails the job. Other gangs go on.
//
// Thread: one; no locks. Lifetime: the job's.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "supervisor/core/accounts/adoption.h"
#include "supervisor/core/accounts/drills.h"
#include "supervisor/core/accounts/ending.h"
#include "supervisor/core/accounts/last_words.h"
#include "supervisor/core/accounts/requests.h"
#include "supervisor/core/crew/core_basis.h"
#include "supervisor/core/crew/crews.h"
#include "supervisor/core/crew/words.h"
#include "supervisor/core/facts/blame.h"
#include "supervisor/core/facts/gang_orders.h"
#include "supervisor/core/facts/gangs.h"
#include "supervisor/core/facts/hosts.h"
#include "supervisor/core/facts/reports.h"
#include "supervisor/core/facts/slots.h"
#include "supervisor/core/hosts/core_hosts.h"
#include "supervisor/core/machines/preparations.h"
#include "supervisor/core/machines/standbys.h"
#include "supervisor/core/recovery/recovery.h"
#include "supervisor/core/spec/job_spec.h"
#include "supervisor/core/spec/placement.h"
#include "supervisor/core/spec/rank_texts.h"
#include "supervisor/core/spec/resources.h"
#include "supervisor/core/spec/stages.h"
#include "supervisor/core/state/actions.h"
#include "supervisor/core/state/events.h"
#include "supervisor/core/state/job_state.h"
#include "transport/base/json.h"

namespace monarch {

class JobCore {
 public:
  JobCore(JobSpec spec, std::vector<PoolHost> hosts, JobCoreOptions options);
  JobCore(const JobCore& other);
  JobCore& operator=(const JobCore& other);

  // The state of a snapshot, before any event.
  void restore(JobState state);
  std::vector<Action> step(const CoreEvent& event, Instant now);
  // When DeadlinePassed is due; never() if nothing waits.
  Instant next_deadline() const;

  // What is known of it, for the questions of core/facts.
  const CoreFacts& facts() const { return basis_; }
  const JobState& state() const { return state_; }
  const JobSpec& spec() const { return spec_; }
  const Placement& placement() const { return placement_; }
  const Stages& stages() const { return stages_; }
  const std::vector<PoolHost>& hosts() const { return pool_; }
  const Crews& crews() const { return crews_; }

  // Would this answer move a gang on?
  bool awaits(HostId host, const Reserved& reserved) const;
  // The commands that this host should have obeyed by now, for a driver that sees in a beat that one was lost.
  std::vector<Action> outstanding(HostId host, const std::vector<RankReport>& reported) const;

 private:
  // job_core.cc
  void on(const JobBegun& event);
  void on(const DeadlinePassed& event);
  template <class Event>
  void hear(const Event& event);
  void look_at_waits();
  void look_at_end();
  void look_at_hosts();

  // job_core_inherit.cc
  void on(const GangsInherited& event);
  void take_over(const JobBegun& event);

  // job_core_return.cc
  void on(const SupervisorReturned& event);
  void on(const StoodStill& event);
  template <class Visit>
  void each_time(Visit& visit) const;
  void extend_deadlines();
  void change_clock(const SupervisorReturned& event);

  // job_core_start.cc
  void on(const PortsReserved& event);
  void start_waiting_gangs();
  void reserve_for(MeshId mesh, GangId gang);
  void lacks(MeshId mesh, HostId where, const std::string& what);
  void fail_start(MeshId mesh, HostId where, const std::string& what);
  void start_gang(MeshId mesh, GangId gang);

  // job_core_gangs.cc
  void on(const RankChanged& event);
  static RankEnd judged(const MeshSpec& mesh, RankEnd end);
  void record_end(const RankChanged& event, GangState& gang, RankState& rank);
  // `alive_at`: when a sign of it came last; never(): nobody knows.
  void gang_failed(MeshId mesh, GangId gang, Instant alive_at = Instant::never());
  void check_gang(MeshId mesh, GangId gang);
  void cause_is_due(MeshId mesh, GangId gang);
  void decide_cause(MeshId mesh, GangId gang);
  void sidecar_never_ready(MeshId mesh, GangId gang, Verdict how);

  // job_core_notes.cc
  void on(const PeopleTold& event);
  void on(const HostsHeld& event);
  void on(const RankHung& event);
  void on(const HoldAsked& event);

  // job_core_waits.cc
  void tend_waits();
  void remind();
  std::string why_out(MeshId mesh, GangId gang, HostId host) const;
  std::string remind_text(MeshId mesh, GangId gang) const;
  void remind_of_holds();
  bool some_left_alone() const;
  std::vector<std::string> left_alone() const;

  // job_core_recovery.cc
  void on(const GangProgressed& event);
  void on(const GangPaused& event);
  void on(const StepsHeard& event);
  void tell_caught_up(const GangProgressed& event, Instant at);
  void account();
  Recovery recovery_of(MeshId mesh, GangId gang, const Verdict& verdict, std::optional<std::size_t> first);
  void note_crash(GangState& gang, RankId who);
  void note_failure(MeshId mesh, GangId gang, Verdict verdict, const Recovery& next);
  void note_ready(GangState& gang);
  void await_next(MeshId mesh, GangId gang);
  void tell_waits();
  void tell_fence(MeshId mesh, GangId gang);
  void tell_return(MeshId mesh, GangId gang);
  void begin_generation(GangState& gang);
  void progress_is_due(MeshId mesh, GangId gang);
  std::vector<std::string> not_ready(MeshId mesh, GangId gang);
  void forget_failures(GangState& gang);

  // job_core_commits.cc
  void on(const CheckpointCommitted& event);

  // job_core_stop.cc
  void stop_gangs();
  void check_stopping();
  void stop_gang(MeshId mesh, GangId gang, std::int32_t signal, Duration grace);

  // job_core_slots.cc
  void move_slot(std::uint32_t slot, HostId to, const std::string& rule = {});
  void give_up_reservations(std::uint32_t slot);
  void give_up_reservation(MeshId mesh, GangId gang);
  void check_inventory(std::uint32_t slot);
  void fill_slots();
  void check_slots();

  // job_core_crews.cc
  void open_crews();
  void tend_crews();
  void settle_crews();
  void on_crew_changed(const RankChanged& event, const CrewPlace& place);
  void stop_crews();
  void lose_crews(HostId host);
  void look_at_crews();
  void standby_takes(MeshId mesh, GangId gang);

  // job_core_foreseen.cc
  void ended_as_foreseen(MeshId mesh, GangId gang);

  // job_core_operator.cc
  void end_drained();
  void forgive(const std::vector<std::pair<MeshId, GangId>>& gangs, const std::string& who);
  void on(const OperatorAsked& event);
  void restart_as_asked(MeshId mesh, GangId gang, const std::string& who);
  void start_as_asked(MeshId mesh, GangId gang);
  void retry(MeshId mesh, GangId gang);

  // job_core_shrink.cc
  void give_back_idle();
  void park(MeshId mesh, GangId gang, HostId where, const std::string& rule);
  void regrow();
  bool find_hosts(MeshId mesh, GangId gang);

  // job_core_refill.cc
  void keep_spares();
  void evict(std::uint32_t slot);
  void refill_slot(std::uint32_t slot);
  void give_up(MeshId mesh, GangId gang, HostId where, const Recovery& why);

  // job_core_hosts.cc
  void settle_hosts();
  void lose_ranks(HostId host, std::optional<Duration> silence);
  void decide_causes_within(HostId host, Duration patience);
  void mark_ranks_lost(HostId host);

  GangState& gang(MeshId mesh, GangId gang);
  const GangState& gang(MeshId mesh, GangId gang) const;
  RankState& rank(RankId id);
  const RankState& rank(RankId id) const;
  const HostState& host(HostId id) const { return basis_.host(id); }
  const MeshSpec& mesh_spec(MeshId id) const { return spec_.meshes[id.value()]; }
  template <class Visit>
  void each_gang(Visit visit);
  // Those that have ranks on that host; of a thousand gangs these are few.
  template <class Visit>
  void each_gang_on(HostId where, Visit visit);
  JobEvent event_of(EventKind kind, Severity severity, std::string message) const {
    return basis_.event(kind, severity, std::move(message));
  }
  void emit(JobEvent event) { basis_.emit(std::move(event)); }

  JobSpec spec_;
  std::vector<PoolHost> pool_;
  JobCoreOptions options_;
  Placement placement_;
  Stages stages_;
  Resources resources_;
  std::vector<MeshTexts> texts_;
  JobState state_;
  JobState& all_ = state_;
  Instant now_;
  Instant looked_at_;  // all who wait were, last: a time before it wakes nobody again
  std::vector<Action> actions_;
  bool waits_due_ = false;             // within a step: something changed that somebody may wait for
  std::vector<GangOf> waits_to_tell_;  // within a step

  // What is above, for the parts; who is copied has its own.
  CoreBasis basis_{{.spec = spec_,
                    .hosts = pool_,
                    .options = options_,
                    .placement = placement_,
                    .stages = stages_,
                    .resources = resources_,
                    .texts = texts_,
                    .state = state_,
                    .now = now_},
                   actions_,
                   state_.next_event,
                   waits_due_};
  Crews crews_{basis_, state_.crews};
  Drills drills_{basis_, state_.drill};
  LastWords last_words_{basis_, state_.last_words, crews_};
  Ending end_{basis_, state_, last_words_};
  Requests requests_{basis_, state_};
  Adoption adoption_{basis_, state_};
  CoreHosts hosts_{basis_, state_.hosts, pool_, drills_, last_words_, end_, requests_};
  GangOrders orders_{basis_, crews_};
  Preparations preparations_{basis_, state_.preparations, crews_};
  Standbys standbys_{basis_, state_.standbys, crews_};
};

template <class Visit>
void JobCore::each_time(Visit& visit) const {
  JobState& state = all_;
  crews_.each_time(visit);
  drills_.each_time(visit);
  last_words_.each_time(visit);
  preparations_.each_time(visit);
  standbys_.each_time(visit);
  end_.each_time(visit);
  visit(state.held_since, TimeKind::kPast);
  visit_all(state.reallocations, TimeKind::kPast, visit);
  hosts_.each_time(visit);
  adoption_.each_time(visit);
  requests_.each_time(visit);
  for (MeshState& mesh : state.meshes) {
    for (RankState& rank : mesh.ranks) visit(rank.ended_at, TimeKind::kPast);
    for (GangState& gang : mesh.gangs) {
      visit(gang.cause_deadline, TimeKind::kPatience);
      visit(gang.progress_deadline, TimeKind::kPatience);
      visit(gang.remind_at, TimeKind::kAlarm);
      visit(gang.not_before, is_waiting(gang.phase) ? TimeKind::kWait : TimeKind::kPast);
      for (Instant* time : {&gang.failed_at, &gang.waits_since, &gang.started_at, &gang.time.since}) {
        visit(*time, TimeKind::kPast);
      }
      for (EndedRank& end : gang.ends) visit(end.ended_at, TimeKind::kPast);
      visit_all(gang.failures, TimeKind::kPast, visit);
    }
  }
  visit(state.hold_remind_at, TimeKind::kAlarm);
}

template <class Visit>
void JobCore::each_gang_on(HostId where, Visit visit) {
  for (std::uint32_t m = 0; m < state_.meshes.size(); ++m) {
    const GangRange here = placement_.gangs_on(MeshId(m), where);
    for (std::uint32_t g = here.first; g < here.first + here.count; ++g) visit(MeshId(m), GangId(g));
  }
}

template <class Visit>
void JobCore::each_gang(Visit visit) {
  for (std::uint32_t m = 0; m < state_.meshes.size(); ++m) {
    for (std::uint32_t g = 0; g < state_.meshes[m].gangs.size(); ++g) visit(MeshId(m), GangId(g));
  }
}

}  // namespace monarch
