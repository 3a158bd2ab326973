#pragma once

// JobCore: decides what becomes of a job. step(event, now) changes the state and returns what is to be done. It reads
// no clock, touches nothing outside itself, and the same events give the same state and actions (I6, I24).
//
// It decides nothing itself: machines do, each of which has its own part of the state and reads the rest (README.md has
// which). Each takes the events that are its own; what it cannot do itself it hands on, and settle() gives that to who
// can, in a written order, until nothing is left.
//
// Thread: one; no locks. Lifetime: the job's.

#include <tuple>
#include <vector>

#include "supervisor/core/accounts/adoption.h"
#include "supervisor/core/accounts/drills.h"
#include "supervisor/core/accounts/ending.h"
#include "supervisor/core/accounts/last_words.h"
#include "supervisor/core/accounts/requests.h"
#include "supervisor/core/crew/core_basis.h"
#include "supervisor/core/crew/crews.h"
#include "supervisor/core/facts/gang_orders.h"
#include "supervisor/core/facts/gangs.h"
#include "supervisor/core/facts/hosts.h"
#include "supervisor/core/facts/reports.h"
#include "supervisor/core/facts/slots.h"
#include "supervisor/core/gangs/gangs.h"
#include "supervisor/core/hosts/core_hosts.h"
#include "supervisor/core/machines/claims.h"
#include "supervisor/core/machines/preparations.h"
#include "supervisor/core/machines/reminders.h"
#include "supervisor/core/machines/slots.h"
#include "supervisor/core/machines/standbys.h"
#include "supervisor/core/machines/starts.h"
#include "supervisor/core/machines/wishes.h"
#include "supervisor/core/spec/job_spec.h"
#include "supervisor/core/spec/placement.h"
#include "supervisor/core/spec/rank_texts.h"
#include "supervisor/core/spec/resources.h"
#include "supervisor/core/spec/stages.h"
#include "supervisor/core/state/actions.h"
#include "supervisor/core/state/events.h"
#include "supervisor/core/state/job_state.h"

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
  bool awaits(HostId host, const Reserved& reserved) const { return crews_.awaits(host, reserved); }
  // The commands that this host should have obeyed by now, for a driver that sees in a beat that one was lost.
  std::vector<Action> outstanding(HostId host, const std::vector<RankReport>& reported) const;

 private:
  template <class Event>
  void hear(const Event& event);
  void on(const JobBegun& event);
  void on(const DeadlinePassed& event);
  void on(const RankChanged& event);
  void on(const SupervisorReturned& event);
  void on(const StoodStill& event);
  void on(const HostsHeld& event);
  void on(const PeopleTold& event);
  template <class Visit>
  void each_time(Visit& visit) const;
  auto all_with_times() const {
    return std::tie(crews_, drills_, last_words_, end_, requests_, adoption_, hosts_, gangs_, preparations_, standbys_,
                    slots_, reminders_);
  }

  // job_core_settle.cc
  void settle();
  void take(const HostNews& news);
  void standby_takes(MeshId mesh, GangId g);
  void look_at_hosts();
  void look_at_waits();
  void look_at_end();
  void tend_beside();
  void stop_beside();

  JobSpec spec_;
  std::vector<PoolHost> pool_;
  JobCoreOptions options_;
  Placement placement_;
  Stages stages_;
  Resources resources_;
  std::vector<MeshTexts> texts_;
  JobState state_;
  Instant now_;
  Instant looked_at_;  // all who wait were, last: a time before it wakes nobody again
  std::vector<Action> actions_;
  bool waits_due_ = false;

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
  HostNames names_{basis_, pool_};
  CoreHosts hosts_{basis_, state_.hosts, names_, drills_, last_words_, end_, requests_};
  GangOrders orders_{basis_, crews_};
  Gangs gangs_{basis_, state_.meshes, crews_, hosts_, drills_, last_words_, end_};
  Preparations preparations_{basis_, state_.preparations, crews_};
  Standbys standbys_{basis_, state_.standbys, crews_};
  Slots slots_{basis_, state_.slots, state_.reallocations, placement_, gangs_, hosts_, last_words_, requests_, end_};
  Starts starts_{basis_, crews_, gangs_, hosts_, end_};
  Wishes wishes_{basis_, state_.holds, gangs_, hosts_};
  Claims claims_{basis_, state_.claims, gangs_};
  Reminders reminders_{basis_, state_.reminders};
};

}  // namespace monarch
