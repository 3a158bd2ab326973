#pragma once

// ViewerSession: one viewer that follows one job from its connection to its end, as `run`, `up`, `attach`, `stop`,
// `wait` and `logs -f` need it. It survives the supervisor: a lost connection is made again for a while (its guard
// starts a crashed one), then the job's files say how it ended, or Slurm, if it runs the job.
//
// Thread: its own loop, until follow() returns. Lifetime: the command's.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/args/command.h"
#include "cli/follow/input_feed.h"
#include "cli/follow/lost_submission.h"
#include "cli/follow/rank_hosts.h"
#include "cli/follow/rank_output.h"
#include "cli/follow/signal_policy.h"
#include "cli/show/announcer.h"
#include "cli/term/screen.h"
#include "supervisor/client/job_view.h"
#include "supervisor/client/link/supervisor_client.h"
#include "transport/base/json.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/signals.h"

namespace monarch {

struct SessionOptions {
  ViewerKind kind = ViewerKind::kWatcher;
  std::string viewer;           // "run": how the supervisor's log calls us
  std::string first_word = {};  // for people, once Ctrl-C is heard

  enum class Until : std::uint8_t { kEnded, kRunning };
  Until until = Until::kEnded;

  bool output = false;          // shows what ranks write
  bool from_the_start = false;  // of it all, instead of what is written from now on
  std::function<bool(const StreamId&)> wanted = {};
  std::shared_ptr<RankHosts> hosts = {};  // with `output`; shared with `wanted`, which asks it
  bool events = false;                    // says what happens
  bool result = false;                    // says how the job ended
  bool json = false;                      // on stdout, each as its line
  LineOptions lines = {};
  OutputStart start = {};  // with from_the_start: of what is written already

  // What is shown on stdout once the post of some host answers.
  std::function<Json(const JobStatus&)> on_door = {};

  std::optional<int> input = {};             // what ranks are to read of this descriptor; below 0: nothing more
  std::optional<StopRequest> stop = {};      // asked for as soon as somebody listens
  std::optional<Duration> stop_after = {};   // --timeout of `run`
  std::optional<Duration> leave_after = {};  // --timeout of `wait` and `stop`
  std::string spec_name = {};                // as typed for `run`
  bool reader_decides = false;               // ends when nobody reads stdout any more
};

struct SessionEnd {
  int exit_code = 0;               // what the command exits with, unless it knows better
  std::optional<Verdict> verdict;  // of the job, if it ended
  bool running = false;            // Until::kRunning was reached
};

class ViewerSession {
 public:
  // `signals` were taken from the system for options.kind, before a supervisor was started.
  static Result<std::unique_ptr<ViewerSession>> create(const JobView& job, const JobSpec& spec, const Context& context,
                                                       SignalFd& signals, SessionOptions options);
  ~ViewerSession();
  ViewerSession(const ViewerSession&) = delete;
  ViewerSession& operator=(const ViewerSession&) = delete;

  SessionEnd follow();

 private:
  ViewerSession(std::unique_ptr<EventLoop> loop, const JobView& job, const JobSpec& spec, const Context& context,
                SignalFd& signals, SessionOptions options);

  // viewer_session.cc: the connection
  Status connect();
  void connect_or_retry();
  void on_connected();
  void on_lost(const Error& why);
  void retry();
  void on_unseen_end(const Verdict& verdict);
  void give_up();
  void send_stop(const StopRequest& request);
  void ask_for_door();

  // viewer_session_events.cc: what is seen and said
  void on_event(const JobEvent& event);
  void say_folded();
  void say_waiting_events();
  void on_verdict(const Verdict& verdict);
  void on_signals();
  void act(const SignalAnswer& answer, int number);
  void on_tick();
  void tick_later();
  void leave(int exit_code);
  void leave_running();  // where it runs, and its door has been shown if it is to be
  void stop_when_written();
  void say_result();
  void say_unread();
  void write_json(const Json& json);
  void say(const std::string& line);
  void open_group(std::string_view name);
  void close_group();

  std::unique_ptr<EventLoop> loop_;
  const JobView& job_;
  const JobSpec& spec_;
  SignalFd& signals_;
  SessionOptions options_;
  Screen screen_;
  SignalPolicy policy_;
  Announcer announcer_;
  std::unique_ptr<RankOutput> output_;
  std::unique_ptr<SupervisorClient> client_;
  std::unique_ptr<InputFeed> input_;
  std::optional<StopRequest> pending_stop_;
  std::uint64_t last_event_ = 0;
  Instant lost_at_ = Instant::never();  // since when nobody answers
  bool told_lost_ = false;              // that nobody does
  TimerId fold_timer_ = 0;              // while events wait for others that say the same
  Instant phase_since_;
  Instant next_word_;                    // when it is said again who is waited for
  std::optional<LostSubmission> slurm_;  // of a job that Slurm started for us
  std::string group_;                    // of a CI runner's log, if one is open
  bool ending_ = false;
  bool result_said_ = false;
  SessionEnd end_;
};

}  // namespace monarch
