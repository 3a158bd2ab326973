#pragma once

// launch_for(): the process that launches the hosts of a job whose supervisor is on the first of them (`supervisor:
// {on: first}`). It stays on the machine that started the job, which has the keys and the files that the spec names for
// SSH, in a session of its own. It reaches the first host, has the supervisor started there, says so on the ready pipe,
// and then does what that supervisor wants of a launcher, until it is told to leave or the connection ends. Nobody
// starts it again: the supervisor takes what it has not done for failed.
//
// The local folder of the job is its own meanwhile: it holds the lock, and says in elsewhere.json where the job lives.
//
// Thread: the process's main thread; sessions and the pack of the workspace have theirs.

#include <string>

namespace monarch {

struct LaunchForOptions {
  std::string job_directory;  // here
  std::string monarch;        // this program
  std::string worker;         // monarch-worker, for hosts like this machine
  int ready_fd = -1;          // one line is written to it; see client/start_supervisor.h
  bool accept_new_host_keys = false;
};

// The process's exit code: 0, or what kept the supervisor from starting.
int launch_for(const LaunchForOptions& options);

}  // namespace monarch
