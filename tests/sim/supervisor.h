#pragma once

// Supervisor: one term of the supervisor, driven as supervisor/loop/{supervisor,decider}.cc,
// supervisor/workers/worker_links.cc and launch/local.cc drive it: it recovers the journal, feeds the core, lets
// actions out once their record is durable, launches and destroys workers through its guard. Core, what beats mean,
// journal and the table of links are the real ones.
//
// Thread: one simulation's. Lifetime: its guard's; it stays, as a memory, after its death.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "supervisor/core/beats/beat_book.h"
#include "supervisor/core/job/job_core.h"
#include "supervisor/workers/claim_desk.h"
#include "supervisor/workers/commit_desk.h"
#include "supervisor/workers/hang_watch.h"
#include "supervisor/workers/roster_desk.h"
#include "tests/sim/journal.h"
#include "tests/sim/kernel.h"
#include "tests/sim/network.h"
#include "transport/messages/keeper.h"
#include "transport/zmq/link_table.h"

namespace monarch::sim {

class World;
class Worker;

class Supervisor {
 public:
  explicit Supervisor(World& world);
  ~Supervisor();

  // From the guard and the launcher's pipes.
  void on_hello(const KeeperHello& hello);
  void on_changed(const RankReport& report);
  void on_reply(HostId host, const std::optional<BootstrapReply>& reply);
  void on_signal(int number);
  // From the network.
  void on_message(const Up& message);
  // From the operator.
  void stop(StopHow how);
  // It is said that the hosts are taken back after `left`; nothing: that they are, and when comes later.
  void foresee(std::optional<Duration> left);
  void ask(const OperatorRequest& request);
  void hold(const HoldRequest& request);
  // `then`, once it is durable; not at all where it is refused.
  void drill(const DrillNotice& notice, const std::function<void()>& then);
  void signal(std::vector<RankId> ranks, int number);

  void die(int signal);
  void vanish();
  void freeze();  // with its machine
  void thaw();
  void stall();  // its main loop alone
  void unstall();

  bool alive() const { return life_->alive(); }
  bool open() const { return core_.has_value() && alive(); }
  const LifePtr& life() const { return life_; }
  const JobCore& core() const { return *core_; }
  Term term() const { return term_; }
  const Liveness& liveness() const { return book_->liveness(); }

 private:
  struct Waiting {
    std::uint64_t ticket = 0;
    std::vector<Action> actions;
    std::function<void()> then;
  };
  struct Heard {  // of whom a beat is read
    HostId host;
    const Beat* beat = nullptr;
    const Beat* as_read = nullptr;  // with what is planted in it, in the same places
  };

  // supervisor.cc
  void boot();
  void stands_still() { stood_from_ = now(); }
  void goes_on();
  void begin();
  void check_inventory();
  void perform(const Action& action);
  void launch(HostId host);
  void await_key(HostId host);
  void finish(const Verdict& verdict);
  void leave(int exit_code);
  void exit(int code);
  Instant now() const;

  // supervisor_decider.cc
  std::uint64_t decide(const CoreEvent& event);
  AppendRecord record(RecordType type, std::string payload) const;
  std::uint64_t append(RecordType type, std::string payload, std::function<void()> then);
  void on_journal(const JournalReport& report);
  void answered(std::uint64_t ticket);
  void release();

  // supervisor_links.cc
  void open_book();
  std::uint64_t heard(CoreEvent event);
  void on_beat(HostId host, const Beat& beat);
  template <class Message>
  void send(HostId host, const Message& message);
  // supervisor_desks.cc
  void copy(const RankReport& report);
  void open_commits();
  void answer(HostId host, const CommitAnswer& told);
  // supervisor_claims.cc
  void open_claims();
  bool send_roster(HostId host, const Roster& roster);
  void hear_post(HostId host, const Beat& beat);
  void hear_claim(CoreEvent event);
  void forget_claims();
  void start_bare(std::vector<Action>& actions) const;
  void answer(HostId host, ClaimAnswer told);
  void at(Instant when, std::function<void()> then);
  // supervisor_plants.cc
  bool plant(CoreEvent& event) const;
  RankReport said_of(const RankReport& believed) const;
  Beat planted(HostId host, const Beat& beat);
  void plant(HostId host, const Beat& beat, BeatBook::Answer& answer);
  void hear_commit(HostId host, RankReport report);
  void judge_without_brake();
  // supervisor_health.cc
  void look(Instant due, Instant now);
  void health_turn();
  void watch_health();
  void watch_claims();
  void on_later_term(HostId host, Term term);
  // supervisor_hangs.cc
  void open_hangs();
  void take_stacks(RankId rank, const std::function<void(std::string)>& then);
  void when_durable(std::function<void()> then);

  // supervisor_launcher.cc
  bool refuse_launch(HostId host);
  void launch_failed(HostId host, LaunchFailureKind kind, const std::string& error);
  void destroy(HostId host);
  void end_unseen(HostId host);
  void tell_ended(HostId host, Worker* worker, const RankEnd& end, std::uint64_t launch);
  void worker_ended(HostId host, const Worker* worker, const RankEnd& end);

  World& world_;
  LifePtr life_;
  LifePtr journal_life_;
  Term term_;
  std::optional<JobCore> core_;
  std::optional<BeatBook> book_;
  Heard heard_;
  std::optional<CommitDesk> commits_;
  std::optional<HangWatch> hangs_;
  std::optional<RosterDesk> roster_;  // nothing: nobody claims slots
  std::optional<ClaimDesk> claims_;   // likewise
  std::unique_ptr<Journal> journal_;
  LinkTable table_;
  std::uint64_t last_ticket_ = 0;
  std::uint64_t durable_ticket_ = 0;
  std::deque<Waiting> waiting_;
  bool releasing_ = false;
  Alarm deadline_;
  Alarm health_;
  Instant look_due_ = Instant::never();
  Alarm claims_due_;
  std::map<HostId, Generation> started_;
  std::map<HostId, std::uint64_t> launches_;  // how often, in this term
  std::set<Incarnation> copying_;
  std::set<HostId> pending_;               // replies that have not come
  bool inventory_known_ = true;            // of the guard: only one that came back has to ask
  std::set<HostId> ending_;                // their ends are on their way
  std::map<HostId, std::uint64_t> ended_;  // one more than the launch whose end was told
  std::set<HostId> to_adopt_;
  std::set<HostId> to_destroy_;
  std::string old_state_;  // for kStaleSnapshot
  std::optional<Instant> last_health_turn_;
  bool stalled_ = false;
  Instant stood_from_;
  bool leaving_ = false;
  int exit_code_ = 70;
};

}  // namespace monarch::sim
