#pragma once

// SshLauncher: workers on machines that SSH reaches. A launch is one session: the worker is started, and copied first
// where the host does not have it; it detaches, tells its key, and the session ends. Nobody here sees a worker's end:
// it says goodbye over the control port, or it is looked for, and ended, by another session (`monarch-worker end`), as
// often as it takes until the host has answered.
//
// Where workers come back through a tunnel, the session stays as long as its host is in the job. One that ends before
// is opened again, with the same ports there, until that works or the host is given up: what becomes of a host that is
// not heard meanwhile is decided as ever, by its lease there and by its silence here.
//
// Thread: the supervisor's loop; sessions have threads of their own (SshPool). Lifetime: shorter than the loop's.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/launch/launcher.h"
#include "supervisor/launch/ssh/remote_talk.h"
#include "supervisor/launch/ssh/session_mark.h"
#include "supervisor/launch/ssh/ssh_access.h"
#include "supervisor/launch/ssh/ssh_pool.h"
#include "supervisor/launch/ssh/ssh_way_back.h"
#include "supervisor/launch/ssh/workspace_progress.h"
#include "supervisor/workspace/pack_thread.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/inbox.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/launch.h"

namespace monarch {

// Why no worker is to be started on this host; nothing: it may be. In the session's thread.
using SshHostCheck = std::function<std::optional<LaunchFailure>(SshSession& session, HostId host, int cancel)>;

struct SshLauncherOptions {
  JobUuid job;
  std::string job_id;
  Term term;
  SshAccess access;
  SshWayBack way_back;
  Duration silence = Duration::seconds(30);  // of a host in the middle of a talk
  bool workspace = false;  // each host gets one before its worker is started; launches wait for on_workspace()
  SshPoolOptions pool;
  SshHostCheck check = {};  // of hosts that check_first() named; may be empty
};

class SshLauncher final : public Launcher {
 public:
  static Result<std::unique_ptr<SshLauncher>> create(EventLoop& loop, SshLauncherOptions options,
                                                     LauncherHandlers handlers);
  ~SshLauncher() override;

  void launch(HostId host, const Bootstrap& bootstrap) override;
  void check_first(HostId host) override { hosts_.at(host.value()).check = true; }
  // The tunnel to it, if there are any.
  void adopt(HostId host, const AdoptedHost& there) override;
  void destroy(HostId host) override;

  void on_goodbye(HostId host, bool orderly) override;

  // Of this machine's files, by a thread; `folder` is the job's, and keeps what was made.
  Status pack_workspace(UniqueFd folder, WorkspaceSpec workspace);
  // What each host gets, for good; or why there is none, which is each launch's failure.
  void on_workspace(MadePack pack);

 private:
  enum class Phase : std::uint8_t {
    kUnknown,    // not launched by this supervisor; an earlier one may have
    kLaunching,  // a session is on its way
    kLaunched,
    kUntouched,  // the launch failed before anything of it could run there
    kEnding,     // being destroyed: a session is on its way, or the next one is waited for
    kEnded,      // and told
  };
  struct Host {
    Phase phase = Phase::kUnknown;
    SshPool::Ticket ticket = 0;        // of the launch, the tunnel, or the end
    TimerId retry = 0;                 // of the last two
    std::uint32_t tries = 0;           // of the same
    Instant began;                     // the launch
    std::optional<Bootstrap> waiting;  // a launch, for the workspace
    std::vector<std::uint16_t> there;  // where its worker enters the tunnel
    SessionMark session;               // of the last tunnel
    bool check = false;                // before its next launch
  };

  SshLauncher(EventLoop& loop, SshLauncherOptions options, LauncherHandlers handlers)
      : loop_(loop),
        options_(std::move(options)),
        handlers_(std::move(handlers)),
        hosts_(options_.access.hosts.size()) {}
  RemoteOrder order_of(HostId host, RemotePurpose purpose) const;
  void submit_launch(HostId host, const Bootstrap& bootstrap);
  void submit_end(HostId host);
  void on_launch_result(HostId host, RemoteResult result, LaunchedWorker launched);
  bool tunnelled() const { return !options_.way_back.tunnel.empty(); }
  std::function<std::function<void()>(int)> stay_in(HostId host, SshSession& session, std::shared_ptr<SshTunnel> tunnel,
                                                    std::optional<SessionMark> mark);
  void open_tunnel(HostId host);
  void on_tunnel_open(HostId host);
  void on_tunnel_ended(HostId host, const std::string& why, const SessionMark& of = {});
  void on_end_answer(HostId host, const RemoteAnswer& answer);
  void fail(HostId host, LaunchFailure failure, Phase next);
  void try_end_again(HostId host, const LaunchFailure& failure);
  void tell_ended(HostId host, std::string how, bool orderly);
  void drop(Host& host);

  EventLoop& loop_;
  SshLauncherOptions options_;
  LauncherHandlers handlers_;
  std::vector<Host> hosts_;
  std::optional<MadePack> pack_;
  std::unique_ptr<PackThread> packer_;
  struct SentReport {
    HostId host;
    WorkspaceSent sent;
  };
  void on_sent(const SentReport& report);

  WorkspaceProgress progress_;
  std::unique_ptr<WatchedInbox<SentReport>> sent_;
  std::unique_ptr<SshPool> pool_;  // its talks put into that
};

}  // namespace monarch
