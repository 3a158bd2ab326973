#pragma once

// Containment: everything that descends from a rank, however it tried to leave: frozen, thawed, killed and known to be
// gone. With a writable cgroup v2 the kernel does it. Without, members are found by what they cannot lose by accident:
// three variables in their environment, their leader's session, their parents.
//
// WARNING: a process that executes with an empty environment, in a new session, after its parent has died, is found by
// the cgroup alone.
//
// Thread: one. Lifetime: of the keeper; destroying it removes the host's folder if nothing is left in it.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/base/unique_fd.h"
#include "transport/process/cgroup.h"
#include "transport/process/process_scan.h"

namespace monarch {

struct ContainmentOptions {
  // NAME=value: what every process of this job on this host has in its environment.
  std::vector<std::string> host_lines;
  std::string rank_variable;  // the name of the variable whose value is the key of a rank
  std::string job;            // names the job's folder
  std::string host;           // and the host's in it
};

enum class CgroupUse : std::uint8_t { kIfWritable, kNever };

class Containment {
 public:
  Containment(const ContainmentOptions& options, CgroupUse use);
  ~Containment();
  Containment(const Containment&) = delete;
  Containment& operator=(const Containment&) = delete;

  bool uses_cgroup() const { return host_folder_ != nullptr; }
  // Why not, for the log.
  const std::string& without_cgroup_because() const { return why_not_; }

  // The group to start its leader in; null without cgroups.
  Result<std::unique_ptr<CgroupFolder>> prepare(const std::string& key);
  // The child's pid, as long as nobody reaps it.
  void set_leader(const std::string& key, pid_t leader);

  void kill(const std::string& key);
  // True where it was done by SIGSTOP, which any SIGCONT undoes.
  bool freeze(const std::string& key);
  bool thaw(const std::string& key);  // true where it was done by SIGCONT
  bool empty(const std::string& key);
  // With its cgroup, by whomever; false without one.
  bool frozen(const std::string& key) const;
  // The tree is empty: removes what was prepared.
  void remove(const std::string& key);
  // The OOM killer has taken something of it since the last such question (without a memory controller of its own: of
  // this process's).
  bool out_of_memory(const std::string& key);

 private:
  struct Tree {
    pid_t leader = 0;
    bool grouped = false;  // it has a cgroup, which is opened for what is done with it: many ranks have many
  };
  Status make_folders();
  // Null: it has none, or it cannot be opened now.
  std::unique_ptr<CgroupFolder> group_of(const std::string& key) const;
  std::vector<ProcessEntry> members(const std::string& key) const;
  void signal_members(const std::string& key, int signal);

  ContainmentOptions options_;
  std::string why_not_;
  std::unique_ptr<CgroupFolder> own_folder_;
  std::unique_ptr<CgroupFolder> job_folder_;
  std::unique_ptr<CgroupFolder> host_folder_;
  std::map<std::string, Tree> trees_;
  long long oom_kills_told_ = 0;
};

// Everything of one job on one host but the caller itself, killed until nothing is left or the time is up: what a
// daemon does when its keeper is gone. Blocks. Answers how many processes are left.
std::size_t kill_everything(const ContainmentOptions& options, CgroupUse use, Duration patience);

// Kills and removes the groups that a keeper of this machine left which was killed together with its daemon; only the
// names of the job and of the host count. True once none is there; until then, to be asked again. Does not block.
bool sweep_groups(const ContainmentOptions& options);

// The folders of one job, or of one of its hosts, wherever on this machine their keepers ran: they lie in those of the
// keepers, and outlive a keeper that was killed.
std::size_t count_job_groups(const std::string& job, const std::string& host = {});
// Kills what is in them and removes them, one per host of the job; what is not empty after `patience` stays. Blocks.
// How many it removed.
std::size_t remove_job_groups(const std::string& job, Duration patience, const std::string& host = {});

// Everything below this process, which must be a subreaper: what has not ended by itself after `grace` is killed, but
// for the children in `spared` with all below them. Blocks for up to both; answers how many processes are left.
std::size_t kill_descendants(Duration grace, Duration patience, const std::vector<pid_t>& spared = {});
// The same at once, sparing one child with all below it. It reaps nothing.
std::size_t kill_descendants_but(pid_t spared, Duration patience);

}  // namespace monarch
