#pragma once

// PressureFiles: what this host's processes wait for, read from the kernel. They stay open: whoever is short of memory
// or descriptors has to say so.
//
// Thread: any, one at a time.

#include <array>
#include <optional>

#include "transport/base/host_pressure.h"
#include "transport/base/unique_fd.h"

namespace monarch::daemon {

class PressureFiles {
 public:
  PressureFiles();
  // Nothing: the kernel does not count it (CONFIG_PSI, or psi=0 on its command line).
  std::optional<HostPressure> read() const;

 private:
  std::array<UniqueFd, 3> files_;  // cpu, memory, io
};

}  // namespace monarch::daemon
