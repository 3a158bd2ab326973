#pragma once

// MeshSetup: the `setup` of one mesh on this host, run once for all ranks of it. The first rank past its gate runs it
// in its own process; the others wait for that, and take what it exported, or its failure. What it exported lies in
// memory that the keeper and its children share, not in a file: it may hold what nobody else should read.
//
// Thread: the keeper's makes it; apply() is for a rank's process before its program. Lifetime: of the keeper, so that a
// later generation finds it done. A failure counts for its generation alone: the next one tries again.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/process/spawn.h"
#include "worker/core/environment.h"

namespace monarch {

class MeshSetup {
 public:
  static Result<std::unique_ptr<MeshSetup>> create();
  MeshSetup(const MeshSetup&) = delete;
  MeshSetup& operator=(const MeshSetup&) = delete;

  // Must be open in the rank's process.
  int descriptor() const { return memory_.get(); }

  // Blocks until it was run. `environment` is that of the setup; it becomes the one that the setup left.
  //
  // WARNING: the lock is a POSIX record lock, which belongs to the process (fcntl_locking(2)): whoever is killed while
  // it runs the setup releases it, and the next one begins anew. Closing any descriptor of the memory would release it
  // too.
  std::optional<StepFailure> apply(const std::string& setup, const Incarnation& process,
                                   std::vector<std::string>& environment) const;

 private:
  explicit MeshSetup(UniqueFd memory) : memory_(std::move(memory)) {}

  UniqueFd memory_;
};

}  // namespace monarch
