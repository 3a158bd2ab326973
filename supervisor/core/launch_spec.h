#pragma once

// Launch: which machines a job has, how workers get onto them, and by which addresses all parts reach each other. What a spec may say
// is decided in supervisor/spec; no value here needs checking again.
//
// Thread: values.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "transport/base/time.h"

namespace monarch {

// What warms a spare: run once on each, as soon as it is connected.
struct PrepareSpec {
  std::vector<std::string> program;  // none: nothing is run
  Duration timeout = Duration::seconds(600);
  bool operator==(const PrepareSpec&) const = default;
};

// Virtual hosts of this machine.
struct LaunchLocal {
  std::optional<std::uint32_t> hosts;  // the pool; nothing: need + spares
  std::uint32_t spares = 0;
  PrepareSpec prepare = {};
  bool operator==(const LaunchLocal&) const = default;
};

// A machine that SSH reaches, by what its user wrote of it.
struct SshHost {
  std::string name;                   // how the job calls it; distinct within the pool, and fit for a path
  std::string address;                // what is dialled: a name or a numeric address
  std::string user;                   // empty: who runs the supervisor, or what an ssh_config says
  std::optional<std::uint16_t> port;  // nothing: 22, or what an ssh_config says
  std::string host_key;               // pinned, "SHA256:…": the only one taken; empty: known_hosts decides
  bool operator==(const SshHost&) const = default;
};

// A host on the way to the others.
struct SshJump {
  std::string address;
  std::string user;                   // empty: who runs the supervisor
  std::optional<std::uint16_t> port;  // nothing: 22
  bool operator==(const SshJump&) const = default;
};

struct LaunchSsh {
  std::vector<SshHost> hosts;  // the pool
  std::uint32_t spares = 0;
  PrepareSpec prepare = {};
  std::string identity;               // absolute; a private key
  std::string known_hosts;            // absolute
  std::optional<std::string> config;  // absolute; an ssh_config; nothing: none is read
  std::vector<SshJump> jump;          // the first is dialled from here, each next one through those before it
  Duration connect_timeout = Duration::seconds(10);
  std::uint32_t parallel = 64;        // sessions at a time
  std::optional<std::string> worker;  // absolute, on each host; nothing: ours is copied
  bool operator==(const LaunchSsh&) const = default;
};

// The nodes that Slurm gave to one of its jobs.
struct SlurmAllocation {
  std::uint32_t job = 0;           // Slurm's id of it
  std::vector<std::string> nodes;  // distinct, in Slurm's order
  bool operator==(const SlurmAllocation&) const = default;
};

// What nodes that Slurm is asked for are like, in sbatch's words. Empty: as sbatch has it, or as the nodes that the job has already.
struct SlurmRequest {
  std::string partition;
  std::string account;
  std::string qos;
  std::optional<Duration> time;  // whole minutes
  std::string constraint;
  std::vector<std::string> exclude;  // nodes
  std::vector<std::string> options;  // further words of sbatch's
  bool operator==(const SlurmRequest&) const = default;
};

// What becomes of the job when Slurm takes its nodes back, or its time is over.
enum class OnPreempt : std::uint8_t {
  kStop,
  kRequeue,    // Slurm puts the same job of its own back into its queue
  kSuccessor,  // another one is submitted
};
constexpr OnPreempt monarch_enum_max(OnPreempt) { return OnPreempt::kSuccessor; }
// As a spec writes it: "requeue".
std::string_view to_text(OnPreempt action);

struct LaunchSlurm {
  std::optional<std::uint32_t> nodes;  // that are asked for; nothing: need + spares
  std::uint32_t spares = 0;
  PrepareSpec prepare = {};
  std::optional<SlurmAllocation> allocation;  // the pool; nothing: there is none yet
  SlurmRequest request = {};
  std::uint32_t replacements = 4;                 // nodes beyond those of the allocation, at a time
  Duration queue_limit = Duration::seconds(900);  // for one of these
  std::uint32_t own_steps = 100;                  // where more hosts are launched at once, one step serves them
  Duration warn = Duration::seconds(120);         // before the end of its time ranks are told; zero: nobody is
  OnPreempt on_preempt = OnPreempt::kStop;
  bool operator==(const LaunchSlurm&) const = default;
};

using Launch = std::variant<LaunchLocal, LaunchSsh, LaunchSlurm>;

// As a spec writes it: "local".
std::string_view launcher_name(const Launch& launch);

struct PortSpan {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  bool operator==(const PortSpan&) const = default;
};

enum class ControlVia : std::uint8_t { kDirect, kSsh };

// Where the supervisor lives: on the machine that starts the job, or on the first host of the pool, which that machine launches.
enum class SupervisorPlace : std::uint8_t { kHere, kFirst };

// How workers reach the supervisor.
struct ControlSpec {
  ControlVia via = ControlVia::kDirect;
  std::string address;  // numeric, as the hosts see it; empty: of the connection that reached the first of them
  std::optional<PortSpan> ports;  // two or more; nothing: any
  bool operator==(const ControlSpec&) const = default;
};

// How ranks reach each other.
struct NetworkSpec {
  std::string interface;          // empty: that by which a host reaches the supervisor
  std::optional<PortSpan> ports;  // that ranks are given; nothing: any
  bool operator==(const NetworkSpec&) const = default;
};

}  // namespace monarch
