// monarch-takeover-sim: two supervisors of one job, by the rules of the quorum.
//
//   monarch-takeover-sim --seed N [--wrong NAME] [--trace]   one seed, with what broke and the last events
//   monarch-takeover-sim --seeds A..B [--wrong NAME]         every seed of a range; with a planted bug: how many show
//                                                            it;
//                        [--twice]                           --twice: each must give one hash
//   monarch-takeover-sim --mutants [--most N]                each planted bug must be caught within its number of
//                                                            seeds, where that is not more than N
//
// MONARCH_SIM_SEEDS=N shortens a range to its first N seeds.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/sim/takeover/room.h"

namespace monarch::sim::takeover {
namespace {

struct Options {
  std::optional<std::uint64_t> seed;
  std::uint64_t first = 1;
  std::uint64_t last = 1000;
  std::uint64_t most = 5000;
  Wrong wrong = Wrong::kNothing;
  bool trace = false;
  bool twice = false;
  bool mutants = false;
};

unsigned long long number(std::uint64_t n) { return n; }

// In as many threads as there are cores. `visit` is called under a lock, and says whether to go on.
template <class Visit>
void run_range(const Options& options, Visit visit) {
  std::atomic<std::uint64_t> next{options.first};
  std::atomic<bool> enough{false};
  std::mutex mutex;
  const auto work = [&] {
    while (!enough) {
      const std::uint64_t seed = next++;
      if (seed > options.last) return;
      RoomResult result = Room({.seed = seed, .wrong = options.wrong}).run();
      if (options.twice && result.passed && Room({.seed = seed, .wrong = options.wrong}).run().hash != result.hash) {
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

void report(std::uint64_t seed, const RoomResult& result) {
  std::printf("%sseed %llu: %s: %s\n", result.last_lines.c_str(), number(seed), result.label.c_str(),
              result.message.c_str());
}

int run_seeds(const Options& options) {
  std::uint64_t seeds = 0;
  std::uint64_t failed = 0;
  std::uint64_t takeovers = 0;
  double hours = 0;
  run_range(options, [&](std::uint64_t seed, const RoomResult& result) {
    ++seeds;
    takeovers += result.takeovers;
    hours += result.simulated.count_seconds() / 3600;
    if (!result.passed && failed++ == 0) report(seed, result);
    return options.wrong != Wrong::kNothing || failed == 0;
  });
  std::printf("%llu seeds, %llu failed; %.1f simulated hours, %llu takeovers\n", number(seeds), number(failed), hours,
              number(takeovers));
  return failed == 0 ? 0 : 1;
}

int run_mutant(Options options, const WrongName& wrong) {
  options.wrong = wrong.wrong;
  options.last = options.first + wrong.seeds - 1;
  std::optional<std::uint64_t> caught;
  std::string how;
  run_range(options, [&](std::uint64_t seed, const RoomResult& result) {
    if (result.passed || result.label != "I1") return true;
    if (!caught || seed < *caught) {
      caught = seed;
      how = result.message;
    }
    return false;
  });
  if (!caught) {
    std::printf("not ok - %s: not caught in %llu seeds\n", wrong.name, number(wrong.seeds));
    return 1;
  }
  std::printf("ok - %s: caught by seed %llu (I1: %s)\n", wrong.name, number(*caught), how.c_str());
  return 0;
}

int run_mutants(const Options& options) {
  const auto wanted = [&](const WrongName& wrong) { return wrong.seeds <= options.most; };
  std::printf("1..%zu\n", static_cast<std::size_t>(std::count_if(kWrongs.begin(), kWrongs.end(), wanted)));
  int failed = 0;
  for (const WrongName& wrong : kWrongs) {
    if (wanted(wrong)) failed += run_mutant(options, wrong);
    (void)std::fflush(stdout);
  }
  return failed == 0 ? 0 : 1;
}

int run_one(const Options& options) {
  const RoomResult result = Room({.seed = *options.seed, .wrong = options.wrong, .print = options.trace}).run();
  if (!result.passed) {
    report(*options.seed, result);
    return 1;
  }
  std::printf("seed %llu: hash %016llx, %llu takeovers\n", number(*options.seed), number(result.hash),
              number(result.takeovers));
  return 0;
}

std::optional<Wrong> wrong_of(std::string_view name) {
  for (const WrongName& wrong : kWrongs) {
    if (name == wrong.name) return wrong.wrong;
  }
  return std::nullopt;
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--trace") {
      options.trace = true;
      continue;
    }
    if (flag == "--twice") {
      options.twice = true;
      continue;
    }
    if (flag == "--mutants") {
      options.mutants = true;
      continue;
    }
    if (i + 1 == argc) return false;
    const char* given = argv[++i];
    if (flag == "--seed") {
      options.seed = std::strtoull(given, nullptr, 10);
    } else if (flag == "--most") {
      options.most = std::strtoull(given, nullptr, 10);
    } else if (flag == "--wrong" && wrong_of(given)) {
      options.wrong = *wrong_of(given);
    } else if (const char* dots = std::strstr(given, ".."); flag == "--seeds" && dots != nullptr) {
      options.first = std::strtoull(given, nullptr, 10);
      options.last = std::strtoull(dots + 2, nullptr, 10);
    } else {
      return false;
    }
  }
  if (const char* most = std::getenv("MONARCH_SIM_SEEDS")) {
    options.last = std::min(options.last, options.first + std::uint64_t{std::strtoull(most, nullptr, 10)} - 1);
  }
  return true;
}

}  // namespace
}  // namespace monarch::sim::takeover

int main(int argc, char** argv) {
  using namespace monarch::sim::takeover;
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: monarch-takeover-sim --seed N [--wrong NAME] [--trace]\n"
                 "       monarch-takeover-sim --seeds A..B [--wrong NAME] [--twice]\n"
                 "       monarch-takeover-sim --mutants [--most N]\n");
    return 2;
  }
  if (options.seed) return run_one(options);
  return options.mutants ? run_mutants(options) : run_seeds(options);
}
