#pragma once

// Supervisor: what supervise() turns. It owns everything of a running supervisor and decides nothing: what comes in becomes events of the
// core, and what the core decides is journalled and done. How it is put together and turns is in supervisor.cc, how it ends in
// supervisor_end.cc.
//
// Thread: the process's main thread. Lifetime: the process's.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/health/output_losses.h"
#include "supervisor/core/health/pressure_watch.h"
#include "supervisor/journal/secure_directory.h"
#include "supervisor/journal/state_dir.h"
#include "supervisor/launch/guard.h"
#include "supervisor/launch/launcher.h"
#include "supervisor/loop/decider.h"
#include "supervisor/loop/descriptor_watch.h"
#include "supervisor/loop/startup.h"
#include "supervisor/loop/supervisor.h"
#include "supervisor/viewers/control_server.h"
#include "supervisor/viewers/idle_timer.h"
#include "supervisor/viewers/viewer_port.h"
#include "supervisor/workers/commit_desk.h"
#include "supervisor/workers/hang_watch.h"
#include "supervisor/workers/output_relay.h"
#include "supervisor/workers/stack_dumps.h"
#include "supervisor/workers/vault_desk.h"
#include "supervisor/workers/worker_links.h"
#include "transport/base/exit_code.h"
#include "transport/loop/inbox.h"
#include "transport/loop/signals.h"
#include "transport/zmq/zap.h"
#include "transport/zmq/zmq_loop.h"

namespace monarch {

// Its members are destroyed in the reverse order, sockets before their context.
class Supervisor {
 public:
  explicit Supervisor(JobFiles& files, const SuperviseOptions& options)
      : files_(files),
        options_(options),
        core_(files.spec.spec, pool_of(files.spec.spec),
              {.job_id = files.job_id, .shell = files.shell, .log_directory = files.log_directory()}) {}

  Status open();
  // Why open() failed, to whoever waits for the start.
  int exit_code_for(const Error& why) const;
  void say_ready(int ready_fd);
  int kept_listener(std::size_t which, std::uint16_t port) const;
  Status keep_ports_open();
  void begin();
  int run();

 private:
  Status open_ports();
  Status open_doors();
  std::optional<ViewerDoorAddress> open_viewer_port(const std::string& socket);
  ServerOptions port_options(std::uint16_t known) const;
  Error port_error(const Error& error);
  Status open_relay(std::unique_ptr<ServerLink> bulk_link);
  Status open_stacks();
  void dump_stacks(RankId rank, const std::function<void(std::string)>& then);
  Status open_launcher();
  void release_launcher();
  LauncherHandlers launcher_handlers();
  std::function<void(const RankReport&)> written_handler();
  std::function<void(HostId, const RankReport&)> commit_handler();
  std::function<void(HostId, const VaultReport&)> vault_handler();
  void perform(const Action& action);
  void launch(HostId host);
  void on_health(HostId host, HostHealth health, Duration silence);
  void on_seen(HostId host, const SecondPath& seen);
  void on_pressure(HostId host, const HostPressure& pressure);
  void add_last_words_of(FirstCause& cause) const;
  void on_output_lost(HostId host, std::uint64_t bytes, const std::string& failure);
  void finish(const FinishJob& finish);
  void farewell();
  void leave(int exit_code);
  void step_down(const Error& why);
  void watch_idleness();
  void watch_descriptors();
  void announce(EventKind kind, Severity severity, std::string message);
  void on_signal();
  void on_journal(const JournalReport& report);
  void publish_keys();
  std::uint64_t decide(const CoreEvent& event);
  JobStatus status() const;
  // supervisor_continuation.cc
  void prepare_continuation(Verdict& verdict);
  void ask_continuation(std::function<void()> then);
  void on_continuation(const Result<std::uint32_t>& slurm_job);
  // supervisor_nodes.cc
  void on_node_seen(HostId host, const SeenNode& seen);
  void on_end_foreseen(const EndForeseen& event);
  bool has_free_host() const;
  bool runs_something(HostId host) const;
  // supervisor_requests.cc
  void signal_ranks(const SignalRequest& request, const ControlHandlers::Answer& answer);
  Result<std::string> operate(const OperatorRequest& request);
  Result<std::string> hold_ranks(HoldRequest request);
  void answer_durably(Result<std::string> words, const ControlHandlers::Answer& answer);

  JobFiles& files_;
  SuperviseOptions options_;
  JobCore core_;
  JobUuid job_;
  bool returned_ = false;
  Inheritance continues_;                // of a job that begins; of no job: it is the first
  bool journal_before_is_lost_ = false;  // of the job that this one goes on from
  bool ports_taken_ = false;             // those that the spec names, by somebody else
  WallTime started_;
  KnownPorts ports_;
  std::optional<SecureDirectory> runtime_;  // of the sockets
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<ZmqLoop> zmq_loop_;
  std::unique_ptr<SignalFd> signals_;
  std::unique_ptr<WatchedInbox<JournalReport>> reports_;
  std::unique_ptr<JournalThread> journal_;
  std::unique_ptr<Decider> decider_;
  std::unique_ptr<IdleTimer> idle_;
  std::optional<CurveKeyPair> keys_;
  std::unique_ptr<ZmqContext> context_;
  std::unique_ptr<ZapHandler> zap_;
  std::unique_ptr<ServerLink> control_link_;
  std::unique_ptr<HangWatch> hangs_;
  std::unique_ptr<CommitDesk> commits_;
  std::unique_ptr<VaultDesk> vaults_;  // nothing: no checkpoints are kept in memory
  std::unique_ptr<WorkerLinks> links_;
  std::unique_ptr<WatchedInbox<StacksCame>> stacks_came_;  // of the relay's thread
  std::unique_ptr<StackDumps> stacks_;
  std::unique_ptr<WatchedInbox<Incarnation>> copied_;  // of the relay's thread; nothing: no copy is kept
  std::unique_ptr<ViewerPort> viewer_port_;            // longer than all whose words it carries
  std::unique_ptr<OutputRelay> relay_;
  std::unique_ptr<Guard> guard_;
  std::unique_ptr<Launcher> launcher_;
  std::optional<JobDirectory> next_;  // that goes on from this one
  std::unique_ptr<Continuation> continuation_;
  std::function<void()> asked_continuation_;  // once it is known
  PressureWatch pressures_;
  OutputLosses losses_;
  std::string copy_failure_;  // that was told
  std::unique_ptr<ControlServer> viewers_;
  std::vector<ListenerDoor> doors_;  // of the ports, until they are watched
  std::unique_ptr<DescriptorWatch> descriptors_;
  int exit_code_ = kExitInternal;
  bool leaving_ = false;
  Instant farewell_until_;
};

}  // namespace monarch
