// monarch-groups-sim: ranks that meet in groups. Its command line is SeedProgram's.

#include "tests/sim/groups/circle.h"
#include "tests/sim/seed_program.h"

int main(int argc, char** argv) {
  using namespace monarch::sim;
  constexpr std::uint64_t kCaughtWithin = 500;
  SeedProgram program{.name = "monarch-groups-sim", .counted = "epochs", .bugs = {}, .run = {}};
  for (const groups::BugName& bug : groups::kBugs) program.bugs.push_back({bug.name, kCaughtWithin, nullptr});
  program.run = [](std::uint64_t seed, std::size_t bug, bool print) {
    const groups::Bug planted = bug == 0 ? groups::Bug::kNone : groups::kBugs.at(bug - 1).bug;
    return groups::Circle({.seed = seed, .bug = planted, .print = print}).run();
  };
  return program.main(argc, argv);
}
