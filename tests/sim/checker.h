#pragma once

// Checker: watches a simulated run and throws Violation at the first thing that must not be. It keeps its own account
// of what was journalled, leased, promised and forked; the labels are those of the invariants (I1 … I24, J1).
//
// Thread: one simulation's. Lifetime: the world's.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "supervisor/core/health/liveness.h"
#include "supervisor/core/job/job_core.h"
#include "supervisor/core/spec/stages.h"
#include "supervisor/journal/journal_contents.h"
#include "tests/sim/beat_account.h"
#include "tests/sim/claim_account.h"
#include "tests/sim/commit_account.h"
#include "tests/sim/drill_account.h"
#include "tests/sim/durable_account.h"
#include "tests/sim/hang_account.h"
#include "tests/sim/kernel.h"
#include "tests/sim/network.h"
#include "tests/sim/ranks.h"
#include "tests/sim/record_account.h"
#include "tests/sim/time_account.h"
#include "tests/sim/violation.h"
#include "worker/core/daemon_core.h"

namespace monarch::sim {

class World;
class Worker;

class Checker {
 public:
  explicit Checker(World& world);

  const JobUuid& job() const { return job_; }

  // Ranks.
  void forked(RankProcess& process);
  void executes(RankProcess& process);
  void says_ready(const Incarnation& key) {
    ready_.insert(key.rank);
    said_ready_.insert(key);
  }
  bool is_of_spec(RankId rank) const;
  void taken_over(const Incarnation& from, RankProcess& process);
  void forgotten(const RankProcess& process);

  void wrote(const Incarnation& key, const CommitRequest& said) { commits_.wrote(key, said); }
  void writes(const RankProcess& process);  // to what ranks share, under its generation

  // Daemons.
  void daemon_starts(HostId host);
  void hears(HostId host, const daemon::FrameHeard& frame);
  void obeys(HostId host, const daemon::Event& event, const daemon::Action& action);
  void promised(HostId host, Term term);
  void says_hello(const Hello& hello);
  void beats(HostId host, const Beat& beat);

  // The supervisor.
  void recovered(const JournalContents& contents, const Status& replayed, const JobCore& core, Term term);
  void recovery_failed(const Error& error);
  void supervisor_died();
  void decided(Term term, std::uint64_t ticket, const CoreEvent& event, const std::vector<Action>& actions,
               const JobCore& core);
  void appended(const Ticket& ticket, std::uint64_t lsn) { durable_.appended(ticket, lsn); }
  void durable(const Ticket& ticket) { durable_.told(ticket); }
  void check_pause(const Action& action) const;
  void sleeps_until(Instant due, const JobCore& core);
  void performs(const JobCore& core, const Action& action);
  void answers(const CommitAnswer& answer) { commits_.answered(answer); }
  void answers(HostId host, const ClaimAnswer& answer, const JobCore& core) { claims_.answers(host, answer, core); }
  HangAccount& hangs() { return hangs_; }
  DrillAccount& drills() { return drills_; }
  BeatAccount& heard() { return heard_; }
  void resends(const JobCore& core, const Action& action);
  void acks(HostId host, const Ack& ack, const JobCore& core);
  void arrives(const Up& message);
  void reads(const Up& message);
  void counts(HostId host, const Beat& beat);
  void watch_hangs(const JobCore& core);
  void judges(const HostVerdict& verdict);
  void judges_together(const std::vector<HostVerdict>& verdicts, const Liveness& liveness) const;
  void believes(HostId teller, const RankReport& report);
  void supervisor_goes_on() { goes_on_since_ = now(); }
  void watch_detection();
  void watch_claims();
  void gives_way(const std::vector<HostId>& hosts);
  void launches(HostId host);
  void worker_ended(HostId host, const Worker* worker);
  void stop_requested() { stop_requested_ = true; }
  void verdict(const Verdict& verdict, const JobCore& core);

  // The world.
  void healed();
  void ended(int exit_code);  // nothing will happen any more
  void not_ended(const std::string& why) const;
  const std::optional<Verdict>& told() const { return told_; }

 private:
  // Kind of command, mesh or host, gang, counter of the generation.
  using Command = std::tuple<int, std::uint32_t, std::uint32_t, std::uint64_t>;
  struct HostAccount {
    Term promised;
    Term heard_term;
    Instant last_contact;
    Duration stood_still;  // until then
    bool contact_watched = false;
    Instant worker_may_stay;                 // whatever was granted: since it heard a supervisor, or was frozen
    Duration stays_stood_still;              // until that was set
    std::map<std::uint64_t, Instant> beats;  // seq → real time of its send
    std::map<Incarnation, Instant> granted;
    std::uint64_t unread = 0;
    bool joined = false;
    bool heard = false;                     // its hello was read
    std::optional<Ticket> out;              // the record with which it failed, was lost or ended
    std::optional<Ticket> named;            // the record with which it failed to start: the verdict has to name it
    std::optional<Instant> last_good_beat;  // read, on the supervisor's clock
    std::uint32_t launches = 0;
    Instant joined_at;
    Instant last_good_at;            // last_good_beat, in the world's time
    std::optional<Instant> back_at;  // heard again then, after its leases were over
  };

  struct GangAccount {
    std::optional<Generation> caused;  // of this generation it is known why it failed
    bool by_host = false;              // its host was lost, too: another budget
    bool asked = false;                // an operator wants it started again, which spends nothing
    std::uint64_t life = 0;            // of an idle slot: for whom it was started
    Instant begun_at;                  // its ports were asked for
    Instant started_at;
    std::vector<Instant> restarts;  // since it was seen to last
    std::uint32_t all_restarts = 0;
  };

