#pragma once

// supervise(): the process that decides about one job. It takes the job's lock, recovers its journal under the next
// term, opens its ports, and then turns: what comes in becomes events of the core, what the core decides is journalled
// and done.
//
// Thread: the process's main thread. It starts the journal's thread, the ZAP handler, the output relay and libzmq's.

#include <string>
#include <vector>

namespace monarch {

struct SuperviseOptions {
  std::string job_directory;
  std::string worker_path;         // of monarch-worker
  int ready_fd = -1;               // one line is written to it; see client/start_supervisor.h
  int keeper_fd = -1;              // the channel to the guard
  std::vector<int> kept_fds = {};  // the listening sockets of the supervisor before this one: control, bulk
  int tied_fd = -1;                // once its other end is closed, the job stops; -1: it is tied to nobody
  bool accept_new_host_keys = false;
  bool force_takeover = false;  // also in another directory, or on another machine, than the job began on
};

// The process's exit code: the job's, or what kept it from starting.
int supervise(const SuperviseOptions& options);

}  // namespace monarch
