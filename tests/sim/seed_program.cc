#include "tests/sim/seed_program.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

namespace monarch::sim {
namespace {

struct Wanted {
  std::optional<std::uint64_t> seed;
  std::uint64_t first = 1;
  std::uint64_t last = 1000;
  std::uint64_t most = 5000;
  std::size_t bug = 0;
  bool trace = false;
  bool twice = false;
  bool mutants = false;
};

unsigned long long number(std::uint64_t n) { return n; }

// `visit` is called under a lock, and says whether to go on.
template <class Visit>
void run_range(const SeedProgram& program, const Wanted& wanted, Visit visit) {
  std::atomic<std::uint64_t> next{wanted.first};
  std::atomic<bool> enough{false};
  std::mutex mutex;
  const auto work = [&] {
    while (!enough) {
      const std::uint64_t seed = next++;
      if (seed > wanted.last) return;
      SeedResult result = program.run(seed, wanted.bug, false);
      if (wanted.twice && result.passed && program.run(seed, wanted.bug, false).hash != result.hash) {
        result.passed = false;
        result.label = "I24";
        result.message = "the same seed gave another hash";
      }
      const std::lock_guard lock(mutex);
      if (!visit(seed, result)) enough = true;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::clamp(std::thread::hardware_concurrency(), 1U, 16U); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
}

void report(std::uint64_t seed, const SeedResult& result) {
  std::printf("%sseed %llu: %s: %s\n", result.last_lines.c_str(), number(seed), result.label.c_str(),
              result.message.c_str());
}

int run_seeds(const SeedProgram& program, const Wanted& wanted) {
  std::uint64_t seeds = 0;
  std::uint64_t failed = 0;
  std::uint64_t counted = 0;
  double hours = 0;
  run_range(program, wanted, [&](std::uint64_t seed, const SeedResult& result) {
    ++seeds;
    counted += result.counted;
    hours += result.simulated.count_seconds() / 3600;
    if (!result.passed && failed++ == 0) report(seed, result);
    return wanted.bug != 0 || failed == 0;
  });
  std::printf("%llu seeds, %llu failed; %.1f simulated hours, %llu %s\n", number(seeds), number(failed), hours,
              number(counted), program.counted);
  return failed == 0 ? 0 : 1;
}

int run_mutant(const SeedProgram& program, Wanted wanted, std::size_t bug) {
  const PlantedBug& planted = program.bugs[bug - 1];
  wanted.bug = bug;
  wanted.last = wanted.first + planted.seeds - 1;
  std::optional<std::uint64_t> caught;
  std::string how;
  run_range(program, wanted, [&](std::uint64_t seed, const SeedResult& result) {
    if (result.passed || (planted.label != nullptr && result.label != planted.label)) return true;
    if (!caught || seed < *caught) {
      caught = seed;
      how = result.label + ": " + result.message;
    }
    return false;
  });
  if (!caught) {
    std::printf("not ok - %s: not caught in %llu seeds\n", planted.name, number(planted.seeds));
    return 1;
  }
  std::printf("ok - %s: caught by seed %llu (%s)\n", planted.name, number(*caught), how.c_str());
  return 0;
}

int run_mutants(const SeedProgram& program, const Wanted& wanted) {
  const auto is_wanted = [&](const PlantedBug& bug) { return bug.seeds <= wanted.most; };
  std::printf("1..%zu\n", static_cast<std::size_t>(std::count_if(program.bugs.begin(), program.bugs.end(), is_wanted)));
  int failed = 0;
  for (std::size_t i = 0; i < program.bugs.size(); ++i) {
    if (is_wanted(program.bugs[i])) failed += run_mutant(program, wanted, i + 1);
    (void)std::fflush(stdout);
  }
  return failed == 0 ? 0 : 1;
}

int run_one(const SeedProgram& program, const Wanted& wanted) {
  const SeedResult result = program.run(*wanted.seed, wanted.bug, wanted.trace);
  if (!result.passed) {
    report(*wanted.seed, result);
    return 1;
  }
  std::printf("seed %llu: hash %016llx, %llu %s\n", number(*wanted.seed), number(result.hash), number(result.counted),
              program.counted);
  return 0;
}

// 0: there is none of that name.
std::size_t bug_of(const SeedProgram& program, std::string_view name) {
  for (std::size_t i = 0; i < program.bugs.size(); ++i) {
    if (name == program.bugs[i].name) return i + 1;
  }
  return 0;
}

bool parse_value(const SeedProgram& program, std::string_view flag, const char* given, Wanted& wanted) {
  if (flag == "--seed") {
    wanted.seed = std::strtoull(given, nullptr, 10);
  } else if (flag == "--most") {
    wanted.most = std::strtoull(given, nullptr, 10);
  } else if (flag == "--wrong" && bug_of(program, given) != 0) {
    wanted.bug = bug_of(program, given);
  } else if (const char* dots = std::strstr(given, ".."); flag == "--seeds" && dots != nullptr) {
    wanted.first = std::strtoull(given, nullptr, 10);
    wanted.last = std::strtoull(dots + 2, nullptr, 10);
  } else {
    return false;
  }
  return true;
}

bool parse(const SeedProgram& program, int argc, char** argv, Wanted& wanted) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--trace") {
      wanted.trace = true;
    } else if (flag == "--twice") {
      wanted.twice = true;
    } else if (flag == "--mutants") {
      wanted.mutants = true;
    } else if (i + 1 == argc || !parse_value(program, flag, argv[++i], wanted)) {
      return false;
    }
  }
  if (const char* most = std::getenv("MONARCH_SIM_SEEDS")) {
    wanted.last = std::min(wanted.last, wanted.first + std::uint64_t{std::strtoull(most, nullptr, 10)} - 1);
  }
  return true;
}

}  // namespace

int SeedProgram::main(int argc, char** argv) const {
  Wanted wanted;
  if (!parse(*this, argc, argv, wanted)) {
    std::fprintf(stderr,
                 "usage: %s --seed N [--wrong NAME] [--trace]\n"
                 "       %s --seeds A..B [--wrong NAME] [--twice]\n"
                 "       %s --mutants [--most N]\n",
                 name, name, name);
    return 2;
  }
  if (wanted.seed) return run_one(*this, wanted);
  return wanted.mutants ? run_mutants(*this, wanted) : run_seeds(*this, wanted);
}

}  // namespace monarch::sim
