// monarch-takeover-sim: two supervisors of one job, by the rules of the quorum. Its command line is SeedProgram's.

#include "tests/sim/seed_program.h"
#include "tests/sim/takeover/room.h"

int main(int argc, char** argv) {
  using namespace monarch::sim;
  SeedProgram program{.name = "monarch-takeover-sim", .counted = "takeovers", .bugs = {}, .run = {}};
  for (const takeover::WrongName& wrong : takeover::kWrongs) program.bugs.push_back({wrong.name, wrong.seeds, "I1"});
  program.run = [](std::uint64_t seed, std::size_t bug, bool print) {
    const takeover::Wrong wrong = bug == 0 ? takeover::Wrong::kNothing : takeover::kWrongs.at(bug - 1).wrong;
    return takeover::Room({.seed = seed, .wrong = wrong, .print = print}).run();
  };
  return program.main(argc, argv);
}
