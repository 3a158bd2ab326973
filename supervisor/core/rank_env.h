#pragma once

// The environment that monarch gives a rank, over the host's own: torchrun's names relative to the gang (a process group cannot
// outlive it), ours relative to the mesh, then what the spec's `env` says, which wins. Every variable knows where it comes from.
//
// Thread: values.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "supervisor/core/job_spec.h"
#include "supervisor/core/placement.h"
#include "transport/base/ids.h"

namespace monarch {

enum class EnvOrigin : std::uint8_t {
  kGang,     // torchrun's variables, relative to the gang
  kMesh,     // ours, mesh-wide
  kNetwork,  // which interface libraries should use
  kSpec,     // `env` of the mesh
  kPassed,   // `env_pass`
};

struct EnvVariable {
  std::string name;
  std::string value;
  EnvOrigin origin = EnvOrigin::kGang;
};

struct RankEnvInput {
  const JobSpec& spec;
  const Placement& placement;
  const std::vector<PoolHost>& hosts;
  std::string job_id;
  Generation generation;
  std::uint16_t master_port = 0;
  std::string error_file;                       // TORCHELASTIC_ERROR_FILE
  std::map<std::string, std::string> passed{};  // what env_pass matched in the submitting shell
};

// Sorted by name, each name once.
std::vector<EnvVariable> rank_environment(const RankEnvInput& input, RankId rank);

}  // namespace monarch
