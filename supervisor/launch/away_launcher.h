#pragma once

// AwayLauncher: the launcher of a supervisor that lives on a host of its job (`supervisor: {on: first}`). Who has
// the keys is the machine that started the job: it connects, is told whom to launch and to end, by SSH, and tells what
// came of it. It is there for the start and not after: what is asked of it once it has gone fails for good, and a
// worker that cannot be ended by it ends by itself, after its lease and orphan_ttl. It comes within a time, or never;
// and once.
//
// Thread: the supervisor's loop. Lifetime: shorter than the loop's.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/launch/fair_timer.h"
#include "supervisor/launch/launcher.h"
#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/scope.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/launch.h"
#include "transport/wire/seqpacket_channel.h"

namespace monarch {

struct AwayLauncherOptions {
  JobUuid job;
  Term term;
  std::size_t hosts = 0;
  // Until it must have come. Zero: it never will; a supervisor that comes back after a crash has lost it.
  Duration awaited = Duration::seconds(30);
  // A worker may run there and cannot be ended from here. Not within destroy().
  std::function<void(HostId)> on_out_of_reach = {};
};

class AwayLauncher final : public Launcher {
 public:
  AwayLauncher(EventLoop& loop, AwayLauncherOptions options, LauncherHandlers handlers);

  void launch(HostId host, const Bootstrap& bootstrap) override;
  void destroy(HostId host) override;

  // It has come, over a connection whose peer was checked. kBusy: it is there, kGone: it was, or is not awaited any
  // more.
  Status take(UniqueFd socket) override;
  void on_goodbye(HostId host, bool orderly) override;

  bool has_idle_helper() const override;
  // It may go: nothing will be launched any more.
  void release_helper(const std::string& reason) override;

 private:
  enum class Presence : std::uint8_t { kAwaited, kThere, kReleased, kGone };
  enum class Phase : std::uint8_t {
    kUnknown,    // not launched by this supervisor; an earlier one may have
    kWaiting,    // to be launched, and nobody was told yet
    kLaunching,  // it was told
    kLaunched,
    kFailed,  // it may have left something there
    kEnding,
    kEnded,  // and told
  };
  struct Host {
    Phase phase = Phase::kUnknown;
    Bootstrap waiting;
  };

  void on_frame(const Frame& frame);
  void on_launched(const HostLaunched& launched);
  void on_not_launched(const HostNotLaunched& failed);
  void on_ended(const HostEnded& ended);
  void malformed(const char* what);
  Host* known(std::uint32_t host, const char* what);
  void lose(Presence next, const std::string& why);
  void order(HostId host);
  void fail_soon(HostId host);
  void out_of_reach(HostId host);
  void end_soon(HostId host);
  template <class Message>
  void send(const Message& message);

  EventLoop& loop_;
  AwayLauncherOptions options_;
  LauncherHandlers handlers_;
  std::vector<Host> hosts_;
  Presence presence_ = Presence::kAwaited;
  std::string why_gone_;
  FairTimer patience_;
  std::unique_ptr<SeqpacketChannel> channel_;
  // Owner: this. Deferred calls ask whether it is still there.
  Scope scope_;
};

}  // namespace monarch
