#pragma once

// CommandLauncher: workers on hosts on which a command opens a shell (launch.command): the script of remote_script.h is
// written to that shell, so that a host gets monarch-worker as over SSH, and its end is proven as there. The
// supervisor's guard forks the command.
//
// Thread: the supervisor's loop. Lifetime: shorter than the loop's and the guard's.

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/launch/command/command_spec.h"
#include "supervisor/launch/launcher.h"
#include "supervisor/launch/talk/guarded_programs.h"
#include "supervisor/launch/talk/program_talk.h"
#include "supervisor/launch/talk/way_back.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/scope.h"

namespace monarch {

struct CommandLauncherOptions {
  JobUuid job;
  std::string job_id;
  Term term;
  LaunchCommand spec;                        // its hosts by HostId
  std::string address;                       // by which hosts reach us; empty: as the shell there tells
  std::shared_ptr<const WorkerImage> image;  // owners: the launcher and its talks, which only read it
  std::string log_directory;                 // `command.<host>.log` goes here: what a command itself says
};

class CommandLauncher final : public Launcher {
 public:
  CommandLauncher(EventLoop& loop, Guard& guard, CommandLauncherOptions options, LauncherHandlers handlers);
  ~CommandLauncher() override;

  void launch(HostId host, const Bootstrap& bootstrap) override;
  void destroy(HostId host) override;
  void on_goodbye(HostId host, bool orderly) override;
  void on_changed(const RankReport& report) override { (void)programs_.on_changed(report); }
  void on_guard_lost() override { programs_.on_guard_lost(); }

 private:
  enum class Phase : std::uint8_t {
    kUnknown,    // not launched by this supervisor; an earlier one may have
    kWaiting,    // to be launched
    kLaunching,  // a command is on its way
    kLaunched,
    kUntouched,  // the launch failed before anything of it could run there
    kEnding,     // a command is on its way, or the next one is waited for
    kEnded,      // and told
  };
  struct Host {
    Phase phase = Phase::kUnknown;
    Bootstrap bootstrap;
    std::unique_ptr<ProgramTalk> talk;
    TimerId retry = 0;
    std::uint32_t tries = 0;  // of the launch, or of the end
    Instant began;            // the launch
  };
  Host& at(HostId host) { return hosts_.at(host.value()); }
  const CommandHost& spec_of(HostId host) const { return options_.spec.hosts[host.value()]; }
  void enqueue(HostId host, Duration wait);
  void fill();
  void start(HostId host);
  void on_answer(HostId host, const RemoteAnswer& answer);
  void on_failure(HostId host, LaunchFailure failure, bool placed, bool may_run);
  void tell_ended(HostId host, std::string how, bool orderly);
  void drop(Host& host);

  EventLoop& loop_;
  CommandLauncherOptions options_;
  LauncherHandlers handlers_;
  GuardedPrograms programs_;
  std::vector<Host> hosts_;
  std::deque<HostId> queue_;  // to be launched or ended, when others are
  Scope scope_;
};

}  // namespace monarch
