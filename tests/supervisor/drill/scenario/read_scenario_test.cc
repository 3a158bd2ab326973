#include "supervisor/drill/scenario/read_scenario.h"

#include <gtest/gtest.h>

#include "supervisor/drill/scenario/check_scenario.h"
#include "supervisor/spec/spec.h"

namespace monarch {
namespace {

using namespace drill;  // NOLINT(google-build-using-namespace): all of it is under test

ScenarioOutcome read(const std::string& yaml) {
  return read_scenario({.name = "d.yaml", .text = yaml, .directory = "/home/u/drills"}, {.home = "/home/u"});
}

constexpr const char* kWhole = R"(version: 1
drill: five-faults
job: ../train.yaml
seed: 18446744073
settle: 7s
control: 40s
duration: 10m
overlap: true
faults:
  - {fault: segv, every: 60s, target: {mesh: trainer}}
  - {fault: power-loss, at: 120s, target: {host: random}}
  - {fault: hang, on_step: 200, target: {mesh: trainer, at: "replica=1"}, for: 30s}
  - {fault: kill, on_event: checkpoint.committed, after: 50ms, times: 3}
  - {fault: freeze, at: 0s}
  - {fault: overload, at: 1s, processes: 4}
  - {fault: flood, at: 1s, size: 1MiB}
  - {fault: loss, at: 1s, percent: 30}
guard: {max_gangs_down: 2, min_spares: 1, wait: 90s, stop_below_goodput: 0.2}
budgets: real
expect:
  seen: 1.0
  ours_p95: {process: 1s, host: 12500ms}
  false_positives: 2
  same_output: 'with loss ([0-9.]+)'
compare: full-restart
)";

TEST(ReadScenario, TakesEveryKey) {
  const ScenarioOutcome outcome = read(kWhole);
  ASSERT_TRUE(outcome.scenario) << render(outcome);
  const Scenario& s = *outcome.scenario;
  EXPECT_EQ(s.name, "five-faults");
  EXPECT_EQ(s.job, "/home/u/train.yaml");
  EXPECT_EQ(s.seed, 18446744073U);
  EXPECT_EQ(s.settle, Duration::seconds(7));
  EXPECT_EQ(s.control, Duration::seconds(40));
  EXPECT_EQ(s.duration, Duration::seconds(600));
  EXPECT_TRUE(s.overlap);
  EXPECT_EQ(s.guard.max_gangs_down, 2U);
  EXPECT_EQ(s.guard.min_spares, 1U);
  EXPECT_EQ(s.guard.wait, Duration::seconds(90));
  EXPECT_DOUBLE_EQ(s.guard.stop_below_goodput, 0.2);
  EXPECT_EQ(s.budgets, Budgets::kReal);
  EXPECT_EQ(s.compare, Compare::kFullRestart);
  EXPECT_EQ(s.same_output, "with loss ([0-9.]+)");
}

TEST(ReadScenario, TakesEachFaultWithItsTimeAndLength) {
  const ScenarioOutcome outcome = read(kWhole);
  ASSERT_TRUE(outcome.scenario);
  const std::vector<FaultEntry>& f = outcome.scenario->faults;
  ASSERT_EQ(f.size(), 8U);
  EXPECT_EQ(f[0].trigger, TriggerKind::kEvery);
  EXPECT_EQ(f[0].every, Duration::seconds(60));
  EXPECT_EQ(f[0].target.mesh, "trainer");
  EXPECT_EQ(f[1].trigger, TriggerKind::kAt);
  EXPECT_EQ(f[1].at, Duration::seconds(120));
  EXPECT_EQ(f[1].target.host, kRandom);
  EXPECT_EQ(f[1].lasts, Duration::zero());
  EXPECT_EQ(f[2].trigger, TriggerKind::kOnStep);
  EXPECT_EQ(f[2].step, 200U);
  EXPECT_EQ(f[2].target.at, "replica=1");
  EXPECT_EQ(f[2].lasts, Duration::seconds(30));
  EXPECT_EQ(f[3].trigger, TriggerKind::kOnEvent);
  EXPECT_EQ(name_of(f[3].event), "checkpoint.committed");
  EXPECT_EQ(f[3].after, Duration::milliseconds(50));
  EXPECT_EQ(f[3].times, 3U);
  EXPECT_EQ(f[4].lasts, Duration::seconds(10)) << "that of its row";
  EXPECT_EQ(f[5].processes, 4U);
  EXPECT_EQ(f[6].size, 1U << 20U);
  EXPECT_EQ(f[7].percent, 30U);
  EXPECT_EQ(f[3].place.line, 13U);
}

TEST(ReadScenario, TakesBoundsByClass) {
  const ScenarioOutcome outcome = read(kWhole);
  ASSERT_TRUE(outcome.scenario);
  const std::vector<Bound>& bounds = outcome.scenario->expect;
  ASSERT_EQ(bounds.size(), 4U);
  EXPECT_EQ(bounds[0].measure, Measure::kSeen);
  EXPECT_DOUBLE_EQ(bounds[0].value, 1);
  EXPECT_EQ(bounds[1].measure, Measure::kOursP95);
  EXPECT_EQ(bounds[1].of, FaultClass::kProcess);
  EXPECT_DOUBLE_EQ(bounds[2].value, 12.5) << "in seconds";
  EXPECT_EQ(bounds[3].measure, Measure::kFalsePositives);
  EXPECT_DOUBLE_EQ(bounds[3].value, 2);
}

TEST(ReadScenario, LeavesWhatIsNotWrittenAsItIs) {
  const ScenarioOutcome outcome = read("version: 1\ndrill: d\nfaults: [{fault: kill, at: 0s}]\n");
  ASSERT_TRUE(outcome.scenario) << render(outcome);
  EXPECT_EQ(outcome.scenario->control, Duration::seconds(30));
  EXPECT_EQ(outcome.scenario->job, "");
  EXPECT_FALSE(outcome.scenario->seed);
  EXPECT_FALSE(outcome.scenario->duration);
  EXPECT_TRUE(outcome.scenario->expect.empty());
}

TEST(ReadScenario, RefusesWhatNoTextOfAScenarioCanBe) {
  const auto missing = read_spec_file("/nowhere/drill.yaml", kPipePatience, "scenario");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message, "cannot read the scenario /nowhere/drill.yaml: No such file or directory");
  const ScenarioOutcome large = read(std::string((1U << 20U) + 1, '#'));
  ASSERT_EQ(large.diagnostics.size(), 1U);
  EXPECT_EQ(large.diagnostics[0].id, "E0002");
  const ScenarioOutcome many = read("version: 1\ndrill: d\nfaults: [" + [] {
    std::string list;
    for (int i = 0; i < 1'001; ++i) list += "{fault: kill, at: 1s}, ";
    return list;
  }() + "]\n");
  ASSERT_EQ(many.diagnostics.size(), 1U) << render(many);
  EXPECT_EQ(many.diagnostics[0].id, "E0206") << "a thousand are the most";
}

TEST(ReadScenario, TakesAThousandFaults) {
  std::string list;
  for (int i = 0; i < 1'000; ++i) list += "  - {fault: kill, at: 1s, target: {mesh: trainer}}\n";
  const ScenarioOutcome outcome = read("version: 1\ndrill: d\nfaults:\n" + list);
  ASSERT_TRUE(outcome.scenario) << render(outcome);
  EXPECT_EQ(outcome.scenario->faults.size(), 1'000U);
}

// A text of one blow is a scenario whose faults are found by the same reader.
TEST(ReadScenario, TakesOneBlowOfACommandLine) {
  const OneBlow blow{.fault = "hang", .target = {.mesh = "trainer", .rank = "3"}, .lasts = "10s"};
  const ScenarioOutcome outcome = read(scenario_text(blow));
  ASSERT_TRUE(outcome.scenario) << render(outcome);
  EXPECT_EQ(outcome.scenario->faults[0].target.rank, "3");
  EXPECT_EQ(outcome.scenario->faults[0].lasts, Duration::seconds(10));
  const ScenarioOutcome broken = read(scenario_text({.fault = "sigkill: [", .target = {}, .lasts = "10"}));
  ASSERT_EQ(broken.diagnostics.size(), 2U) << render(broken);
  EXPECT_EQ(broken.diagnostics[0].id, "E0205");
  EXPECT_EQ(broken.diagnostics[1].id, "E0203");
}

TEST(CheckScenario, TakesAScenarioThatItsJobCanHave) {
  const SpecOutcome spec = load_spec(
      {.name = "s.yaml",
       .text = "version: 1\njob: train\nlaunch: {local: {hosts: 5, spares: 1}}\nmeshes:\n  trainer: {dims: {replica: "
               "2, host: 2}, gang: replica, program: [/bin/true]}\n",
       .directory = "/"});
  ASSERT_TRUE(spec.loaded) << render(spec);
  ScenarioOutcome outcome = read(kWhole);
  std::size_t asked = 0;
  const auto ask = [&](const FaultTarget& target) -> std::optional<std::string> {
    ++asked;
    EXPECT_TRUE(target.host.empty()) << "random is no host";
    return std::nullopt;
  };
  check_scenario(
      outcome, {.spec = spec.loaded->spec, .tree = &spec.loaded->tree, .sources = spec.sources, .target_problem = ask});
  EXPECT_TRUE(outcome.scenario) << render(outcome);
  EXPECT_EQ(asked, 2U);
}

TEST(CheckScenario, LooksAtOneBlowWithoutControl) {
  const SpecOutcome spec =
      load_spec({.name = "s.yaml",
                 .text = "version: 1\njob: j\nmeshes: {m: {dims: {host: 2}, program: [/bin/true]}}\n",
                 .directory = "/"});
  ASSERT_TRUE(spec.loaded);
  ScenarioOutcome outcome = read(scenario_text({.fault = "power-loss", .target = {}}));
  check_scenario(outcome, {.spec = spec.loaded->spec, .one_blow = true});
  EXPECT_TRUE(outcome.scenario) << render(outcome);
  ScenarioOutcome wrong = read(scenario_text({.fault = "kill", .target = {.mesh = "n"}}));
  check_scenario(wrong, {.spec = spec.loaded->spec, .one_blow = true});
  ASSERT_EQ(wrong.diagnostics.size(), 1U);
  EXPECT_EQ(wrong.diagnostics[0].id, "E0504");
}

}  // namespace
}  // namespace monarch
