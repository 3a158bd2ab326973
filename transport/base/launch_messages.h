#pragma once

// The messages of a supervisor that lives on a host of its job (`supervisor: {on: first}`) with the machine that launches the hosts for
// it. That machine speaks frames over an SSH channel to a process of ours beside the supervisor (StartThere, StartedThere), which then
// passes all others on to the supervisor's socket for viewers and back. What they mean: supervisor/launch/relayed_launcher.h.
//
// Thread: values.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/bootstrap.h"
#include "transport/base/launched_worker.h"
#include "transport/base/time.h"

namespace monarch {

// ---- launching machine → the process there ----

struct StartThere {
  std::string version;  // of monarch
  std::string job_id;   // of the folder here; that there has the same
  std::string spec;     // the whole, as the job keeps it
  std::string spec_directory;
  // Of the shell that starts the job, what env_pass and $(env.NAME) name. In no file, argument or record.
  std::vector<std::pair<std::string, std::string>> shell;
  bool needs_address = false;  // other hosts have to call there, and the spec does not say by which address
};

// ---- the process there → launching machine ----

struct StartedThere {
  std::int32_t exit_code = 0;  // 0: it runs
  std::string error;           // why it does not
  std::string log_tail;        // of its log; may be empty
  std::string directory;       // the job's there, absolute
  std::string address;         // numeric: by which that host was reached; empty: it does not know
};

// ---- launching machine → supervisor ----

struct LauncherHello {
  std::string name;  // of the machine, for people
};

struct HostLaunched {
  std::uint32_t host = 0;
  LaunchedWorker worker;
};

struct HostNotLaunched {
  std::uint32_t host = 0;
  LaunchFailure failure;
};

struct HostEnded {
  std::uint32_t host = 0;
  std::string how;
  bool orderly = false;
};

// ---- supervisor → launching machine; the job and the term are in the header of each ----

struct LauncherWelcome {
  std::uint64_t unused = 0;
};

struct LaunchHost {
  std::uint32_t host = 0;
  Bootstrap bootstrap;  // its endpoints have the right ports, and any address
};

struct EndHost {
  std::uint32_t host = 0;
};

// The worker's last word, which reaches the supervisor alone.
struct HostSaidGoodbye {
  std::uint32_t host = 0;
  bool orderly = false;
};

// Nothing will be launched any more.
struct LeaveLauncher {
  std::string reason;
};

}  // namespace monarch
