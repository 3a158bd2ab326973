#pragma once

// start_there(): the process of ours on the first host of a job with `supervisor: {on: first}`, over an SSH channel. It
// is told the job by the machine that launches the hosts, makes its folder here under the same id, starts the
// supervisor as `up` would, and is from then on the pipe between that machine and the supervisor. Either's end is its
// own; the supervisor goes on.
//
// Values of the submitting shell are in its memory and in the environment of what it starts, and nowhere else.
//
// Thread: the only one of its process (it forks).

#include <string>

namespace monarch {

struct StartThereOptions {
  std::string monarch;         // this program
  std::string worker;          // MONARCH_WORKER; empty: the one that belongs to it
  std::string ssh_connection;  // as sshd tells it: whose address and port, ours and its
  int input = 0;
  int output = 1;
};

// The process's exit code.
int start_there(const StartThereOptions& options);

// The address in it by which this machine was reached; empty: it says none.
std::string reached_address(const std::string& ssh_connection);

}  // namespace monarch
