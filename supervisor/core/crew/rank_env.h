#pragma once

// The environment that monarch gives a rank, over the host's own: torchrun's names relative to the gang (a process
// group cannot outlive it), ours relative to the mesh, then what the spec's `env` says, which wins,
// CUDA_VISIBLE_DEVICES too. Every variable knows where it comes from.
//
// Thread: values.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/core/spec/placement.h"
#include "supervisor/core/spec/rank_texts.h"
#include "supervisor/core/spec/resources.h"
#include "supervisor/core/state/gang_commits.h"
#include "transport/base/ids.h"

namespace monarch {

enum class EnvOrigin : std::uint8_t {
  kGang,     // torchrun's variables, relative to the gang
  kMesh,     // ours, mesh-wide
  kNetwork,  // which interface libraries should use
  kPorts,    // `ports` of the mesh
  kGpus,     // `resources` of the mesh
  kSpec,     // `env` of the mesh
  kDefault,  // what Python programs want, unless the host or the spec says otherwise
  kPassed,   // `env_pass`
};

struct EnvVariable {
  std::string name;
  std::string value;
  EnvOrigin origin = EnvOrigin::kGang;
  bool at_start = false;      // only the start can tell it: a port, a GPU
  bool secret = false;        // it has a value of the submitting shell in it
  std::string_view why = {};  // kDefault
};

struct RankEnvInput {
  const JobSpec& spec;
  const Placement& placement;
  const std::vector<PoolHost>& hosts;
  std::string job_id;
  Generation generation;
  std::uint32_t restarts = 0;  // of the rank's gang, in all
  std::uint16_t master_port = 0;
  std::string error_file;                      // TORCHELASTIC_ERROR_FILE
  std::map<std::string, std::string> shell{};  // of the submitting shell: what env_pass and $(env.NAME) name
  // Number `index` of a rank's ports; nothing, or 0: not known yet.
  std::function<std::uint16_t(RankId, std::size_t index)> port{};
  const MeshTexts* texts = nullptr;            // of the rank's mesh, if they were compiled already
  const Resources* resources = nullptr;        // with `inventory`: which GPUs a rank sees
  const HostInventory* inventory = nullptr;    // of the rank's host
  const GangCheckpoint* checkpoint = nullptr;  // that the rank's gang goes on from
  std::string restart_cause{};                 // why the generation before has ended; empty: none has, or none knows
};

// Sorted by name, each name once; of kDefault those that a host's own environment may overrule.
std::vector<EnvVariable> rank_environment(const RankEnvInput& input, RankId rank);

// As torchrun has it: what a rank of this mesh prints is seen at once, and several of them on a host do not take all of
// its cores each.
std::vector<EnvVariable> default_variables(const MeshSpec& mesh);
std::map<std::string, std::string> defaults_of(const MeshSpec& mesh);

// What a rank of a standby gang may know before it has a place: nothing that depends on that. `like`: the rank of the
// mesh's first gang with its number in the gang; `host` is where it waits.
std::vector<EnvVariable> standby_environment(const RankEnvInput& input, RankId like, HostId host,
                                             std::uint32_t standby);

}  // namespace monarch
