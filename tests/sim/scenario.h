#pragma once

// Scenario: what a seed stands for: the job, its policy, the workload and the mix of faults. Each kind of fault is on
// or off and then more or less frequent, per seed: runs with few kinds go deeper than runs with all of them.
//
// Thread: a value.

#include <cstdint>
#include <optional>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/core/state/inheritance.h"
#include "tests/sim/mutants.h"
#include "tests/sim/theme.h"

namespace monarch::sim {

// Chances are in thousandths, gaps are the mean time between two faults of a kind; forever() is never.
struct Faults {
  // Network, of each message.
  std::uint64_t drop = 0;
  std::uint64_t duplicate = 0;
  std::uint64_t slow = 0;  // delayed by up to `slow_by`
  Duration slow_by;
  // Network, of a host.
  Duration cut = Duration::forever();
  Duration reconnect = Duration::forever();
  // Hosts.
  Duration freeze = Duration::forever();
  bool long_freezes = false;     // all of them for longer than a lease
  std::uint64_t sick_hosts = 0;  // ranks die there, or cannot be started
  Duration power_loss = Duration::forever();
  Duration keeper_kill = Duration::forever();
  Duration keeper_term = Duration::forever();
  Duration daemon_crash = Duration::forever();
  Duration daemon_hang = Duration::forever();
  std::uint64_t launch_refused = 0;     // the launcher gives up before a worker runs
  std::uint64_t launch_fails = 0;       // the worker ends before it has told its key
  std::uint64_t call_back_blocked = 0;  // of a host, until all heals: its worker cannot dial the supervisor
  std::uint64_t few_cpus = 0;           // of a host: less than any rank needs
  std::uint64_t promise_fails = 0;
  std::uint64_t slow_disk = 0;
  Duration mass_cut = Duration::forever();  // a switch dies, with all that is behind it
  std::uint64_t floods = 0;  // of beats: followed by many that tell each time something else of their ranks
  std::uint64_t lies = 0;    // of beats: they tell of a rank that another host has
  // Of the insider's beats: they are of a later term, or tell of generations that nobody has decided.
  std::uint64_t claims = 0;
  // The supervisor and its machine.
  Duration supervisor_crash = Duration::forever();
  Duration supervisor_stall = Duration::forever();
  Duration supervisor_freeze = Duration::forever();
  Duration pause = Duration::forever();  // all of the job stands still: its hosts, its supervisor
  Duration disk_full = Duration::forever();
  Duration disk_error = Duration::forever();  // one sync fails
  std::uint64_t slow_sync = 0;
  // Ranks.
  std::uint64_t no_port = 0;
  std::uint64_t fork_fails = 0;
  std::uint64_t exec_fails = 0;
  std::uint64_t slow_exec = 0;
  std::uint64_t deaf = 0;      // ignores TERM
  std::uint64_t children = 0;  // leaves processes behind
  std::uint64_t wedged = 0;    // does not end at once when it is killed
  std::uint64_t fails = 0;     // ends with a code or by a signal
  std::uint64_t never_ready = 0;
  std::uint64_t late_ready = 0;
  std::uint64_t standby_dies = 0;  // while it waits for a place
  std::uint64_t never_at_gate = 0;
  std::uint64_t stuck = 0;                    // ceases to get on, and never ends by itself
  Duration standstill = Duration::forever();  // somebody stops, traces or freezes one, or its disk is away
  Duration drills = Duration::forever();      // somebody injects faults, and says so before
  Duration post_crash = Duration::forever();  // and another one is started
  // The operator.
  Duration holds = Duration::forever();  // holds, stops and lets go
  Duration operates = Duration::forever();
  std::uint64_t stops = 0;
  std::uint64_t kills = 0;
  // Who gave the hosts takes them back.
  std::uint64_t foresees = 0;

  bool any = false;
};

// A batch that no rank survives: whoever of its gang comes to this step crashes there, until all heals.
struct Poison {
  RankId rank;
  std::uint64_t step = 0;
};

struct Scenario {
  std::uint64_t seed = 0;
  Mutant mutant = Mutant::kNone;
  Theme theme = Theme::kMix;
  JobSpec spec;
  Faults faults;
  Duration faults_until;                 // then everything heals
  Duration longest_run;                  // of a rank; forever(): until it is stopped
  Duration words = Duration::forever();  // between two steps that a rank names
  std::optional<Poison> poison;
  Duration hang_limit = Duration::forever();  // of a phase, as written; where hangs are ended
  Duration commits = Duration::forever();     // between two checkpoints of a rank
  std::uint64_t whole_commits = 0;            // of a thousand, that speak for all of a gang
  std::optional<HostId> insider;              // a host that is somebody else's
  Duration slots_run = Duration::forever();   // the longest run of a rank of idle slots
  Duration calm;                              // all is well for as long before anybody stops the job
  bool remote = false;                        // a cut or dead host cannot be reached by its launcher either
  std::uint64_t snapshot_every = 1000;
  Inheritance continues;
};

struct ScenarioOptions {
  std::optional<std::uint32_t> hosts;
  std::optional<std::uint32_t> ranks;  // one mesh of so many, each on a host of its own
  std::optional<Theme> theme;          // nothing: by seed; with `ranks` the mix
  Mutant mutant = Mutant::kNone;
};

// What the core is made with: the job's spec, but for a planted bug.
JobSpec core_spec(JobSpec spec, Mutant mutant);

Scenario make_scenario(std::uint64_t seed, const ScenarioOptions& options);

}  // namespace monarch::sim
