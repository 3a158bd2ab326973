#pragma once

// The environment of a rank's process: the keeper's own without what belongs to other launchers and to us, then what
// the mesh's setup exports, then the gang's, then the rank's, then the three keys by which everything that descends
// from it can be found again.
//
// Thread: pure functions.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/launcher_variables.h"

namespace monarch {

using Environment = std::map<std::string, std::string>;

inline constexpr std::string_view kKeeperFdVariable = "MONARCH_KEEPER_FD";
// Of a guarded process that is not the first: how many descriptors the one before it left, which follow the keeper's.
inline constexpr std::string_view kKeptFdsVariable = "MONARCH_KEPT_FDS";

// What names a rank's containment: MONARCH_RANK_KEY, and the last part of its cgroup. "0.3.2.17" is generation (2, 17)
// of rank 3 of mesh 0.
std::string rank_key(const Incarnation& process);

// "NAME=value" lines as of environ(7); a line without `=` is dropped, of two with one name the first counts.
Environment environment_from(const char* const* lines);
Environment environment_from(const std::vector<std::string>& lines);
std::vector<std::string> environment_lines(const Environment& environment);

// Where a rank talks back; empty where it cannot.
struct RankDoorPaths {
  std::string notify;        // NOTIFY_SOCKET
  std::string questions;     // MONARCH_SOCKET
  std::string events;        // MONARCH_EVENTS
  std::string vault = {};    // MONARCH_VAULT
  std::string post = {};     // MONARCH_POST
  std::string library = {};  // MONARCH_RANK_LIBRARY: of tensors
  std::string modules = {};  // the last folder of PYTHONPATH: what Python imports of ours
};

struct RankEnvironment {
  std::string job_uuid;  // hexadecimal
  std::string host_name;
  Incarnation process;
  RankDoorPaths doors = {};
};

// The keeper's own environment without what belongs to other launchers and to us, and `defaults` where it sets nothing:
// what a rank's is made on, and what its mesh's setup begins with.
Environment rank_base(const Environment& keepers, const Environment& defaults = {});

// `base` is rank_base(), or what a setup made of it. `gang` wins over it, `own` over both, and the keys over all.
Environment rank_environment(const Environment& base, const Environment& gang, const Environment& own,
                             const RankEnvironment& keys);

// Of what sshd and a shell gave a worker, what a login has: HOME USER LOGNAME SHELL PATH LANG TMPDIR. In a step of
// Slurm also which GPUs that gave to it.
Environment login_environment(const Environment& whole);

// What steers the dynamic loader (ld.so(8)) and so brings code into a process: the names that begin with LD_.
bool is_loader_variable(std::string_view name);

// The loader variables under names that mean nothing to it, and back: so the submitting shell's reach the ranks of
// virtual hosts, through processes of ours that they do not concern.
Environment hold_loader_variables(const Environment& environment);
Environment release_loader_variables(const Environment& environment);
// Neither those nor held ones.
Environment without_loader_variables(const Environment& environment);

// Of a mesh's setup: rank_base(), what names job and mesh among a gang's variables, and the keys. It knows nothing of
// the gang and the rank whose process runs it.
Environment setup_environment(const Environment& base, const Environment& gang, const RankEnvironment& keys);

// Of a process that is no rank: all of the keeper's but the keeper's door and what others are told by, and `added`.
Environment spawned_environment(const Environment& base, const Environment& added);

}  // namespace monarch
