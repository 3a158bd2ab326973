#pragma once

// Hosts: the supervisor's side of its hosts: the guard that forks for it, the launcher that puts workers there, doubts
// about one that is late, what who gave them says of them, and the job that goes on when they are taken.
//
// Thread: the process's main thread. Lifetime: within that of what it shares.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/health/pace.h"
#include "supervisor/core/health/pressure_watch.h"
#include "supervisor/journal/state_dir.h"
#include "supervisor/launch/guard.h"
#include "supervisor/launch/launcher.h"
#include "supervisor/loop/shared.h"
#include "supervisor/loop/workers.h"

namespace monarch {

class Hosts {
 public:
  Hosts(Shared& shared, Workers& workers) : shared_(shared), workers_(workers) {}
  ~Hosts();
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  Status open();
  Guard& guard() { return *guard_; }
  Launcher& launcher() { return *launcher_; }

  // Of an earlier supervisor's: those that may live.
  void adopt();
  // As soon as it is its turn: of many hosts only so many at a time as call back in time.
  void launch(HostId host);
  void destroy(HostId host);
  void shut_down(HostId host);
  // Who launched the hosts may go once all that were wanted are there or out for good, and the job runs.
  void release_helper();
  void on_health(const HostVerdict& verdict);
  void on_pressure(HostId host, const HostPressure& pressure);

  // A job whose hosts are taken, and that goes on as another one: its folder is there, and this one's names it, before
  // anybody hears the verdict. A supervisor that comes back to a job that has ended asks again for what nobody has
  // begun.
  void prepare_continuation(Verdict& verdict);
  bool goes_on() const { return continuation_ != nullptr; }
  // Once all is written: for by that we may be ended.
  void ask_continuation(std::function<void()> then);

 private:
  LauncherHandlers launcher_handlers();
  Bootstrap bootstrap_for(HostId host) const;
  void launch_now(HostId host);
  void launch_some();
  void look_who_has_joined();
  void on_seen(HostId host, const SecondPath& seen);
  void on_node_seen(HostId host, const SeenNode& seen);
  void on_end_foreseen(const EndForeseen& event);
  bool has_free_host() const;
  bool runs_something(HostId host) const;
  void on_continuation(const Result<std::uint32_t>& batch_job);

  Shared& shared_;
  Workers& workers_;
  std::unique_ptr<Guard> guard_;
  std::unique_ptr<Launcher> launcher_;
  Pace launches_;
  TimerId launch_timer_ = 0;
  PressureWatch pressures_;
  std::optional<JobDirectory> next_;  // that goes on from this one
  std::unique_ptr<Continuation> continuation_;
  std::function<void()> asked_continuation_;  // once it is known
};

}  // namespace monarch
