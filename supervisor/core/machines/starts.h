#pragma once

// Starts: whose turn it is to start: once the meshes that it waits for are ready, its hosts are there and free, and
// each of them holds what the gang needs.
//
// Thread: JobCore's; no locks. Lifetime: JobCore's.

#include <string>

#include "supervisor/core/gangs/gangs.h"

namespace monarch {

class Starts {
 public:
  Starts(const CoreBasis& basis, Crews& crews, Gangs& gangs, CoreHosts& hosts, Ending& end)
      : basis_(basis), crews_(crews), gangs_(gangs), hosts_(hosts), end_(end) {}

  void on(const PortsReserved& event);
  // Of all gangs that wait.
  void look();

 private:
  void lacks(MeshId mesh, HostId where, const std::string& what);

  const CoreBasis& basis_;
  Crews& crews_;
  Gangs& gangs_;
  CoreHosts& hosts_;
  Ending& end_;
};

}  // namespace monarch
