// monarch-sim: runs seeds through the simulated world, in as many threads as there are cores.
//
//   monarch-sim --seed N [--hosts N] [--mutant NAME] [--trace]   one seed, with what broke and the last events
//   monarch-sim --seeds A..B [--twice | --digest]                every seed of a range; --twice: each must give one
//                                                                hash;
//                                                                --digest: the hashes of all are one line of stdout
//   monarch-sim --mutants [--seeds A..B]                         each planted bug must be caught within the range
//   monarch-sim --record DIR [--seeds A..B]                      as --seeds; what the cores were given and answered is
//                                                                written to DIR, a file for each seed
//   monarch-sim --check DIR [--seeds A..B] [--mutant NAME]       this build's cores are given what another recorded,
//                                                                and nothing else runs: the first seed and step at
//                                                                which they answer another thing
//
// With --theme NAME (theme.h) every run is about that one.
// With --ranks N a job is one mesh of N ranks, each on a host of its own, and three spares: to compare speeds.
//
// MONARCH_SIM_SEEDS=N shortens a range to its first N seeds.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/sim/checker.h"
#include "tests/sim/coverage.h"
#include "tests/sim/replay/check.h"
#include "tests/sim/replay/recorder.h"
#include "tests/sim/scenario.h"
#include "tests/sim/world.h"

// The cores' assertions are invariants as well: here a broken one is this seed's failure, and other seeds go on.
namespace monarch {
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line, const char* why) {
  throw sim::Violation{"assert", std::string(file) + ":" + std::to_string(line) + ": " + expression + " " + why};
}
}  // namespace monarch

