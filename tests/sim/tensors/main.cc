// monarch-tensors-sim: versions that a gang publishes and readers pull. Its command line is SeedProgram's.

#include "tests/sim/seed_program.h"
#include "tests/sim/tensors/gallery.h"

int main(int argc, char** argv) {
  using namespace monarch::sim;
  constexpr std::uint64_t kCaughtWithin = 500;
  SeedProgram program{.name = "monarch-tensors-sim", .counted = "pulls", .bugs = {}, .run = {}};
  for (const tensors::BugName& bug : tensors::kBugs) program.bugs.push_back({bug.name, kCaughtWithin, nullptr});
  program.run = [](std::uint64_t seed, std::size_t bug, bool print) {
    const tensors::Bug planted = bug == 0 ? tensors::Bug::kNone : tensors::kBugs.at(bug - 1).bug;
    return tensors::Gallery({.seed = seed, .bug = planted, .print = print}).run();
  };
  return program.main(argc, argv);
}
