#pragma once

// SlurmLauncher: workers on the nodes of an allocation, each in a step of its own: one process on one node, which Slurm
// ends alone. The step is started by an srun that carries the script of remote_script.h, so that a node gets
// monarch-worker as a host of SSH does; the supervisor's guard forks the srun, and a step outlives the supervisor.
//
// Where many of the first job's nodes are launched at once, one step serves them all. Whoever has no part in it,
// whatever the reason, gets a step of its own next, and what that says of it counts; only where srun could not begin on
// some of them those that it did reach are tried together once more.
//
// A worker's end is proven by itself, when it says goodbye, or by another step (`monarch-worker end`), as often as it
// takes until the node has answered; the end of its srun is a reason to look. Slurm's own word, that a step has ended,
// is none: it says so of a node that does not answer, where all still runs.
//
// Thread: the supervisor's loop. Lifetime: shorter than the loop's and the guard's.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/launch/launcher.h"
#include "supervisor/launch/slurm/shared_step.h"
#include "supervisor/launch/slurm/slurm_calls.h"
#include "supervisor/launch/slurm/slurm_commands.h"
#include "supervisor/launch/slurm/steps_gres.h"
#include "supervisor/launch/slurm/steps_list.h"
#include "supervisor/launch/talk/guarded_programs.h"
#include "supervisor/launch/talk/program_talk.h"
#include "supervisor/launch/talk/way_back.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/scope.h"

namespace monarch {

struct SlurmLauncherOptions {
  JobUuid job;
  std::string job_id;
  Term term;
  std::uint32_t slurm_job = 0;
  std::vector<std::string> nodes;  // of it, by HostId; further ones are placed
  Words environment;               // slurm_environment()
  std::string address;  // of this host, as the nodes see it; numeric; empty: that from which srun reaches them
  std::shared_ptr<const WorkerImage> image;  // owners: the launcher and its talks, which only read it
  std::string log_directory;                 // `srun.<node>.log` goes here
  Duration silence = Duration::seconds(30);  // of a node in the middle of a talk
  std::uint32_t parallel = 64;               // launches in steps of their own at a time
  std::uint32_t ends = 256;                  // workers that are looked for at a time, to end them
  std::uint32_t own_steps = 100;             // where more hosts are launched at once, one step serves them
  // Slurm's job is over, or about to be, and nothing can be launched any more; once. In Slurm's word for how,
  // "CANCELLED"; empty: it knows no such job any more. Not within a call of the owner's.
  std::function<void(const std::string& state)> on_over = {};
};

inline constexpr std::string_view kUntold = "Slurm does not tell the node the address of this host";

// Where a host is.
struct StepPlace {
  std::uint32_t job = 0;
  std::string node;
  std::string name;  // of the host
};

class SlurmLauncher final : public Launcher {
 public:
  SlurmLauncher(EventLoop& loop, Guard& guard, SlurmLauncherOptions options, LauncherHandlers handlers);
  ~SlurmLauncher() override;

  // A host that is none of the first job's nodes is told where it is before anything else.
  // What was there before is not ended any longer, nor told.
  void place(HostId host, StepPlace place);
  void launch(HostId host, const Bootstrap& bootstrap) override;
  void destroy(HostId host) override;

  void on_goodbye(HostId host, bool orderly) override;
  // The answer to job_state_query() about the first job.
  void hear(const Result<std::string>& state) { (void)note_state(state); }
  // Looks whether Slurm's job is over, and how.
  void check_over();
  SlurmCalls& calls() { return calls_; }
  void on_changed(const RankReport& report) override;
  void on_guard_lost() override { programs_.on_guard_lost(); }

