#pragma once

// What a job has of one that it continues: its gangs count their generations on from those of the job before, so that
// nothing that was written under one of these is taken for theirs, and go on from the newest checkpoint that all ranks
// had committed there (I20).
//
// Thread: pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/state/gang_commits.h"
#include "transport/base/ids.h"

namespace monarch {

struct JobSpec;
struct JobState;

struct InheritedGang {
  MeshId mesh;
  GangId gang;
  std::uint64_t generation = 0;           // the counter of its last
  std::optional<std::uint64_t> furthest;  // step that its ranks had named
  std::optional<GangCheckpoint> checkpoint;
  // Whose of the gang's ranks the first of checkpoint->what is; above 0: more of what was told before.
  std::uint32_t first = 0;
};

struct Inheritance {
  std::string job;                   // whose
  std::vector<InheritedGang> gangs;  // those that have anything of it
  std::vector<std::string> lost;     // one line for people each: what nobody goes on from, and why; the first few
};

// Of a job `before` for one of `spec`: by the names of meshes. A mesh that has another shape by now begins anew, above
// all generations that it had; checkpoints that only hosts of the job before had in their memory went with them.
Inheritance inherit(const JobSpec& spec, const JobSpec& before, const JobState& state);

// The same in parts of which each fits into a record of the journal: no gang is too large for that, its ranks are
// parted too.
std::vector<std::vector<InheritedGang>> in_parts(const std::vector<InheritedGang>& gangs);

}  // namespace monarch
