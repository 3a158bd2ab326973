#include "supervisor/drill/scenario/smoke.h"

#include <gtest/gtest.h>

#include "supervisor/drill/scenario/check_scenario.h"
#include "supervisor/drill/scenario/read_scenario.h"
#include "supervisor/spec/spec.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

JobSpec job(const std::string& launch, const std::string& more) {
  const SpecOutcome spec = load_spec({.name = "s.yaml",
                                      .text = text("version: 1\njob: train\nlaunch: {local: {", launch,
                                                   "}}\nmeshes:\n  data: {dims: {x: 1}, sidecar: true, program: "
                                                   "[/bin/true]}\n  trainer: {dims: {replica: 2, host: 2}, gang: "
                                                   "replica, program: [/bin/true]}\n",
                                                   more),
                                      .directory = "/"});
  EXPECT_TRUE(spec.loaded) << render(spec);
  return spec.loaded->spec;
}

std::vector<std::string> faults_of(const drill::Scenario& scenario) {
  std::vector<std::string> out;
  for (const drill::FaultEntry& entry : scenario.faults) out.push_back(entry.fault);
  return out;
}

// It is a scenario that its own job can have, whatever that is.
drill::Scenario scenario_of(const JobSpec& spec, const drill::SmokeScenario& smoke) {
  drill::ScenarioOutcome outcome = drill::read_scenario({.name = "smoke", .text = smoke.text, .directory = "/"});
  drill::check_scenario(outcome, {.spec = spec});
  EXPECT_TRUE(outcome.scenario) << smoke.text << drill::render(outcome);
  return outcome.scenario.value_or(drill::Scenario{});
}

TEST(Smoke, HasAFaultOfEachClassThatTheJobCanHave) {
  const JobSpec spec = job("hosts: 6, spares: 1", "supervision: {hang: {action: restart}, restart: {max: 8}}\n");
  const drill::SmokeScenario smoke = drill::smoke_scenario(spec);
  EXPECT_EQ(smoke.text, R"(# Each fault strikes once the one before it is recovered from.
version: 1
drill: smoke
settle: 5s
control: 10s
faults:
  - {fault: kill, at: 0s, target: {mesh: trainer}}
  - {fault: hang, at: 0s, target: {mesh: trainer}, for: 13s}
  - {fault: daemon-kill, at: 0s}
  - {fault: power-loss, at: 0s}
  - {fault: supervisor-kill, at: 0s}
guard: {min_spares: 1}
expect:
  seen: 1
  ours_p95: {process: 1s, hang: 9s, host: 13s, supervisor: 2s}
  false_positives: 0
  leftovers: 0
)");
  EXPECT_TRUE(smoke.left_out.empty());
  EXPECT_EQ(scenario_of(spec, smoke).faults.size(), 5U);
}

TEST(Smoke, LeavesOutWhatTheSpecCannotHaveAndSaysSo) {
  const JobSpec plain = job("hosts: 5", "");
  const drill::SmokeScenario smoke = drill::smoke_scenario(plain);
  EXPECT_EQ(smoke.left_out, std::vector<std::string>{"`power-loss`: the job has no spare (`launch.local.spares`)"});
  const drill::Scenario scenario = scenario_of(plain, smoke);
  EXPECT_EQ(faults_of(scenario), (std::vector<std::string>{"kill", "hang", "daemon-kill", "supervisor-kill"}));
  EXPECT_EQ(scenario.faults[1].lasts, Duration::seconds(3)) << "it is reported, and goes on";
  const JobSpec fragile =
      job("hosts: 6, spares: 1", "supervision: {hang: {action: restart}, restart: {max: 0}, reallocate: {max: 0}}\n");
  const drill::SmokeScenario less = drill::smoke_scenario(fragile);
  EXPECT_EQ(less.left_out.size(), 3U);
  EXPECT_EQ(faults_of(scenario_of(fragile, less)), (std::vector<std::string>{"daemon-kill", "supervisor-kill"}));
}

TEST(Smoke, WatchesForTenHeartbeatsAndKeepsToTheTimesOfTheSpec) {
  const JobSpec slow = job("hosts: 6, spares: 1",
                           "supervision: {heartbeat: 5s, suspect_after: 15s, lost_after: 20s, lease: 30s, hang: "
                           "{action: restart, phases: {step: 2s}}}\n");
  const drill::Scenario scenario = scenario_of(slow, drill::smoke_scenario(slow));
  EXPECT_EQ(scenario.control, Duration::seconds(50));
  EXPECT_EQ(scenario.faults[1].lasts, Duration::seconds(12));
}

}  // namespace
}  // namespace monarch
