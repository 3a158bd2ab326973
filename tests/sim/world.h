#pragma once

// World: everything of one simulated run: the machines, the network, the supervisor's guard and disk, the operator, and
// who watches. Its parts find each other through it.
//
// Thread: one simulation's. Lifetime: the run's.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/coverage.h"
#include "tests/sim/kernel.h"
#include "tests/sim/mutants.h"
#include "tests/sim/network.h"
#include "tests/sim/random.h"
#include "tests/sim/scenario.h"
#include "tests/sim/trace.h"
#include "tests/sim/worker.h"

namespace monarch::sim {

class Checker;
class Guard;
class Supervisor;
class Injector;
class Posts;
class Disk;
class Recorder;

// A machine of the pool. Its kernel is frozen with it.
struct Host {
  Host(World& the_world, HostId the_id, Clock the_clock);
  ~Host();
  Instant now() const;
  bool frozen() const { return kernel->frozen(); }
  // The launched worker; earlier ones only where something is badly wrong.
  Worker* worker() { return workers.empty() ? nullptr : workers.back().get(); }
  Daemon* daemon() { return worker() == nullptr ? nullptr : worker()->daemon(); }
  void freeze();
  void thaw();
  // Its daemon is being started again, or its worker ends.
  bool suffers() { return daemon() == nullptr || daemon()->young() || worker()->core().ending(); }

  World& world;
  HostId id;
  Clock clock;
  LifePtr kernel;
  bool off = false;      // power lost, for good
  bool blocked = false;  // cannot dial the supervisor, until all heals
  bool sick = false;     // until all heals
  Instant thawed_at;
  Instant froze_at;
  Duration stood_still;  // in all, until the last thaw
  Term promise_on_disk;
  std::vector<std::unique_ptr<Worker>> workers;
};

struct RunResult {
  bool passed = true;
  std::string label;    // of the invariant
  std::string message;  // what broke it
  std::uint64_t hash = 0;
  Duration simulated;
  std::uint64_t steps = 0;
  std::string last_lines;
  SeenSet seen;
};

class World {
 public:
  // `recorder`: nullptr, or who writes down what the cores are given.
  World(const Scenario& scenario, bool print, Recorder* recorder = nullptr);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  RunResult run();

  const Faults& faults() const { return healed_ ? no_faults_ : scenario.faults; }
  bool healed() const { return healed_; }
  bool mutant(Mutant mutant) const { return scenario.mutant == mutant; }
  Host& host(HostId id) { return *hosts[id.value()]; }
  std::int32_t next_pid() { return ++last_pid_; }
  void note(const char* name, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0, std::uint64_t d = 0) {
    trace.note(scheduler.now(), name, a, b, c, d);
  }
  // Whether the launcher can do anything to this host.
  bool reachable(HostId id) {
    return !host(id).off && !host(id).frozen() && !(scenario.remote && network->cut_off(id));
  }
  bool may_connect(HostId id);
  void deliver_up(const Up& message);
  // From the guard, when it has ended.
  void guard_exited(int code);
  std::optional<int> exit_code() const { return exit_code_; }
  // The supervisor's machine, with its guard.
  void freeze_supervisor();
  void thaw_supervisor();
  bool frozen_supervisor() const { return supervisor_frozen_; }

  const Scenario scenario;
  Recorder* const recorder;
  Scheduler scheduler;
  Random random;
  Trace trace;
  Clock supervisor_clock;
  std::vector<std::unique_ptr<Host>> hosts;
  std::unique_ptr<Network> network;
  std::unique_ptr<Disk> disk;
  std::unique_ptr<Checker> checker;
  std::unique_ptr<Guard> guard;
  std::unique_ptr<Injector> injector;
  std::unique_ptr<Posts> posts;  // nothing: nobody claims slots
  Coverage coverage;

 private:
  void run_until(Instant end);
  void simulate();
  bool waits_without_end() const;
  void stop_again();
  void watch_stop(std::optional<Instant> since);

  Faults no_faults_;
  bool healed_ = false;
  bool ending_ = false;
  bool supervisor_frozen_ = false;
  std::int32_t last_pid_ = 1000;
  std::optional<int> exit_code_;
};

}  // namespace monarch::sim
