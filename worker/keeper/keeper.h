#pragma once

// Keeper: the loop around KeeperCore. Frames, exits, signals and time become events; actions become what the classes
// beside it do. The worker's keeper and the supervisor's guard are both this, set up differently.
//
// Thread: its process's only one. Lifetime: of the process; run() answers the exit code.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "transport/base/exit_code.h"
#include "transport/base/ids.h"
#include "transport/base/result.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/signals.h"
#include "transport/messages/message.h"
#include "transport/process/child_watch.h"
#include "transport/process/containment.h"
#include "transport/wire/codec.h"
#include "worker/core/keeper_core.h"
#include "worker/keeper/guarded_process.h"
#include "worker/keeper/rank_doors.h"
#include "worker/keeper/rank_processes.h"
#include "worker/keeper/reservations.h"
#include "worker/keeper/stack_taker.h"

namespace monarch {

struct KeeperSetup {
  KeeperOptions options;
  JobUuid job;
  std::string job_id;
  std::string host_name;
  std::vector<std::string> lock_directories;  // what several jobs of this user lock; see host_locks.h
  Environment environment;
  mode_t umask = 022;
  CgroupUse cgroups = CgroupUse::kIfWritable;
  GuardedCommand guarded;
  std::optional<std::string> stash;  // what the first guarded process is given
  RankDoorsOptions doors = {};       // of a worker
  std::string tree = {};             // of a worker: its job's workspace
  std::string state_directory = {};  // of a worker
  RankFileBytes rank_files = {};     // of a worker
};

class Keeper {
 public:
  // Becomes a subreaper, ignores SIGPIPE, and takes TERM, INT, HUP and CHLD.
  static Result<std::unique_ptr<Keeper>> create(KeeperSetup setup);
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  int run();

 private:
  Keeper(KeeperSetup setup, std::unique_ptr<EventLoop> loop, std::unique_ptr<SignalFd> signals);

  GuardedHandlers guarded_handlers();
  StackTakerHandlers stack_handlers();
  void tell(KeeperEvent event) { events_.push_back(std::move(event)); }
  void handle(KeeperEvent event);
  void handle_waiting();
  void arm_timer();
  void on_signals();
  void on_rank(KeeperEvent event);
  void on_frame(const Frame& frame, std::vector<UniqueFd> descriptors);
  Status take(const Frame& frame, std::vector<UniqueFd> descriptors);
  void take_signal(Signal order);
  void fork_some();
  void fork_more_later();
  Status take_stash(const KeeperStash& stash);
  Status take_stacks(const TakeStacks& order);
  template <class Message>
  void send(const Message& message, const Incarnation& key, std::vector<UniqueFd> descriptors = {}) {
    send(number_of<Message>(), encode_payload(message), key, std::move(descriptors));
  }
  void send(std::uint16_t type, std::string payload, const Incarnation& key, std::vector<UniqueFd> descriptors);

  void perform(const keeper_action::ForkRank& action);
  void perform(const keeper_action::TakeOver& action) { ranks_.take_over(action); }
  void perform(const keeper_action::ForkSpawned& action);
  void perform(const keeper_action::OpenGate& action);
  void perform(const keeper_action::SignalRank& action);
  void perform(const keeper_action::TellRank& action) { doors_.tell(action.key, action.json); }
  void perform(const keeper_action::AnswerCommit& action) { doors_.answer(action.key, action.answer); }
  void perform(const keeper_action::FreezeTree& action);
  void perform(const keeper_action::ThawTree& action);
  void perform(const keeper_action::KillRank& action);
  void perform(const keeper_action::KillTree& action);
  void perform(const keeper_action::CheckTree& action) { ranks_.check(action.key); }
  void perform(const keeper_action::Reap& action) { ranks_.reap(action.key); }
  void perform(const keeper_action::Drop& action) { ranks_.drop(action.key); }
  void perform(const keeper_action::Report& action);
  void perform(const keeper_action::Pipes& action);
  void perform(const keeper_action::HoldReservation& action);
  void perform(const keeper_action::RefuseReservation& action);
  void perform(const keeper_action::ReleaseReservation& action);
  void perform(const keeper_action::Refused& action);
  void perform(const keeper_action::ForkGuarded& action);
  void perform(const keeper_action::SignalGuarded& action) { guarded_.signal(action.number); }
  void perform(const keeper_action::KillGuarded& action);
  void perform(const keeper_action::SayHello& action);
  void perform(const keeper_action::Ping& action);
  void perform(const keeper_action::TellEnded& action);
  void perform(const keeper_action::TellWarned& action);
  void perform(const keeper_action::KillDescendants& action);
  void perform(const keeper_action::Exit& action);

  KeeperSetup setup_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<SignalFd> signals_;
  ChildWatch watch_;
  Containment containment_;
  KeeperCore core_;
  Reservations reservations_;
  RankDoors doors_;
  RankProcesses ranks_;
  StackTaker stacks_;
  GuardedProcess guarded_;
  std::uint64_t incarnation_;
  std::deque<KeeperEvent> events_;
  bool handling_ = false;
  std::map<Incarnation, std::vector<UniqueFd>> spawn_descriptors_;  // between the order and its action
  UniqueFd stash_;                                                  // sealed
  std::optional<RankEnd> not_executed_;                             // of the guarded process
  bool term_taken_ = false;                                         // one that is still to be read
  std::uint64_t sent_ = 0;
  std::deque<keeper_action::ForkRank> to_fork_;
  std::vector<Incarnation> to_open_;  // once all are forked
  TimerId timer_ = 0;
  Instant timer_due_ = Instant::never();
  int exit_code_ = kExitInternal;
};

}  // namespace monarch
