#include "supervisor/drill/scenario/drill_schema.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "supervisor/drill/core/faults.h"
#include "supervisor/drill/scenario/read_scenario.h"
#include "supervisor/spec/check/check_value.h"
#include "supervisor/spec/schema/explain.h"
#include "supervisor/spec/schema/json_schema.h"
#include "transport/base/json.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

using drill::drill_schema;

bool is_named(std::string_view path) { return !path.ends_with("[]"); }

TEST(DrillSchema, HasARowAboveEachRowAndADocumentAndAnExampleForEachName) {
  std::set<std::string_view> seen;
  for (const KeyRow& row : drill_schema().rows()) {
    EXPECT_TRUE(seen.insert(row.path).second) << row.path;
    EXPECT_EQ(drill_schema().find_row(row.path), &row);
    const std::size_t dot = row.path.rfind('.');
    if (dot != std::string_view::npos) {
      EXPECT_TRUE(seen.contains(row.path.substr(0, dot))) << row.path;
    }
    if (!is_named(row.path)) continue;
    EXPECT_FALSE(row.doc.empty()) << row.path;
    EXPECT_LT(row.doc.size(), 110U) << row.path;
    EXPECT_NE(drill_schema().find_help(row.path), nullptr) << row.path << " has no example";
  }
  for (const KeyHelp& help : drill_schema().parts().help)
    EXPECT_NE(drill_schema().find_row(help.path), nullptr) << help.path;
}

TEST(DrillSchema, HasDefaultsAndExamplesThatItTakes) {
  for (const KeyRow& row : drill_schema().rows()) {
    const KeyHelp* const help = drill_schema().find_help(row.path);
    for (const std::string_view written : {row.default_value, help == nullptr ? std::string_view() : help->example}) {
      if (written.empty()) continue;
      Report report("value", written);
      const auto node = read_yaml(written, report);
      ASSERT_TRUE(node) << row.path;
      if (node->is(YamlNode::Kind::kScalar)) check_scalar(*node, row, std::string(row.path), report);
      EXPECT_FALSE(report.failed()) << row.path << render(report.diagnostics(), written);
    }
  }
}

TEST(DrillSchema, MeansFaultsThatThereAreByTheWordsOfOthers) {
  const KeyRow& row = *drill_schema().find_row("faults.[].fault");
  const std::vector<std::string> pairs = split_words(row.meant);
  EXPECT_GE(pairs.size(), 20U);
  for (const std::string& pair : pairs) {
    const std::string theirs = pair.substr(0, pair.find('='));
    EXPECT_EQ(drill::find_fault(theirs), nullptr) << theirs << " is a fault of its own";
    EXPECT_NE(drill::find_fault(word_meant(row, theirs)), nullptr) << pair;
  }
  for (const Synonym& synonym : drill_schema().parts().synonyms)
    EXPECT_NE(drill_schema().find_row(synonym.ours), nullptr) << synonym.theirs;
}

TEST(DrillSchema, IsExplainedWithoutTheIndexOfItsList) {
  EXPECT_EQ(find_key(drill_schema(), "faults.for")->row_path, "faults.[].for");
  EXPECT_EQ(find_key(drill_schema(), "faults.[0].target.mesh")->row_path, "faults.[].target.mesh");
  EXPECT_EQ(find_key(drill_schema(), "faults")->row_path, "faults");
  EXPECT_FALSE(find_key(drill_schema(), "faults.lasts"));
  EXPECT_EQ(suggest_keys(drill_schema(), "faults.lasts"), "did you mean `drill.faults.[].for`?");
  EXPECT_EQ(suggest_keys(drill_schema(), "contrl"), "did you mean `drill.control`?");
  EXPECT_EQ(example_text(drill_schema(), "faults.[].target.mesh"), "faults:\n  - target:\n      mesh: trainer\n");
  EXPECT_EQ(takes_text(drill_schema(), *drill_schema().find_row("faults.[].every")),
            "a duration such as 500ms, 1.5s or 1h30m; from 100ms to 1d");
}

TEST(DrillSchema, IsAJsonSchemaWithOneTimeForEachFault) {
  const std::string written = json_schema(drill_schema());
  EXPECT_TRUE(parse_json(written).ok());
  EXPECT_NE(written.find("\"title\": \"a scenario of monarch\""), std::string::npos);
  EXPECT_NE(written.find("monarch explain drill"), std::string::npos);
  EXPECT_NE(written.find("\"oneOf\""), std::string::npos);
}

std::string reference() {
  std::ifstream file(CONFIGS "/drills/reference.yaml", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(DrillReference, IsTaken) {
  const drill::ScenarioOutcome outcome =
      drill::read_scenario({.name = "reference.yaml", .text = reference(), .directory = "/"});
  EXPECT_TRUE(outcome.scenario) << drill::render(outcome);
}

TEST(DrillReference, ShowsEveryKeyWithItsDefaultAndEachWordOfFew) {
  const std::string written = reference();
  for (const KeyRow& row : drill_schema().rows()) {
    const std::string_view key = row.path.substr(row.path.rfind('.') + 1);
    if (key == "[]") continue;
    EXPECT_NE(written.find(text(key, ":")), std::string::npos) << row.path;
    if (!row.default_value.empty()) {
      EXPECT_NE(written.find(text(key, ": ", row.default_value)), std::string::npos) << row.path;
    }
    const std::vector<std::string> words = split_words(row.words);
    if (words.size() > 4) continue;
    for (const std::string& word : words) EXPECT_NE(written.find(word), std::string::npos) << row.path << ": " << word;
  }
}

}  // namespace
}  // namespace monarch
