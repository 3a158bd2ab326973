#pragma once

// JobCore: decides what becomes of a job. step(event, now) changes the state and returns what is to be done. It reads no clock,
// touches nothing outside itself, and the same events give the same state and actions (I6, I24).
//
// Its first policy is fail-fast: a failed gang fails the job. The ladder of restarts and replacements takes that place later.
//
// Thread: one; no locks. Lifetime: the job's.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/actions.h"
#include "supervisor/core/events.h"
#include "supervisor/core/job_spec.h"
#include "supervisor/core/job_state.h"
#include "supervisor/core/placement.h"
#include "supervisor/core/rank_texts.h"
#include "supervisor/core/resources.h"
#include "supervisor/core/stages.h"
#include "transport/base/json.h"

namespace monarch {

struct JobCoreOptions {
  std::string job_id;
  std::map<std::string, std::string> shell = {};  // of the submitting shell, what $(env.NAME) names; in no journal
  std::string
      log_directory;  // of hosts that tell none: error files go to <log_directory>/<mesh>/<rank>.<generation>.error.json
};

class JobCore {
 public:
  JobCore(JobSpec spec, std::vector<PoolHost> hosts, JobCoreOptions options);

  // The state of a snapshot, before any event.
  void restore(JobState state);
  std::vector<Action> step(const CoreEvent& event, Instant now);
  // When DeadlinePassed is due; never() if nothing waits.
  Instant next_deadline() const;

  const JobState& state() const { return state_; }
  const JobSpec& spec() const { return spec_; }
  const Placement& placement() const { return placement_; }
  const Stages& stages() const { return stages_; }
  const std::vector<PoolHost>& hosts() const { return hosts_; }

  // May this rank run at this generation, as far as the journal says? Leases are granted for these alone.
  bool grants(RankId rank, Generation generation) const;
  // Is this report about a rank that the journal has on that host, at its gang's generation? Others change nothing.
  bool concerns(HostId host, const RankReport& report) const;
  // Would this answer move a gang on?
  bool awaits(HostId host, const Reserved& reserved) const;
  // How long a lease is: nothing can replace a rank without proof of its death in this build, so an outage of the supervisor up
  // to orphan_ttl freezes nothing.
  Duration lease_length() const;
  // The commands that this host should have obeyed by now, for a driver that sees in a beat that one was lost.
  std::vector<Action> outstanding(HostId host, const std::vector<RankReport>& reported) const;

 private:
  // job_core.cc
  void on(const JobBegun& event);
  void on(const SupervisorReturned& event);
  void on(const StopOrdered& event);
  void on(const DeadlinePassed& event);
  void on(const IdleNoted& event);
  void time_is_up(const std::string& key, Duration limit);
  std::string missing_at_start() const;

  // job_core_start.cc
  void on(const PortsReserved& event);
  bool is_ready(MeshId mesh) const;  // or done, which a sidecar must not be before it was ready
  void start_waiting_gangs();
  void reserve_for(MeshId mesh, GangId gang);
  void fail_start(MeshId mesh, HostId where, const std::string& what);
  Reserve reserve_message(MeshId mesh, GangId gang, HostId host) const;
  void start_gang(MeshId mesh, GangId gang);
  std::uint16_t port_of_rank(RankId id, std::size_t index) const;
  RankStart rank_start(RankId id) const;
  Start start_message(MeshId mesh, GangId gang, HostId host) const;

  // job_core_gangs.cc
  void on(const RankChanged& event);
  void record_end(const RankChanged& event, GangState& gang, RankState& rank);
  void gang_failed(MeshId mesh, GangId gang);
  void check_gang(MeshId mesh, GangId gang);
  std::optional<std::size_t> ended_unready(const GangState& gang) const;
  void say_of_gang(MeshId mesh, GangId gang, const char* type, Severity severity, const std::string& what);
  void decide_cause(MeshId mesh, GangId gang);
  Verdict blame_host(const GangState& gang) const;
  Verdict blame_rank(MeshId mesh, GangId gang, std::size_t first) const;
  void sidecar_never_ready(MeshId mesh, GangId gang, FirstCause how);

  // job_core_stop.cc
  void fail_job(Verdict verdict);
  void forget_deadlines();
  void stop_gangs();
  std::optional<std::uint32_t> highest_stage() const;
  void check_stopping();
  void check_running();
  void check_ended();
  void finish();
  void stop_gang(MeshId mesh, GangId gang, std::int32_t signal, Duration grace);
  Stop stop_message(MeshId mesh, GangId gang, HostId host) const;
  void tell(MeshId mesh, GangId gang, const Json& event);
  void tell_stopping(MeshId mesh, GangId gang);
  void tell_peers_of(MeshId mesh, GangId gang);

  // job_core_slots.cc
  void on(const WorkerLaunchFailed& event);
  bool may_serve(HostId host) const;
  void launch(HostId host);
  Duration call_back_deadline() const;
  void not_called_back(HostId host);
  void host_failed(HostId host, LaunchFailure failure);
  bool has_started(std::uint32_t slot) const;
  std::optional<HostId> replacement() const;
  void move_slot(std::uint32_t slot, HostId to);
  void give_up_reservations(std::uint32_t slot);
  void fill_slots();
  std::vector<std::uint32_t> empty_slots() const;
  void check_slots();
  Verdict blame_hosts() const;
  void tell_failed_hosts(Verdict& verdict) const;

  // job_core_hosts.cc
  void on(const WorkerLaunched& event);
  void on(const WorkerJoined& event);
  void on(const WorkerEnded& event);
  void on(const HostSilent& event);
  void on(const HostDoubted& event);
  void learn_address(HostId host);
  void lose_host(HostId host, const std::string& why);
  void mark_ranks_lost(HostId host);
  void destroy(HostId host);
  void shut_down_hosts();
  void host_deadlines();

  GangState& gang(MeshId mesh, GangId gang);
  const GangState& gang(MeshId mesh, GangId gang) const;
  RankState& rank(RankId id);
  const RankState& rank(RankId id) const;
  HostState& host(HostId id);
  const MeshSpec& mesh_spec(MeshId id) const { return spec_.meshes[id.value()]; }
  template <class Visit>
  void each_gang(Visit visit);
  JobEvent event_of(std::string type, Severity severity, std::string message) const;
  void emit(JobEvent event);

  JobSpec spec_;
  std::vector<PoolHost> hosts_;
  JobCoreOptions options_;
  Placement placement_;
  Stages stages_;
  Resources resources_;
  std::vector<MeshTexts> texts_;
  JobState state_;
  Instant now_;
  std::vector<Action> actions_;
  bool starts_due_ = false;  // within a step: something was ready that others may wait for
  bool slots_due_ = false;   // within a step: a host is out, or it is known of one more that it is not
};

template <class Visit>
void JobCore::each_gang(Visit visit) {
  for (std::uint32_t m = 0; m < state_.meshes.size(); ++m) {
    for (std::uint32_t g = 0; g < state_.meshes[m].gangs.size(); ++g) visit(MeshId(m), GangId(g));
  }
}

}  // namespace monarch