namespace monarch::sim {
namespace {

struct Options {
  std::optional<std::uint64_t> seed;
  std::uint64_t first = 1;
  std::uint64_t last = 3000;
  bool ranged = false;  // these were given
  ScenarioOptions scenario;
  bool trace = false;
  bool twice = false;
  bool digest = false;
  bool mutants = false;
  std::string record;  // to this folder; empty: nothing is recorded
  std::string check;   // what lies in this one
};

// What a range is meant to bring about comes in one of a hundred seeds at least, once it has so many.
constexpr std::uint64_t kEnoughToTell = 1'000;

struct Totals {
  std::mutex mutex;
  std::uint64_t seeds = 0;
  double simulated_hours = 0;
  std::uint64_t steps = 0;
  std::vector<std::pair<std::uint64_t, RunResult>> failures;
  std::map<std::uint64_t, std::uint64_t> hashes;        // by seed
  std::array<std::uint64_t, kSeenNames.size()> seen{};  // in so many seeds
};

RunResult run_seed(std::uint64_t seed, const ScenarioOptions& options, bool trace) {
  World world(make_scenario(seed, options), trace);
  return world.run();
}

RunResult record_seed(std::uint64_t seed, const Options& options) {
  const Scenario scenario = make_scenario(seed, options.scenario);
  Recorder recorder(seed, core_spec(scenario.spec, scenario.mutant));
  RunResult result = World(scenario, options.trace, &recorder).run();
  const Status written = write_recording(options.record, recorder.recording());
  if (written.ok()) return result;
  return {.passed = false, .label = "record", .message = written.error().message};
}

void report(std::uint64_t seed, const RunResult& result, bool lines) {
  if (lines) std::printf("%s", result.last_lines.c_str());
  std::printf("seed %llu: %s: %s\n  monarch-sim --seed %llu\n", static_cast<unsigned long long>(seed),
              result.label.c_str(), result.message.c_str(), static_cast<unsigned long long>(seed));
}

// True to go on.
template <class Visit>
void run_range(const Options& options, Totals& totals, Visit visit) {
  std::atomic<std::uint64_t> next{options.first};
  std::atomic<bool> enough{false};
  const auto work = [&] {
    while (!enough) {
      const std::uint64_t seed = next++;
      if (seed > options.last) return;
      RunResult result = options.record.empty() ? run_seed(seed, options.scenario, false) : record_seed(seed, options);
      if (options.twice && result.passed) {
        const RunResult again = run_seed(seed, options.scenario, false);
        if (again.hash != result.hash) {
          result.passed = false;
          result.label = "I24";
          result.message = "the same seed gave another hash";
        }
      }
      const std::lock_guard lock(totals.mutex);
      ++totals.seeds;
      totals.simulated_hours += result.simulated.count_seconds() / 3600.0;
      totals.steps += result.steps;
      totals.hashes.emplace(seed, result.hash);
      for (std::size_t i = 0; i < totals.seen.size(); ++i) totals.seen[i] += std::uint64_t{result.seen[i]};
      if (!visit(seed, result)) enough = true;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::clamp(std::thread::hardware_concurrency(), 1U, 16U); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
}

// One number for the runs of all seeds, in the order of these.
int print_digest(const Totals& totals) {
  std::uint64_t digest = 0xCBF2'9CE4'8422'2325U;
  for (const auto& [seed, hash] : totals.hashes) digest = (digest ^ seed ^ hash) * 0x0000'0100'0000'01B3U;
  std::printf("digest of %zu seeds: %016llx\n", totals.hashes.size(), static_cast<unsigned long long>(digest));
  return totals.failures.empty() ? 0 : 1;
}

// False: one of them comes too rarely to hold anything.
bool print_seen(const Options& options, const Totals& totals) {
  const ScenarioOptions& how = options.scenario;
  const bool counts = totals.seeds >= kEnoughToTell && !how.theme && !how.ranks && !how.hosts;
  bool enough = true;
  for (std::size_t i = 0; i < totals.seen.size(); ++i) {
    const bool rare = counts && totals.seen[i] * 100 < totals.seeds;
    std::printf("  %s: in %llu seeds%s\n", kSeenNames[i].name, static_cast<unsigned long long>(totals.seen[i]),
                rare ? ", which is too few" : "");
    enough = enough && !rare;
  }
  return enough;
}

int run_seeds(const Options& options) {
  Totals totals;
  const auto begun = std::chrono::steady_clock::now();
  const std::clock_t worked = std::clock();  // of all threads
  run_range(options, totals, [&](std::uint64_t seed, RunResult& result) {
    if (!result.passed) totals.failures.emplace_back(seed, std::move(result));
    return totals.failures.size() < 20;
  });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  std::sort(totals.failures.begin(), totals.failures.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  bool first = true;
  for (const auto& [seed, result] : totals.failures) report(seed, result, std::exchange(first, false));
  if (options.digest) return print_digest(totals);
  const double core_seconds = static_cast<double>(std::clock() - worked) / CLOCKS_PER_SEC;
  std::printf("%llu seeds, %zu failed, %.1f s; each second of a core: %.0f seeds, %.2f simulated hours, %.2f M steps\n",
              static_cast<unsigned long long>(totals.seeds), totals.failures.size(), seconds,
              static_cast<double>(totals.seeds) / core_seconds, totals.simulated_hours / core_seconds,
              static_cast<double>(totals.steps) / core_seconds / 1e6);
  return print_seen(options, totals) && totals.failures.empty() ? 0 : 1;
}

int run_mutant(Options options, const MutantName& mutant) {
  options.scenario.mutant = mutant.mutant;
  if (mutant.theme) options.scenario.theme = mutant.theme;
  Totals totals;
  std::optional<std::uint64_t> caught;
  std::string how;
  run_range(options, totals, [&](std::uint64_t seed, const RunResult& result) {
    if (result.passed || (mutant.label != nullptr && result.label != mutant.label)) return true;
    if (!caught || seed < *caught) {
      caught = seed;
      how = result.label + ": " + result.message;
    }
    return false;
  });
  if (!caught) {
    std::printf("not ok - %s: not caught in %llu seeds\n", mutant.name, static_cast<unsigned long long>(totals.seeds));
    return 1;
  }
  std::printf("ok - %s: caught by seed %llu (%s)\n", mutant.name,
              static_cast<unsigned long long>(*caught - options.first + 1), how.c_str());
  return 0;
}

int run_mutants(const Options& options) {
  std::printf("1..%zu\n", kMutants.size());
  int failed = 0;
  for (const MutantName& mutant : kMutants) {
    failed += run_mutant(options, mutant);
    (void)std::fflush(stdout);
  }
  return failed == 0 ? 0 : 1;
}

std::optional<Mutant> mutant_of(std::string_view name) {
  for (const MutantName& mutant : kMutants) {
    if (name == mutant.name) return mutant.mutant;
  }
  return std::nullopt;
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const auto value = [&]() -> const char* { return i + 1 < argc ? argv[++i] : nullptr; };
    if (flag == "--trace") {
      options.trace = true;
    } else if (flag == "--twice") {
      options.twice = true;
    } else if (flag == "--digest") {
      options.digest = true;
    } else if (flag == "--mutants") {
      options.mutants = true;
    } else if (const char* given = value(); given == nullptr) {
      return false;
    } else if (flag == "--seed") {
      options.seed = std::strtoull(given, nullptr, 10);
    } else if (flag == "--record") {
      options.record = given;
    } else if (flag == "--check") {
      options.check = given;
    } else if (flag == "--hosts") {
      options.scenario.hosts = static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10));
    } else if (flag == "--ranks") {
      options.scenario.ranks = static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10));
    } else if (flag == "--theme") {
      options.scenario.theme = theme_named(given);
      if (!options.scenario.theme) return false;
    } else if (flag == "--mutant") {
      const auto mutant = mutant_of(given);
      if (!mutant) return false;
      options.scenario.mutant = *mutant;
    } else if (flag == "--seeds") {
      const char* dots = std::strstr(given, "..");
      if (dots == nullptr) return false;
      options.first = std::strtoull(given, nullptr, 10);
      options.last = std::strtoull(dots + 2, nullptr, 10);
      options.ranged = true;
    } else {
      return false;
    }
  }
  // All that were recorded.
  if (!options.check.empty() && !options.ranged) options.last = std::numeric_limits<std::uint32_t>::max();
  const bool of_recordings = !options.record.empty() || !options.check.empty();
  if (of_recordings && options.seed) options.first = options.last = *options.seed;
  if (const char* most = std::getenv("MONARCH_SIM_SEEDS")) {
    options.last = std::min(options.last, options.first + std::uint64_t{std::strtoull(most, nullptr, 10)} - 1);
  }
  return true;
}

