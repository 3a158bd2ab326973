#pragma once

// HostLocks: what one job at a time may have on this machine (a GPU, a port number that its spec fixes), against other
// jobs of this user. Each holder has a locked file of its own, named after the thing, the job and itself, so that
// whoever is refused can say by whom; a file that nobody locks any more is a leftover, and is removed.
//
// Two that come at once may both be refused, never both be granted: each shows its own file before it looks for others.
//
// Thread: the keeper's. Lifetime: what is held is let go with it.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

// Whom a thing may be shared with.
enum class LockSharing : std::uint8_t {
  kJob,  // other keepers of the same job on this machine
  kNone,
};

struct LockHolder {
  std::string job;
  pid_t pid = 0;  // of its keeper
};

class HostLocks {
 public:
  // The first directory has its own files. It may be missing: it is made, 0700, when something is to be held. Others,
  // where keepers that were started in another way have theirs, are only looked at. Without any, a guard's, nothing can
  // be held.
  HostLocks(std::vector<std::string> directories, std::string job)
      : directory_(directories.empty() ? std::string() : directories.front()),
        looked_at_(std::move(directories)),
        job_(std::move(job)) {}
  ~HostLocks();
  HostLocks(const HostLocks&) = delete;
  HostLocks& operator=(const HostLocks&) = delete;

  // The holder, if another one has it; nothing: it is held now, once more if it was before.
  Result<std::optional<LockHolder>> hold(const std::string& thing, LockSharing sharing);
  void release(const std::string& thing);

 private:
  struct Held {
    UniqueFd file;
    std::string path;
    std::uint32_t times = 0;
  };
  Status ensure_directory() const;
  Result<Held> make_file(const std::string& thing) const;
  Result<std::optional<LockHolder>> other_holder(const std::string& thing, LockSharing sharing) const;
  Result<std::optional<LockHolder>> other_holder_in(const std::string& directory, const std::string& thing,
                                                    LockSharing sharing) const;

  std::string directory_;
  std::vector<std::string> looked_at_;  // with it
  std::string job_;
  std::map<std::string, Held> held_;
};

}  // namespace monarch
