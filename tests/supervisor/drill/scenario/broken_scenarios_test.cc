// Every broken/NAME.yaml is refused with exactly the words of broken/NAME.txt, as a scenario for the job whose spec is
// NAME.job, or default.job where there is none. To write the .txt files anew after a change of words:
// MONARCH_TEST_REGENERATE=1; then read the difference.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "supervisor/drill/scenario/check_scenario.h"
#include "supervisor/drill/scenario/read_scenario.h"
#include "supervisor/spec/spec.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

using drill::FaultTarget;
using drill::ScenarioOutcome;

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::filesystem::path> broken_scenarios() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(SCENARIO_TESTS "/broken")) {
    if (entry.path().extension() == ".yaml") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// As cli/args/selector.h would say it.
std::optional<std::string> target_problem(const FaultTarget& target) {
  if (target.host.empty() || target.host.starts_with("v")) return std::nullopt;
  return text("the job has no host `", target.host, "`");
}

// As cli/follow/line_pattern.h would.
std::optional<std::string> pattern_problem(const std::string& pattern) {
  const auto open = std::count(pattern.begin(), pattern.end(), '(');
  if (open != std::count(pattern.begin(), pattern.end(), ')')) return "a ( is never closed";
  return open == 1 ? std::nullopt : std::optional<std::string>("it has no group, and not one");
}

ScenarioOutcome read(const std::string& name, const std::string& yaml) {
  const drill::ScenarioSurroundings around{
      .home = "/home/u", .exists = [](const std::string&) { return false; }, .pattern_problem = pattern_problem};
  return drill::read_scenario({.name = name, .text = yaml, .directory = "/home/u/drills"}, around);
}

ScenarioOutcome judge(const std::filesystem::path& path, const std::string& yaml) {
  ScenarioOutcome outcome = read(path.filename().string(), yaml);
  auto job = path;
  job.replace_extension(".job");
  if (!std::filesystem::exists(job)) job.replace_filename("default.job");
  const SpecOutcome spec =
      load_spec({.name = job.filename().string(), .text = contents(job), .directory = "/home/u/job"});
  EXPECT_TRUE(spec.loaded) << path << render(spec);
  if (!spec.loaded) return outcome;
  drill::check_scenario(outcome, {.spec = spec.loaded->spec,
                                  .tree = &spec.loaded->tree,
                                  .sources = spec.sources,
                                  .target_problem = target_problem});
  return outcome;
}

TEST(BrokenScenarios, AreRefusedInTheseWords) {
  const bool regenerate = std::getenv("MONARCH_TEST_REGENERATE") != nullptr;
  const auto scenarios = broken_scenarios();
  ASSERT_GE(scenarios.size(), 30U);
  for (const auto& path : scenarios) {
    const ScenarioOutcome outcome = judge(path, contents(path));
    EXPECT_FALSE(outcome.scenario) << path;
    EXPECT_FALSE(outcome.diagnostics.empty()) << path;
    const std::string shown = drill::render(outcome);
    auto golden = path;
    golden.replace_extension(".txt");
    if (regenerate) std::ofstream(golden, std::ios::binary) << shown;
    EXPECT_EQ(shown, contents(golden)) << path;
  }
}

TEST(BrokenScenarios, CoverEveryErrorOfAScenario) {
  std::set<std::string> seen;
  for (const auto& path : broken_scenarios()) {
    for (const Diagnostic& d : judge(path, contents(path)).diagnostics) seen.insert(d.id);
  }
  for (const ErrorDoc& doc : all_errors()) {
    if (doc.id.starts_with("E05")) {
      EXPECT_TRUE(seen.contains(std::string(doc.id))) << doc.id;
    }
  }
}

TEST(BrokenScenarios, HavePlacesThatAreThere) {
  for (const auto& path : broken_scenarios()) {
    const ScenarioOutcome outcome = judge(path, contents(path));
    const auto is_there = [&](std::uint32_t source, std::uint32_t line) {
      const std::string& where = outcome.sources.at(source).text;
      return line <= static_cast<std::uint32_t>(std::count(where.begin(), where.end(), '\n') + 1);
    };
    for (const Diagnostic& d : outcome.diagnostics) {
      EXPECT_TRUE(is_there(d.source, d.line)) << path << d.message;
      if (d.other) {
        EXPECT_TRUE(is_there(d.other->source, d.other->line)) << path << d.message;
      }
      EXPECT_TRUE(d.other || d.source == 0 || d.id == "E0509") << path << ": of the spec alone";
    }
  }
}

// What is suggested for one value is taken in its place.
TEST(BrokenScenarios, LoseTheFaultWhereTheSuggestionIsWrittenInstead) {
  std::size_t tried = 0;
  for (const auto& path : broken_scenarios()) {
    const std::string yaml = contents(path);
    for (const Diagnostic& d : judge(path, yaml).diagnostics) {
      const bool meant = d.help.starts_with("did you mean `") && d.help.ends_with("`?");
      const bool works = d.help.starts_with("`") && d.help.ends_with("` would work");
      const bool elsewhere = d.id == "E0107" && d.help.find('.') != std::string::npos;
      if (d.line == 0 || d.length == 0 || elsewhere || !(meant || works)) continue;
      const std::size_t begin = d.help.find('`') + 1;
      const std::string instead = d.help.substr(begin, d.help.find('`', begin) - begin);
      std::size_t line = 0;
      for (std::uint32_t i = 1; i < d.line; ++i) line = yaml.find('\n', line) + 1;
      const std::size_t at = line + d.column - 1;
      if (yaml[at] == '{' || yaml[at] == '[') continue;
      ++tried;
      const auto left = judge(path, yaml.substr(0, at) + instead + yaml.substr(at + d.length)).diagnostics;
      const bool still = std::any_of(left.begin(), left.end(), [&](const Diagnostic& other) {
        return (other.id == d.id && other.line == d.line && other.column == d.column) || other.id < "E0100";
      });
      EXPECT_FALSE(still) << path << ": " << d.message << "\nhelp: " << d.help;
    }
  }
  EXPECT_GE(tried, 25U);
}

}  // namespace
}  // namespace monarch
