#pragma once

// CgroupFolder: a folder of cgroup v2 that is ours to fill: processes join it, are frozen and killed with it, and it
// can say whether any is left. It is found through mountinfo, since it is not always at /sys/fs/cgroup.
//
// Thread: one. Lifetime: the folder itself outlives this object until remove().

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

class CgroupFolder {
 public:
  // This process's own folder of the v2 hierarchy. kUnsupported where there is none.
  static Result<std::unique_ptr<CgroupFolder>> own();
  // The top of that hierarchy, as it is mounted here.
  static Result<std::unique_ptr<CgroupFolder>> top();
  CgroupFolder(const CgroupFolder&) = delete;
  CgroupFolder& operator=(const CgroupFolder&) = delete;

  // A folder below, made if it is not there. Names are one path part; a symbolic link is refused.
  Result<std::unique_ptr<CgroupFolder>> make(const std::string& name) const;
  Result<std::unique_ptr<CgroupFolder>> open(const std::string& name) const;
  // With all that is below it; it must be empty of processes.
  void remove(const std::string& name) const;

  struct Forked {
    pid_t pid = -1;       // as fork(2) answers it; -1: errno says why
    bool inside = false;  // the child is in this folder already, and need not join()
  };
  // As fork(2), with the child in this folder from its first moment where the kernel can do that (CLONE_INTO_CGROUP,
  // clone(2), Linux 5.7; some sandboxes forbid it). It costs a twentieth of join(), which waits for a grace period of
  // RCU, some 7 ms.
  //
  // WARNING: past glibc's fork(): this process has one thread, and its child starts none.
  Forked fork() const;
  // Of this process. Async-signal-safe; false: errno says why.
  bool join() const;
  // Whether a child of this process can be in it: tried, with a child.
  bool can_be_joined() const;
  Status kill() const;
  Status freeze(bool frozen) const;
  // Whether a live process is in it or below. True when that cannot be read, false where the folder was removed.
  bool populated() const;
  // Whether all that is in it stands still. False when that cannot be read.
  bool frozen() const;
  // Of memory.events, where that controller is on.
  std::optional<long long> oom_kills() const;
  std::vector<std::string> names() const;

 private:
  CgroupFolder(UniqueFd folder, std::string path) : folder_(std::move(folder)), path_(std::move(path)) {}
  Status write(const char* file, std::string_view value) const;
  std::string read(const char* file) const;
  bool removed() const;

  UniqueFd folder_;
  std::string path_;  // for messages
};

// How many processes the kernel's OOM killer has taken in this process's own memory cgroup, v2 or v1; nothing if
// unknown.
std::optional<long long> own_oom_kills();

// Why this process cannot give what it starts groups of their own; nothing: one was made, joined and removed.
std::optional<std::string> no_group_because();

}  // namespace monarch