 private:
  enum class Phase : std::uint8_t {
    kUnknown,    // not launched by this supervisor; an earlier one may have
    kWaiting,    // to be launched, when others are
    kLaunching,  // its srun is on its way
    kLaunched,
    kUntouched,  // the launch failed before anything of it could run there
    kEnding,     // being destroyed
    kEnded,      // and told
  };
  // A step that serves many.
  struct Shared {
    std::vector<HostId> hosts;  // in its order
    std::unique_ptr<SharedStep> step;
  };
  struct Host {
    Phase phase = Phase::kUnknown;
    std::uint32_t shared = 0;    // its number, if such a step serves it
    std::uint32_t together = 0;  // how often it was launched with others
    std::string step;            // the name of that which runs its worker
    StepPlace place;
    Bootstrap bootstrap;
    std::unique_ptr<ProgramTalk> talk;    // of the worker's step, for as long as its srun lives
    std::unique_ptr<ProgramTalk> ending;  // of the step that ends it
    TimerId retry = 0;                    // of an end, or of a look at a step
    std::uint32_t tries = 0;              // of the same
    std::uint64_t round = 0;              // what was asked of Slurm before is not heard any more
    Instant began;                        // the launch
    LaunchedWorker launched;
  };

  Host& at(HostId host) { return hosts_.at(host.value()); }
  const StepPlace& place_of(HostId host) const { return hosts_[host.value()].place; }
  const std::string& node(HostId host) const { return place_of(host).node; }
  void fill();
  void fill_soon();
  Status start(HostId host);
  void start_shared();
  Status begin_shared(std::uint32_t number, const std::vector<HostId>& hosts, Words gres);
  void on_shared_news(std::uint32_t number, const SharedNews& news);
  void on_shared_left(HostId host, bool again);
  void on_shared_end(std::uint32_t number);
  void leave_shared(HostId host);
  void landed(const Host& host);
  RemoteOrder order_of(HostId host, RemotePurpose purpose) const;
  ProgramTalkOptions talk_options(HostId host, const std::string& step, Words gres) const;
  const std::string& call_back_address(const std::string& from) const {
    return options_.address.empty() ? from : options_.address;
  }
  void on_launched(HostId host, const BootstrapReply& reply, Duration copy);
  std::string again(HostId host) const;
  void on_launch_answer(HostId host, const RemoteAnswer& answer);
  void on_srun_end(HostId host);
  void look(HostId host);
  void look_again(HostId host);
  void fail_by_munge(HostId host, const LaunchFailure& failure);
  void fail(HostId host, LaunchFailure failure, Phase next);
  void begin_end(HostId host);
  void submit_end(HostId host);
  void fill_ends();
  Status start_end(HostId host);
  void on_end_answer(HostId host, const RemoteAnswer& answer);
  void ask_whether_over(HostId host, const std::string& why);
  bool note_state(const Result<std::string>& answer);
  void try_end_again(HostId host, const std::string& why);
  void tell_ended(HostId host, std::string how, bool orderly);
  void drop(Host& host);
  // Runs `then` with the answer, unless the host's story has gone on meanwhile.
  void ask_steps(HostId host, StepsList::Then then);
  void ask(HostId host, Words command, std::function<void(Result<std::string>)> then);

  EventLoop& loop_;
  SlurmLauncherOptions options_;
  LauncherHandlers handlers_;
  GuardedPrograms programs_;
  SlurmCalls calls_;
  StepsGres gres_;
  StepsList steps_;
  std::map<std::uint32_t, Shared> shared_;  // by number
  std::uint32_t shares_ = 0;                // how many such steps there were
  std::vector<Host> hosts_;
  // Each in its round.
  std::deque<std::pair<HostId, std::uint64_t>> to_end_;
  std::deque<HostId> waiting_;
  std::uint32_t launching_ = 0;
  bool checking_ = false;      // whether the job is over
  bool over_ = false;          // and told
  std::string submitted_;      // when; empty: not known yet
  std::uint32_t endings_ = 0;  // how often it was seen to be ending
  // Owner: this. Deferred calls ask whether it is still there.
  Scope scope_;
};

}  // namespace monarch
