#pragma once

// LocalLauncher: virtual hosts v1…vN, each a worker of its own on this machine, with an address of its own in
// 127.0.0.0/8. They speak the same protocol over the same kind of connection as workers on real hosts.
//
// A host has ended when nothing of it lives. That its keeper ended in order, its groups are gone and the daemon that
// said hello has ended proves it; where any of these is missing, or it had more than these two, all processes of this
// machine are looked at for its marks.
//
// Thread: the supervisor's loop. Lifetime: shorter than the guard's.

#include <sys/types.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "supervisor/launch/fair_timer.h"
#include "supervisor/launch/guard.h"
#include "supervisor/launch/launcher.h"
#include "transport/loop/event_loop.h"
#include "transport/process/process_scan.h"

namespace monarch {

// Where a worker on this machine has the doors of its ranks: short, for a socket's path has 107 bytes. The job and the
// host tell it, so that a supervisor that came back knows what to remove.
std::string local_socket_directory(const std::string& runtime_directory, const JobUuid& job, HostId host);

struct LocalLauncherOptions {
  JobUuid job;
  Term term;
  std::string worker_path;    // of monarch-worker
  std::string log_directory;  // `worker.<host>.log` goes here
  std::string runtime_directory;
  std::vector<std::string> host_names;
};

class LocalLauncher final : public Launcher {
 public:
  LocalLauncher(EventLoop& loop, Guard& guard, LocalLauncherOptions options, LauncherHandlers handlers);
  ~LocalLauncher() override;

  void launch(HostId host, const Bootstrap& bootstrap) override;
  void destroy(HostId host) override;

  // Where the guard that kept it is gone as well, it is known by its marks.
  void adopt(HostId host, const AdoptedHost& there) override;

  void on_greeted(HostId host, std::int32_t daemon_pid) override;
  void on_hello(const KeeperHello& hello) override;
  void on_changed(const RankReport& report) override;
  // Workers go on without it; from now on their ends are seen, and made, by their pidfds.
  void on_guard_lost() override;

 private:
  struct Pending {
    UniqueFd reply;  // read end of the worker's standard output
    WatchId watch = 0;
    std::unique_ptr<FairTimer> deadline;
    std::string bytes;
    std::string control_endpoint;
  };

  struct Worker {
    Generation generation;
    UniqueFd pidfd;  // of its keeper, once the guard has told its pid
    WatchId watch = 0;
    bool orphan = false;  // of a guard that is gone
  };

  struct WorkerEnd {
    std::string how;
    bool orderly = false;
    bool reaped = false;  // the guard has seen its keeper end in order, which ends behind all that it keeps
    Instant kill_at;      // whatever of it lives then is killed
    Instant complain_at;  // it should be gone by now
  };

  void check_inventory();
  void know_inventory();
  void adopt_orphan(HostId host);
  void note(const RankReport& report);
  Status start(HostId host, const Bootstrap& bootstrap);
  void await_key(HostId host);
  void read_reply(HostId host);
  void finish_reply(HostId host);
  void drop_pending(HostId host);
  void fail(HostId host, std::string error);
  std::string log_of(HostId host) const;  // its worker's
  void never_started(HostId host);
  void learn_pid(Worker& worker, std::int32_t pid);
  void watch_directly(HostId host);
  void begin_telling(HostId host, WorkerEnd end);
  void tell_ended(HostId host, const WorkerEnd& end);
  bool is_proven(HostId host, const WorkerEnd& end) const;
  void look_who_lives(Instant told_at);
  bool still_lives(HostId host, bool kill) const;
  void report_end(HostId host, const WorkerEnd& end);

  EventLoop& loop_;
  Guard& guard_;
  LocalLauncherOptions options_;
  LauncherHandlers handlers_;
  std::set<HostId> awaited_;  // told by the guard's hello, not described yet
  bool greeted_ = false;
  bool inventory_known_ = false;
  std::set<HostId> to_adopt_;
  std::set<HostId> to_destroy_;  // of an earlier supervisor's, once the guard has told which of them are there
  std::map<HostId, Instant> launched_at_;
  std::map<HostId, off_t> log_begins_;        // of the worker that was launched last
  std::map<HostId, std::uint64_t> launches_;  // how often, by this supervisor
  std::map<HostId, Pending> pending_;
  std::map<HostId, Worker> started_;    // by this supervisor or an earlier one
  std::set<HostId> alone_;              // have a keeper and a daemon and nothing besides, as this launcher knows
  std::map<HostId, UniqueFd> daemons_;  // pidfds of those that said hello last
  std::set<HostId> ending_;             // whose end will be told, once nothing of it lives
  std::multimap<std::string, ProcessEntry>
      living_;  // keepers and daemons by the names of their hosts, as of looked_at_
  Instant looked_at_;
  bool guard_lost_ = false;
};

}  // namespace monarch