  [[noreturn]] void violated(const char* label, const std::string& message) const;
  void check(bool holds, const char* label, const std::string& message) const {
    if (!holds) violated(label, message);
  }
  bool is_durable(const Ticket& ticket) const { return durable_.holds(ticket); }
  bool settled() const;
  Instant now() const;
  std::optional<Command> command_of(const JobCore& core, const Action& action) const;
  void on_the_wire(const JobCore& core, const Action& action);
  void check_order_of_start(RankId rank);
  void check_order_of_stop(const JobCore& core, const Action& action) const;
  void check_ports(const SendStart& start) const;
  // checker_slots.cc
  std::uint32_t slot_of(RankId rank) const;
  void learn_of_hosts(const Ticket& here, const CoreEvent& event, const std::vector<Action>& actions,
                      const JobCore& core);
  void learn_of_done_slots(const JobCore& core);
  bool is_out(const HostAccount& host, Term term) const;
  void learn_of_generations(const Ticket& here, const JobCore& core);
  void check_starts(const Ticket& here, const std::vector<Action>& actions, const JobCore& core);
  void check_slot(const SendStart& start, const JobCore& core);
  // checker_standby.cc
  void learn_of_standby(const Ticket& here, const std::vector<Action>& actions, const JobCore& core);
  bool is_superseded_beside(const RankProcess& process) const;
  void check_company(const RankProcess& process) const;
  void check_readiness(const RankReport& report) const;
  // checker_recovery.cc
  void learn_causes(const CoreEvent& event);
  void learn_of_loss(HostId host);
  void learn_of_parked(const JobCore& core);
  void learn_of_hangs(const JobCore& core);
  void learn_of_verdict(const RankHung& hung, const JobCore& core);
  void learn_of_wish(const OperatorAsked& asked);
  void check_restart(MeshId mesh, GangId gang, Generation before, Generation now);
  void check_predecessors(const RankProcess& process);
  void check_budget_spent(const Verdict& verdict) const;
  void check_hosts_are_known(const Verdict& verdict) const;
  void check_failed_hosts(const Verdict& verdict, const JobCore& core) const;
  void watch_lease(RankProcess& process);
  void contact(HostId host);
  void watch_contact(HostId host);
  void may_stay(HostId host);
  void orphan_due(HostId host);
  HostAccount& account(HostId host) { return hosts_[host.value()]; }

  // checker_verdict.cc
  void check_decision(const Verdict& verdict, const JobCore& core) const;
  bool somebody_is_tardy() const;
  bool somebody_waits_for_a_fence(const JobCore& core) const;
  void check_success(const JobCore& core) const;
  void check_shrunk(const JobCore& core, MeshId mesh) const;
  void check_rank_cause(const Verdict& verdict) const;
  void check_code_of_another(const Verdict& verdict, RankId cause) const;
  void check_crash_in_a_row(const FirstCause& cause, RankId rank) const;
  RankId rank_of(const FirstCause& cause) const;
  void check_no_progress(const Verdict& verdict) const;
  void check_journal();
  void check_leftovers() const;
  void check_terminal(const JobCore& core) const;
  void check_left_behind(const Verdict& verdict, const JobCore& core) const;

  World& world_;
  JobUuid job_;
  std::vector<HostAccount> hosts_;
  std::map<RankId, std::vector<RankProcess*>> processes_;
  std::set<Incarnation> said_ready_;
  std::optional<JobCore> woken_;
  std::map<RankId, std::pair<Generation, Ticket>> decided_beside_;  // of what is no rank of a mesh
  std::set<std::pair<MeshId, GangId>> given_;                       // gangs that a standby has taken the place of, once
  std::set<RankId> ready_;                                          // some process of it was
  std::set<std::pair<MeshId, GangId>> parked_;                      // was, once: nobody waits for it
  Placement slots_;                                                 // of the scenario, before anything is replaced
  std::map<std::uint32_t, HostId> slot_hosts_;                      // as START has said
  std::set<std::uint32_t> may_leave_;  // of these slots, since their last start: left, or all that was there had ended
  std::map<std::pair<MeshId, GangId>, std::pair<Generation, Ticket>> started_gangs_;
  std::map<std::pair<MeshId, GangId>, std::map<Generation, Ticket>> decided_gangs_;  // before anything starts
  std::map<std::pair<MeshId, GangId>, GangAccount> gangs_;
  std::map<RankId, Generation> written_;  // the highest that the shared resource has accepted
  Stages stages_;                         // of the scenario, whatever the core was fed with
  Term highest_term_;
  DurableAccount durable_;
  CommitAccount commits_;
  ClaimAccount claims_;
  TimeAccount times_;
  HangAccount hangs_;
  DrillAccount drills_;
  RecordAccount records_;
  BeatAccount heard_;
  std::map<Command, Ticket> commands_;
  std::map<Incarnation, Ticket> recorded_ends_;
  std::map<Incarnation, HostId> started_;  // where START said
  std::optional<Ticket> finished_;
  // The reason of the verdict that was judged last; another may follow where that was not durable.
  std::string decided_;
  std::optional<Verdict> told_;
  std::optional<Instant> healed_at_;
  std::uint64_t deaths_ = 0;  // of supervisors
  Instant goes_on_since_;     // the supervisor: it began, or was not hindered since
  bool stop_requested_ = false;
  bool foreseen_ = false;  // by some supervisor; one after it may not know
};

}  // namespace monarch::sim
