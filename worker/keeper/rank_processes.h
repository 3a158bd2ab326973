#pragma once

// RankProcesses: performs what the keeper's core orders about incarnations, and tells it what came of it. It decides
// nothing.
//
// Thread: the keeper's, its process's only one. Lifetime: shorter than those of the loop and the watch.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "transport/loop/event_loop.h"
#include "transport/messages/rank.h"
#include "transport/messages/stacks.h"
#include "transport/process/child_watch.h"
#include "transport/process/containment.h"
#include "transport/process/input_pipes.h"
#include "transport/process/spawn.h"
#include "worker/core/cpu_binding.h"
#include "worker/core/environment.h"
#include "worker/core/keeper_actions.h"
#include "worker/keeper/mesh_setup.h"
#include "worker/keeper/rank_doors.h"
#include "worker/keeper/rank_files.h"
#include "worker/keeper/rank_preparation.h"
#include "worker/keeper/reservations.h"
#include "worker/keeper/standstill.h"

namespace monarch {

struct RankProcessesOptions {
  Environment base;  // the keeper's own
  std::string job_uuid;
  std::string host_name;
  mode_t umask = 022;                      // as it was before the keeper set its own
  std::optional<rlimit> descriptor_limit;  // likewise
  std::string tree = {};                   // where the job's workspace lies; empty: nowhere
  RankFiles files = {};
  std::function<bool(pid_t)> is_dump = [](pid_t) { return false; };  // whether this tracer takes stacks for us
  std::function<void(const InputTaken&)> on_input_taken = [](const InputTaken&) {};
};

// The read ends, as they are handed to the guarded process.
struct RankPipes {
  int output = -1;
  int error = -1;
  std::string mesh_name;
  std::uint64_t log_max_bytes = 0;
  std::uint16_t ready_port = 0;
  std::optional<Incarnation> standby;  // whose they were
};

class RankProcesses {
 public:
  RankProcesses(EventLoop& loop, ChildWatch& watch, Containment& containment, Reservations& reservations,
                RankDoors& doors, RankProcessesOptions options, std::function<void(KeeperEvent)> tell);
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  void fork_rank(const keeper_action::ForkRank& order);
  // `descriptors` are its stdin, stdout and stderr.
  void fork_spawned(const keeper_action::ForkSpawned& order, const std::vector<UniqueFd>& descriptors);
  // The standby's process is this rank's from now on.
  void take_over(const keeper_action::TakeOver& order);
  void open_gate(const Incarnation& key);
  // What it writes is not taken for the standby's any more: its gate may open.
  void pipes_taken(const Incarnation& key);
  // Tells Executed of a rank whose program runs by now, if that was not noticed yet.
  void ask_whether_executed(const Incarnation& key);
  void signal(const Incarnation& key, int number, SignalTo to);
  // For those of them that have a process here.
  void give_input(const Input& order);
  // True where it was done by SIGSTOP, which any SIGCONT undoes.
  bool freeze(const Incarnation& key);
  bool thaw(const Incarnation& key);  // true where it was done by SIGCONT
  // Its own process: what else its tree has may end by itself.
  void kill_rank(const Incarnation& key);
  void kill(const Incarnation& key);
  void check(const Incarnation& key);
  void reap(const Incarnation& key);
  void drop(const Incarnation& key);
  // Its leader, alive or not reaped yet, once its program was executed; else why it is not to be looked at.
  std::variant<pid_t, StacksEnd> leader(const Incarnation& key) const;
  // On SIGCHLD: the kernel has something to say of a child; which, and what, is looked for.
  void look_at_stopped();
  // Nothing for a spawned process, or once dropped.
  const RankPipes* pipes(const Incarnation& key) const;

 private:
  struct Process {
    std::string name;  // rank_key(), which names its containment
    bool contained = false;
    std::unique_ptr<Child> child;  // until reaped
    WatchId exec_watch = 0;
    UniqueFd output;
    UniqueFd error;
    RankPipes pipes;
    bool on_the_way = true;  // to its gate: it may still have copies of descriptors that are not its own
    bool gate_wanted = false;
    bool at_inner_gate = false;  // a standby's that is executed already: its gate is at a door
    TimerId pipes_timer = 0;     // runs while it is not known whose its output would be taken for
    bool place_wanted = false;   // its gate opens once that is known
    Reservations::Key reservation;
    std::vector<std::uint16_t> ports;  // of the reservation: its own
    std::vector<UniqueFd> awaited;     // pidfds of what its shell waited for, once that was killed
    StandstillWatch standstill;
    Standstill stands = Standstill::kNone;
  };

  // What its child does before its program; or why it cannot.
  Result<RankPreparation> preparation_of(const keeper_action::ForkRank& order);
  Result<const MeshSetup*> setup_of(MeshId mesh);
  // What kept it from being forked.
  std::optional<StepFailure> begin(const keeper_action::ForkRank& order);
  std::optional<StepFailure> begin(const Incarnation& key, Process process, const SpawnOptions& options);
  void not_forked(const Incarnation& key, StepFailure failure);
  // Of ranks that have ended: what has been read to its end, or whatever was handed on. Whether there was any.
  bool close_pipes_of_ended(const std::function<bool(int)>& closed);
  void exec_told(const Incarnation& key);
  void arrived(Process& process);
  void open_wanted_gates();
  void exited(const Incarnation& forked_as, const ExitStatus& status);
  // Those whose exit has begun, and was not told.
  std::vector<Incarnation> ending_beside(const Incarnation& key);
  Process* find(const Incarnation& key);
  void let_pass(const Incarnation& key, Process& process);
  // rank_standstill.cc
  void look_every_second();
  void look(const std::function<bool(const Process&)>& at);

  EventLoop& loop_;
  ChildWatch& watch_;
  Containment& containment_;
  Reservations& reservations_;
  RankDoors& doors_;
  RankProcessesOptions options_;
  std::function<void(KeeperEvent)> tell_;
  std::vector<std::uint32_t> usable_cpus_;
  std::optional<HostTopology> topology_;  // once it was needed
  UniqueFd ended_pipe_;  // handed out in the place of one that was closed: nothing is in it, nor will be
  std::map<MeshId, std::unique_ptr<MeshSetup>> setups_;
  std::map<Incarnation, Process> processes_;
  InputPipes inputs_;
  std::map<Incarnation, Incarnation> renamed_;  // standbys, while what they have become has a process
  TimerId look_timer_ = 0;
  Instant looked_for_ends_;  // not for each of many that end
};

}  // namespace monarch
