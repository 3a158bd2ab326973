#pragma once

// SshProgram: a monarch, or a check of monarch-worker, that runs on a host, shipped there if it is not, and a stream to
// its standard input and from its standard output. The stream is one end of a pair of sockets, so that whoever speaks
// over it need not know of SSH; a thread of the session carries what lies between. Nothing is lost before an end: what
// the program wrote is read first, and what was written here is sent first. Back-pressure goes through: who does not
// read makes the program wait.
//
// A connection that is silent for too long is asked for a sign of life, and given up without one.
//
// Thread: the loop's; the session has a thread of its own (SshPool). Lifetime: shorter than the loop's. Its end ends
// the session, and with it the program's input; what was not sent until then is lost.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "supervisor/launch/ssh/ssh_pool.h"
#include "supervisor/launch/talk/worker_image.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"

namespace monarch {

struct SshProgramOptions {
  SshRoute route;
  // Owners: this, and the talk under way. Without bytes it names what the host has already.
  std::shared_ptr<const WorkerImage> bundle;
  std::string word;  // the subcommand, which greets first (kProgramGreeting)
  // Instead: kCheck, of monarch-worker, which does not greet. `bundle` is its image then, where one is shipped.
  std::optional<RemoteOrder> check = {};
  Duration silence = Duration::seconds(30);    // of the host until it greets
  Duration ask_after = Duration::seconds(10);  // of silence after that, for a sign of life
  Duration dead_after = Duration::seconds(30);
  SshPoolOptions pool = {};
};

struct SshProgramReady {
  std::string path;  // of monarch on the host; of a check it is not told
  // Not blocking. Shut down for writing, it ends the program's input; read to its end, the program's output has ended.
  UniqueFd stream;
  Duration copied;  // how long the bundle took; zero: it was there
};

struct SshProgramEnd {
  std::optional<int> exit_status;  // nothing: a signal ended it, or `why`
  std::string why;                 // not empty: the connection ended, and what became of the program is not known
  std::string words;               // the last that it wrote to its standard error, raw
};

// By the loop. on_failed, or on_ready and then on_ended; each once. None may destroy the SshProgram: what follows from
// them is deferred.
struct SshProgramHandlers {
  std::function<void(SshProgramReady)> on_ready;
  std::function<void(SshProgramEnd)> on_ended;
  std::function<void(LaunchFailure)> on_failed;
};

class SshProgram {
 public:
  static Result<std::unique_ptr<SshProgram>> start(EventLoop& loop, SshProgramOptions options,
                                                   SshProgramHandlers handlers);
  SshProgram(const SshProgram&) = delete;
  SshProgram& operator=(const SshProgram&) = delete;

 private:
  explicit SshProgram(SshProgramHandlers handlers) : handlers_(std::move(handlers)) {}
  SshVisit visit(SshSession& session, int cancel, const SshProgramOptions& options);

  SshProgramHandlers handlers_;
  std::unique_ptr<SshPool> pool_;  // last: its threads end first
};

}  // namespace monarch
