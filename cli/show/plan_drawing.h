#pragma once

// The drawing of `plan`: each mesh as a grid, a row for each host with its ranks, coordinates and gang, and what else
// is on each host. Long meshes are shortened in the middle, and say so; what is wider than the terminal is drawn
// narrower.
//
// Thread: a pure function.

#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/core/spec/placement.h"

namespace monarch {

struct PlanDrawing {
  const JobSpec& spec;
  const Placement& placement;
  const std::vector<PoolHost>& hosts;
  bool colour = false;
  std::size_t columns = 0;  // 0: as many as it takes
  bool all = false;         // nothing is left out
};

std::string draw_plan(const PlanDrawing& plan);

}  // namespace monarch
