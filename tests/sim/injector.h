#pragma once

// Injector: brings the faults of a scenario about, each kind on its own clock, until everything heals; and plays the
// operator.
//
// Thread: one simulation's. Lifetime: the world's.

#include <functional>

#include "tests/sim/kernel.h"
#include "transport/base/ids.h"
#include "transport/messages/viewer.h"

namespace monarch::sim {

class World;

class Injector {
 public:
  explicit Injector(World& world) : world_(world) {}
  void begin();
  void heal();

 private:
  void repeat(Duration gap, std::function<void()> fault);
  HostId any_host();
  // Does, and undoes after a while or when all heals.
  void cut();
  void freeze();
  void power_loss();
  void keeper_kill();
  void keeper_term();
  void daemon_crash();
  void daemon_hang();
  void supervisor_crash();
  void supervisor_stall();
  void supervisor_freeze();
  void pause();
  void disk_full();
  void operate();
  void foresee();
  void ask();
  void mass_cut();
  void cut_off(HostId host, std::uint64_t which, Duration length);
  void stand();
  void hold();
  void set_right();
  // injector_drills.cc
  void drill();
  void tell_drill(DrillNotice notice, std::function<void()> then);
  void strike(const Incarnation& key, HostId where);
  void strike(HostId where);

  World& world_;
  std::uint32_t last_fault_ = 0;  // of the drill
};

}  // namespace monarch::sim
