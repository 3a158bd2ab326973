#pragma once

// Launcher: puts a worker on a host, reports its end exactly once, destroys it for certain. One implementation for each way to
// reach hosts; what follows from an outcome is the core's to decide.
//
// Thread: the supervisor's loop; an implementation may have threads of its own, whose words arrive by the loop.

#include <functional>
#include <string>

#include "transport/base/ids.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/launch.h"

namespace monarch {

struct LauncherHandlers {
  std::function<void(HostId, LaunchedWorker)> on_launched;
  std::function<void(HostId, LaunchFailure)> on_failed;  // it never told its key; final, retries are over
  std::function<void(HostId, std::string how, bool orderly)> on_ended;
  // Now and then, where launches take a while for what is sent to their hosts: how far that is, in words.
  std::function<void(std::string)> on_sending = {};
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual void launch(HostId host, const Bootstrap& bootstrap) = 0;
  virtual void destroy(HostId host) = 0;
};

}  // namespace monarch
