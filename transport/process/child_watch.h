#pragma once

// ChildWatch: the one place where the ends of children are learnt. A watched child's end is told once, from its pidfd;
// the child then stays a zombie until reap(), so that its number is nobody else's while its tree is being cleared.
// Processes that a subreaper adopts are reaped as they end and told to nobody.
//
// Thread: the loop's. Lifetime: shorter than the loop's.

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"

namespace monarch {

struct ExitStatus {
  bool signaled = false;  // value is the signal, else the exit code
  int value = 0;
  bool core_dumped = false;
  Duration user_time;
  Duration system_time;
  long peak_resident_kilobytes = 0;
};

class ChildWatch {
 public:
  explicit ChildWatch(EventLoop& loop) : loop_(loop) {}
  ~ChildWatch();
  ChildWatch(const ChildWatch&) = delete;
  ChildWatch& operator=(const ChildWatch&) = delete;

  // `pidfd` is the caller's and stays open until reap().
  Status watch(pid_t pid, int pidfd, std::function<void(const ExitStatus&)> on_exit);
  // Lets go of it: of a zombie for good, of a live child so that its end will be told to nobody.
  void reap(pid_t pid);
  // On SIGCHLD: those that nobody watches.
  void reap_adopted();

 private:
  struct Watched {
    int pidfd;
    WatchId watch;
    std::function<void(const ExitStatus&)> on_exit;
  };
  void told(pid_t pid);

  EventLoop& loop_;
  std::map<pid_t, Watched> watched_;
};

// Whether a signal has stopped this child, or let it go on, since the last such question.
bool was_stopped_or_continued(int pidfd);

// The status of an ended child, which stays a zombie; nothing while it lives.
std::optional<ExitStatus> peek_exit(int pidfd);

}  // namespace monarch
