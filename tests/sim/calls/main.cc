// monarch-calls-sim: calls between the ranks of a few hosts. Its command line is SeedProgram's.

#include "tests/sim/calls/room.h"
#include "tests/sim/seed_program.h"

int main(int argc, char** argv) {
  using namespace monarch::sim;
  constexpr std::uint64_t kCaughtWithin = 500;
  SeedProgram program{.name = "monarch-calls-sim", .counted = "calls", .bugs = {}, .run = {}};
  for (const calls::BugName& bug : calls::kBugs) program.bugs.push_back({bug.name, kCaughtWithin, nullptr});
  program.run = [](std::uint64_t seed, std::size_t bug, bool print) {
    const calls::Bug planted = bug == 0 ? calls::Bug::kNone : calls::kBugs.at(bug - 1).bug;
    return calls::Room({.seed = seed, .bug = planted, .print = print}).run();
  };
  return program.main(argc, argv);
}