int run_one(const Options& options) {
  const RunResult result = run_seed(*options.seed, options.scenario, options.trace);
  if (!result.passed) {
    report(*options.seed, result, !options.trace);
    return 1;
  }
  std::printf("seed %llu: hash %016llx, %.1f s simulated, %llu steps\n", static_cast<unsigned long long>(*options.seed),
              static_cast<unsigned long long>(result.hash), result.simulated.count_seconds(),
              static_cast<unsigned long long>(result.steps));
  return 0;
}

}  // namespace
}  // namespace monarch::sim

int main(int argc, char** argv) {
  using namespace monarch::sim;
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(
        stderr,
        "usage: monarch-sim --seed N [--hosts N | --ranks N] [--theme NAME] [--mutant NAME] [--trace]\n"
        "       monarch-sim --seeds A..B [--twice | --digest] [--hosts N | --ranks N] [--theme NAME] [--mutant NAME]\n"
        "       monarch-sim --mutants [--seeds A..B]\n"
        "       monarch-sim --record DIR [--seeds A..B] [--hosts N | --ranks N] [--theme NAME]\n"
        "       monarch-sim --check DIR [--seeds A..B] [--mutant NAME]\n");
    return 2;
  }
  if (!options.check.empty()) {
    return check_recordings(
        {.directory = options.check, .first = options.first, .last = options.last, .mutant = options.scenario.mutant});
  }
  if (options.seed && options.record.empty()) return run_one(options);
  return options.mutants ? run_mutants(options) : run_seeds(options);
}
