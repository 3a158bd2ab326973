#pragma once

// What came of a launch: a worker that runs, or why there is none, in the classes that an operator tells apart; and the
// messages of a supervisor that lives on a host of its job (`supervisor: {on: first}`) with the machine that launches
// the hosts for it. That machine speaks frames over an SSH channel to a process of ours beside the supervisor
// (StartThere, StartedThere), which then passes all others on to the supervisor's socket for viewers and back. What
// they mean: supervisor/launch/away_launcher.h.
//
// Thread: values.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/time.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/message.h"

namespace monarch {

// Where the time went until a worker had told its key, as its launcher measured it. All zero where the launcher has
// nothing to tell apart.
struct LaunchTimes {
  Duration waited;  // for its turn, and for attempts that were worth another
  Duration log_in;  // dialling, the host's key, authentication
  Duration copy;    // of the worker's file; zero where the host had it
  Duration start;   // of the worker, until it told its key
  bool operator==(const LaunchTimes&) const = default;
};
MONARCH_FIELDS(LaunchTimes, waited, log_in, copy, start)

// A worker that runs and has told its key.
struct LaunchedWorker {
  BootstrapReply reply;
  std::string control_endpoint = {};  // where it was told to call back
  std::string bulk_endpoint = {};
  std::string again = {};  // a command that tries by hand whether it can; may be empty
  LaunchTimes times = {};
};
MONARCH_FIELDS(LaunchedWorker, reply, control_endpoint, bulk_endpoint, again, times)

enum class LaunchFailureKind : std::uint8_t {
  kOther,           // message says what; of the local launcher, all
  kName,            // the name does not resolve
  kRefused,         // nothing listens there
  kUnreachable,     // the network says so: no route, host down
  kTimeout,         // no answer within the phase's deadline
  kHostKeyChanged,  // another key than known_hosts or the pin has
  kHostKeyUnknown,  // none is known, and new ones are not accepted
  kHostKeyRevoked,  // known_hosts says @revoked
  kAuthentication,  // no key was accepted; message names the methods
  kClosed,          // the connection ended midway
  kShellNoise,      // the remote shell printed more than we read past, or something that is not ours
  kDiskFull,        // no room for the worker in the cache directory
  kNotExecutable,   // the cache lies on a noexec file system, or may not be entered
  kArchitecture,    // not a machine that monarch-worker was built for
  kExec,            // the worker did not start, for another reason
  kCallBack,        // the worker runs, and does not reach the supervisor's ports
  kVersion,         // an installed worker of another version
  kForwarding,      // its sshd lets nothing be led back through the session
  kNotWritable,     // the cache or the state directory may not be written to
  kResources,       // its worker runs, and the host has not what a mesh needs: GPUs, cores, ports
  kLibraries,       // its C library is too old for what is executed there
  kLauncherGone,    // who launches hosts for a supervisor on another machine has left
  kInterface,       // network.interface is not there; message names those that are
  kUnwell,          // it was lost, and what it is like now would end ranks; message says what
  kNotGranted,      // no machine was given for it; nor would one be for another host on request
};
constexpr LaunchFailureKind monarch_enum_max(LaunchFailureKind) { return LaunchFailureKind::kNotGranted; }

struct LaunchFailure {
  LaunchFailureKind kind = LaunchFailureKind::kOther;
  // "connect", "host key", "authenticate", "check", "tunnel", "copy", "start", "call back", "reserve"
  std::string phase;
  Duration elapsed;     // since the launch began
  std::string message;  // what was tried, on what, and what was answered
  std::string words;    // of the remote side, raw; may be empty
  std::string again;    // a command that reproduces it; may be empty
  bool operator==(const LaunchFailure&) const = default;
};
MONARCH_FIELDS(LaunchFailure, kind, phase, elapsed, message, words, again)

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
MONARCH_MESSAGE(StartThere, 112, version, job_id, spec, spec_directory, shell, needs_address)

// ---- the process there → launching machine ----

struct StartedThere {
  std::int32_t exit_code = 0;  // 0: it runs
  std::string error;           // why it does not
  std::string log_tail;        // of its log; may be empty
  std::string directory;       // the job's there, absolute
  std::string address;         // numeric: by which that host was reached; empty: it does not know
};
MONARCH_MESSAGE(StartedThere, 113, exit_code, error, log_tail, directory, address)

// ---- launching machine → supervisor ----

struct LauncherHello {
  std::string name;  // of the machine, for people
};
MONARCH_MESSAGE(LauncherHello, 114, name)

struct HostLaunched {
  std::uint32_t host = 0;
  LaunchedWorker worker;
};
MONARCH_MESSAGE(HostLaunched, 115, host, worker)

struct HostNotLaunched {
  std::uint32_t host = 0;
  LaunchFailure failure;
};
MONARCH_MESSAGE(HostNotLaunched, 116, host, failure)

struct HostEnded {
  std::uint32_t host = 0;
  std::string how;
  bool orderly = false;
};
MONARCH_MESSAGE(HostEnded, 117, host, how, orderly)

// ---- supervisor → launching machine; the job and the term are in the header of each ----

struct LauncherWelcome {
  std::uint64_t unused = 0;
};
MONARCH_MESSAGE(LauncherWelcome, 120, unused)

struct LaunchHost {
  std::uint32_t host = 0;
  Bootstrap bootstrap;  // its endpoints have the right ports, and any address
};
MONARCH_MESSAGE(LaunchHost, 121, host, bootstrap)

struct EndHost {
  std::uint32_t host = 0;
};
MONARCH_MESSAGE(EndHost, 122, host)

// The worker's last word, which reaches the supervisor alone.
struct HostSaidGoodbye {
  std::uint32_t host = 0;
  bool orderly = false;
};
MONARCH_MESSAGE(HostSaidGoodbye, 123, host, orderly)

// Nothing will be launched any more.
struct LeaveLauncher {
  std::string reason;
};
MONARCH_MESSAGE(LeaveLauncher, 124, reason)

}  // namespace monarch
