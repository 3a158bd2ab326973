#pragma once

// SshMachines: the launcher of a job whose hosts SSH reaches: SshLauncher, the workspace that each host gets, and the
// second look at hosts whose beats are late.
//
// Thread: the supervisor's loop. Lifetime: shorter than the loop's.

#include <memory>
#include <vector>

#include "supervisor/launch/launcher.h"
#include "supervisor/launch/open_launcher.h"
#include "supervisor/launch/ssh/machines/second_look.h"
#include "supervisor/launch/ssh/ssh_launcher.h"

namespace monarch {

class SshMachines final : public Launcher {
 public:
  static Result<std::unique_ptr<SshMachines>> create(const LaunchSurroundings& around, LauncherHandlers handlers);

  void launch(HostId host, const Bootstrap& bootstrap) override { launcher_->launch(host, bootstrap); }
  void destroy(HostId host) override;
  void adopt(HostId host, const AdoptedHost& there) override { launcher_->adopt(host, there); }
  void check_first(HostId host) override { launcher_->check_first(host); }
  void on_goodbye(HostId host, bool orderly) override { launcher_->on_goodbye(host, orderly); }
  void doubt(HostId host, const std::vector<LookPeer>& peers) override { second_look_->look(host, peers); }
  void stop_doubting(HostId host) override { second_look_->forget(host); }

 private:
  SshMachines() = default;

  std::unique_ptr<SecondLook> second_look_;
  std::unique_ptr<SshLauncher> launcher_;
};

}  // namespace monarch
