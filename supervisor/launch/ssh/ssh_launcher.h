#pragma once

// SshLauncher: workers on machines that SSH reaches. A launch is one session: the worker is started, and copied first where the host
// does not have it; it detaches, tells its key, and the session ends. Nobody here sees a worker's end: it says goodbye over the control
// port, or it is looked for, and ended, by another session (`monarch-worker end`), as often as it takes until the host has answered.
//
// Thread: the supervisor's loop; sessions have threads of their own (SshPool). Lifetime: shorter than the loop's.

#include <memory>
#include <string>
#include <vector>

#include "supervisor/launch/launcher.h"
#include "supervisor/launch/ssh/remote_talk.h"
#include "supervisor/launch/ssh/ssh_pool.h"
#include "transport/base/control_messages.h"
#include "transport/loop/event_loop.h"

namespace monarch {

struct SshLauncherHost {
  std::string name;
  SshRoute route;
};

struct SshLauncherOptions {
  JobUuid job;
  std::string job_id;
  Term term;
  std::vector<SshLauncherHost> hosts;  // by HostId
  // Numeric; where workers are told to call back. Empty: each at the address by which this machine reached it.
  std::string control_address;
  std::shared_ptr<const WorkerImage> image;  // owners: the launcher and the talks under way, which only read it
  std::string installed;                     // not empty: this worker on each host, and nothing is copied
  Duration silence = Duration::seconds(30);  // of a host in the middle of a talk
  SshPoolOptions pool;
};

class SshLauncher final : public Launcher {
 public:
  static Result<std::unique_ptr<SshLauncher>> create(EventLoop& loop, SshLauncherOptions options,
                                                     LauncherHandlers handlers);
  ~SshLauncher() override;

  // Its endpoints have the right ports, and any address.
  void launch(HostId host, const Bootstrap& bootstrap) override;
  void destroy(HostId host) override;

  // The worker's last word: nothing of it is left but itself, and it leaves.
  void on_goodbye(HostId host, bool orderly);

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
    SshPool::Ticket ticket = 0;
    TimerId retry = 0;
    std::uint32_t tries = 0;  // to end it
    Instant began;            // the launch
  };

  SshLauncher(EventLoop& loop, SshLauncherOptions options, LauncherHandlers handlers)
      : loop_(loop), options_(std::move(options)), handlers_(std::move(handlers)), hosts_(options_.hosts.size()) {}
  RemoteOrder order_of(HostId host, RemotePurpose purpose) const;
  void submit_end(HostId host);
  void on_launch_result(HostId host, RemoteResult result, std::string control_endpoint);
  void on_end_answer(HostId host, const RemoteAnswer& answer);
  void fail(HostId host, LaunchFailure failure, Phase next);
  void try_end_again(HostId host, const LaunchFailure& failure);
  void tell_ended(HostId host, std::string how, bool orderly);
  void drop(Host& host);

  EventLoop& loop_;
  SshLauncherOptions options_;
  LauncherHandlers handlers_;
  std::vector<Host> hosts_;
  std::unique_ptr<SshPool> pool_;
};

// "tcp://<any>:7000" with another address.
std::string endpoint_at(const std::string& endpoint, const std::string& address);

}  // namespace monarch
