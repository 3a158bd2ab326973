#pragma once

// What came of a launch: a worker that runs, or why there is none, in the classes that an operator tells apart.
//
// Thread: values.

#include <cstdint>
#include <string>

#include "transport/base/bootstrap.h"
#include "transport/base/time.h"

namespace monarch {

// Where the time went until a worker had told its key, as its launcher measured it. All zero where the launcher has nothing to tell apart.
struct LaunchTimes {
  Duration waited;  // for its turn, and for attempts that were worth another
  Duration log_in;  // dialling, the host's key, authentication
  Duration copy;    // of the worker's file; zero where the host had it
  Duration start;   // of the worker, until it told its key
  bool operator==(const LaunchTimes&) const = default;
};

// A worker that runs and has told its key.
struct LaunchedWorker {
  BootstrapReply reply;
  std::string control_endpoint = {};  // where it was told to call back
  std::string bulk_endpoint = {};
  std::string again = {};  // a command that tries by hand whether it can; may be empty
  LaunchTimes times = {};
};

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

}  // namespace monarch
