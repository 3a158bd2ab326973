#pragma once

// Daemon: the main loop of a worker's daemon. It turns what the keeper, the beat thread and the log thread say into
// events of DaemonCore, and the core's actions into what is said to them. It waits for nothing: files are the log
// thread's, the network is the beat thread's; a ping of the keeper's is answered in the turn in which it comes.
//
// It leaves when the keeper tells it to (TERM, once every rank has ended), or after it told the keeper to shut down:
// the output of ended ranks is completed, the supervisor hears of the ends, the keeper says that nothing is left, the
// state is removed, each within a deadline; then it says goodbye. When the keeper is gone without a word, everything of
// this worker is killed first.
//
// Thread: the main one; it starts the two others and joins them. Lifetime: the process's.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/inbox.h"
#include "transport/loop/signals.h"
#include "transport/messages/keeper.h"
#include "transport/messages/rank.h"
#include "transport/messages/worker.h"
#include "transport/wire/frame.h"
#include "worker/core/daemon_core.h"
#include "worker/core/progress_budget.h"
#include "worker/daemon/beat_thread.h"
#include "worker/daemon/daemon_setup.h"
#include "worker/daemon/keeper_channel.h"
#include "worker/daemon/log_thread.h"
#include "worker/daemon/post_channel.h"
#include "worker/daemon/pressure.h"
#include "worker/daemon/ready_probes.h"
#include "worker/daemon/vault_channel.h"

namespace monarch::daemon {

class Daemon {
 public:
  // `setup` and `signals` outlive it; `signals` delivers TERM.
  static Result<std::unique_ptr<Daemon>> start(Setup& setup, const KeeperHello& hello, UniqueFd keeper,
                                               SignalFd& signals);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Until it has left; the exit code.
  int run();
  // After it ran: its keeper was killed.
  bool lost_keeper() const { return !orderly_; }

 private:
  enum class Phase : std::uint8_t {
    kServing,
    kLeaving,   // the last output and the last beats
    kRemoving,  // the state, then the end
  };

  Daemon(Setup& setup, const KeeperHello& hello, SignalFd& signals);
  Status open(UniqueFd keeper);
  Status watch_inboxes();
  void make_vault_channel();
  void make_post_channel();
  ServantOrders servant_orders();
  void begin(const KeeperHello& hello);

  void on_keeper_frame(const Frame& frame, std::vector<UniqueFd> descriptors);
  template <class Message>
  void say(const Message& message, bool last);
  void on_keeper_gone(const Error& why);
  void on_pipes(const Frame& frame, std::vector<UniqueFd> descriptors);
  void on_report(const RankReport& report);
  void probe(const RankReport& report);
  void settle_adopted();
  void on_signal();
  void on_keeper_ended(const KeeperEnded& ended);
  void on_warned(const KeeperWarned& warned);

  void on_beat(FrameHeard&& frame) { feed(std::move(frame)); }
  void on_beat(LinkUp&& event);
  void on_beat(LinkDown&& event);
  void on_beat(LinkRefused&& event);
  void on_beat(FramesDropped&& event);
  void on_log(LogProgress&& progress);
  void on_log(PromiseMade&& promise);
  void on_log(StateRemoved&& event);
  void on_log(PipesTaken&& taken);

  void feed(const Event& event);
  void perform(PersistPromise&& action);
  void perform(TellKeeper&& action);
  void perform(TellServant&& action);
  void perform(SayHello&& action);
  void perform(BeatChanged&& action);
  template <class Message>
  void tell_keeper(const Message& message);
  void stash();
  void say_hello(bool again);
  void beat_later();
  void flush_beat();
  void look_at_pressure();
  void arm_tick();

  void leave_in_order();
  void leave(Duration patience, int exit_code);
  void check_left();
  bool all_complete() const;
  void remove_state();
  void say_goodbye();

  Setup& setup_;
  SignalFd& signals_;
  Hello hello_;
  DaemonCore core_;
  Instant keeper_heard_;
  TurnStamp turn_stamp_{0};
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<KeeperChannel> keeper_;
  std::unique_ptr<WatchedInbox<FromBeat>> from_beat_;
  std::unique_ptr<WatchedInbox<FromLog>> from_log_;
  std::unique_ptr<BeatThread> beat_;
  std::unique_ptr<LogThread> log_;
  std::map<Incarnation, std::uint16_t> piped_;  // whose pipes were handed out; the port by which it becomes ready, or 0
  std::unique_ptr<ReadyProbes> probes_;
  std::uint16_t vault_port_ = 0;         // as the last beat said
  std::unique_ptr<VaultChannel> vault_;  // nothing: this host keeps no checkpoints
  std::uint16_t post_port_ = 0;
  std::unique_ptr<PostChannel> post_;  // nothing: nobody calls in this job
  ProgressBudget budget_;
  std::vector<RankReport> adopted_;  // of KeeperHello, until it is known whose pipes follow
  OutputTotals totals_;
  PressureFiles pressure_files_;
  std::optional<HostPressure> pressure_;
  std::uint32_t warnings_ = 0;  // as the keeper counts them
  bool beat_dirty_ = false;
  bool beat_at_once_ = false;
  bool flush_armed_ = false;
  bool linked_ = false;   // once at least
  bool refused_ = false;  // the last word of the link was a refusal; said once
  TimerId tick_timer_ = 0;
  Phase phase_ = Phase::kServing;
  bool last_words_ = false;       // everything has ended; the supervisor may still have to hear of it
  bool nothing_to_tell_ = false;  // it has
  std::optional<KeeperEnded> keeper_ended_;
  bool orderly_ = true;  // it was not the keeper's death
  int exit_code_ = 0;
  std::optional<int> result_;
};

}  // namespace monarch::daemon
