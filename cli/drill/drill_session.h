#pragma once

// DrillSession: one drill of one running job, from its first look at it to what is left of it: it hears the job's
// events, asks for its status, performs what DrillCore decides, and keeps a record of all that. It survives the
// supervisor, which it may have killed itself.
//
// Thread: its own loop, while run() or look_for_leftovers() runs. Lifetime: the command's.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/args/command.h"
#include "cli/drill/drill_orders.h"
#include "cli/follow/signal_policy.h"
#include "supervisor/client/job_view.h"
#include "supervisor/client/link/supervisor_client.h"
#include "supervisor/drill/core/drill_core.h"
#include "supervisor/drill/injector.h"
#include "supervisor/launch/reach/check_reach.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/signals.h"

namespace monarch {

struct DrillSessionOptions {
  drill::DrillPlan plan;
  std::string drill;   // its id
  std::string worker;  // path of monarch-worker
  // Of a job that has ended before its drill is over: one that goes on from it, once this process has no thread but its
  // own. Empty, or nothing: there is none, and the drill is over.
  std::function<std::unique_ptr<JobView>(const JobView& ended)> next_job = {};
};

class DrillSession {
 public:
  // Before this process has a thread.
  static Result<std::unique_ptr<DrillSession>> create(const JobView& job, const JobSpec& spec, const Context& context,
                                                      SignalFd& signals, DrillSessionOptions options);
  ~DrillSession();
  DrillSession(const DrillSession&) = delete;
  DrillSession& operator=(const DrillSession&) = delete;

  // Until the drill is over, and everything is taken back.
  void run();
  const JobView& job() const { return *job_; }
  bool interrupted() const { return record_.interrupted; }
  // Why the supervisor did not let it begin; empty: it did, or never answered.
  const std::string& refused() const { return refused_; }
  bool is_cut_short() const { return core_.is_cut_short(); }
  void ended(const Verdict& verdict) { record_.verdict = verdict; }
  // Of a job that has ended, what of it still runs on its hosts; of one that goes on, what of the faults is there yet.
  void look_for_leftovers();
  // What was seen so far; blows, times, events, samples, checks and leftovers are filled in.
  drill::DrillRecord take_record();

 private:
  DrillSession(std::unique_ptr<EventLoop> loop, const JobView& job, const JobSpec& spec, const Context& context,
               SignalFd& signals, DrillSessionOptions options);

  drill::DrillNow now() const;
  void say(const std::string& line);

  Status reach();
  Status connect();
  void connect_or_retry();
  void go_on_with_next();
  void on_connected();
  void on_lost();
  void on_event(const JobEvent& event);
  void on_verdict(const Verdict& verdict);
  void on_signals();
  void poll();
  void note_sample(const JobStatus& status, WallTime at);
  void tick();
  void renew();

  void act();
  void perform(const drill::DrillAction& action);
  void tell(const drill::Blow& blow);
  void strike(const drill::Blow& blow);
  void take_back(std::uint32_t number);
  void send(const DrillNotice& notice);
  void look_for_ranks(const std::vector<std::string>& of_blow);
  using OnSeen = std::function<void(const std::string& host, const CheckAnswer&)>;
  // on_done: all that could answer have.
  void look_on_hosts(const std::vector<std::string>& hosts, const OnSeen& on_seen,
                     const std::function<void()>& on_done);
  void note_leftovers(const std::string& host, const CheckAnswer& answer);
  std::optional<HostId> host_of(const std::string& name) const;
  void finish();

  std::unique_ptr<EventLoop> loop_;
  const JobView* job_;
  const JobSpec& spec_;
  std::unique_ptr<JobView> next_;  // of a job that goes on from the first
  std::uint32_t jobs_before_ = 0;
  const Context& context_;
  SignalFd& signals_;
  DrillSessionOptions options_;
  drill::DrillCore core_;
  drill::DrillRecord record_;
  DrilledJob drilled_;
  DrillWords words_;
  std::unique_ptr<SupervisorClient> client_;
  std::vector<PoolHost> pool_;
  std::unique_ptr<CheckReach> reach_;
  std::unique_ptr<drill::Injector> injector_;
  SignalPolicy policy_{ViewerKind::kOwner};
  std::vector<std::string> hosts_;  // by HostId, as the job's status calls them
  std::uint64_t last_event_ = 0;
  Instant lost_at_ = Instant::never();
  Instant heard_at_;  // the last status
  Instant renew_at_;
  bool asking_ = false;  // for the status
  std::string refused_;
  bool begun_ = false;                                          // the supervisor has agreed to the drill
  std::map<std::uint32_t, drill::Blow> untold_;                 // the supervisor has not answered yet; by number
  std::map<std::uint32_t, drill::Injector::Ticket> in_effect_;  // by the blow's number
  std::uint32_t awaited_ = 0;                                   // under way
  bool finishing_ = false;
  Instant finish_by_ = Instant::never();
};

}  // namespace monarch
