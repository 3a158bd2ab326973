#include "supervisor/spec/schema/schema.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "supervisor/spec/check/check_value.h"
#include "tests/supervisor/spec/spec_text.h"

namespace monarch {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string parent_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return std::string(dot == std::string_view::npos ? "" : path.substr(0, dot));
}

TEST(Schema, HasEachPathOnceBelowARowThatTakesChildren) {
  std::set<std::string_view> seen;
  for (const KeyRow& row : spec_schema().rows()) {
    EXPECT_TRUE(seen.insert(row.path).second) << row.path;
    EXPECT_EQ(spec_schema().find_row(row.path), &row) << row.path;
    const std::string parent = parent_of(row.path);
    if (parent.empty()) continue;
    const KeyRow* above = spec_schema().find_row(parent);
    ASSERT_NE(above, nullptr) << row.path;
    const bool takes = above->type == ValueType::kMap || above->type == ValueType::kNamedMap ||
                       above->type == ValueType::kList || above->or_map;
    EXPECT_TRUE(takes) << row.path;
  }
}

TEST(Schema, HasARowForTheItemsOfEachListAndNamedMap) {
  for (const KeyRow& row : spec_schema().rows()) {
    if (row.type == ValueType::kList) {
      EXPECT_NE(spec_schema().find_row(text(row.path, ".[]")), nullptr) << row.path;
    }
    const bool known_keys_only = row.path == "supervision.hang.phases";
    if (row.type == ValueType::kNamedMap && !known_keys_only) {
      EXPECT_NE(spec_schema().find_row(text(row.path, ".*")), nullptr) << row.path;
    }
  }
}

TEST(Schema, DocumentsEveryKeyInOneLine) {
  for (const KeyRow& row : spec_schema().rows()) {
    if (row.path.ends_with("*") || row.path.ends_with("[]")) continue;
    EXPECT_FALSE(row.doc.empty()) << row.path;
    EXPECT_LT(row.doc.size(), 110U) << row.path;
    EXPECT_EQ(row.doc.find('\n'), std::string_view::npos) << row.path;
  }
}

TEST(Schema, GivesDefaultsThatItWouldTakeAndThatAreBuilt) {
  for (const KeyRow& row : spec_schema().rows()) {
    if (row.default_value.empty()) continue;
    Report report("default", row.default_value);
    const auto node = read_yaml(row.default_value, report);
    ASSERT_TRUE(node) << row.path;
    if (node->is(YamlNode::Kind::kScalar)) check_scalar(*node, row, std::string(row.path), report);
    EXPECT_TRUE(report.diagnostics().empty()) << row.path << ": " << render(report.diagnostics(), row.default_value);
    EXPECT_TRUE(is_built(spec_schema(), *node, row)) << row.path;
    EXPECT_FALSE(row.required) << row.path;
  }
}

TEST(Schema, FindsTheSupervisionOfAMeshWhereItIsDescribed) {
  EXPECT_EQ(spec_schema().find_row("meshes.*.supervision.restart.max"),
            spec_schema().find_row("supervision.restart.max"));
  EXPECT_EQ(spec_schema().find_child("meshes.*.supervision", "lease"), spec_schema().find_row("supervision.lease"));
  EXPECT_EQ(spec_schema().keys_below("meshes.*.supervision"), spec_schema().keys_below("supervision"));
  EXPECT_EQ(spec_schema().find_child("meshes.*.env", "A"), spec_schema().find_row("meshes.*.env.*"));
  EXPECT_EQ(spec_schema().find_child("", "nonsense"), nullptr);
  EXPECT_EQ(spec_schema().find_child("", "supervision.lease"), nullptr);
  EXPECT_EQ(spec_schema().find_child("meshes", "*"), spec_schema().find_row("meshes.*"));
}

TEST(Reference, LoadsWithoutAnError) {
  const auto source = read_spec_file(CONFIGS "/reference.yaml");
  ASSERT_TRUE(source.ok()) << source.error().message;
  const SpecOutcome outcome = load_spec(*source);
  EXPECT_TRUE(outcome.loaded) << render(outcome.diagnostics, source->text);
}

TEST(Reference, ShowsEveryKeyWithItsDefault) {
  const std::string reference = contents(CONFIGS "/reference.yaml");
  for (const KeyRow& row : spec_schema().rows()) {
    const std::string_view key = row.path.substr(row.path.rfind('.') + 1);
    if (key == "*" || key == "[]") continue;
    EXPECT_NE(reference.find(text(key, ":")), std::string::npos) << row.path << " is not in configs/reference.yaml";
    if (row.default_value.empty()) continue;
    EXPECT_NE(reference.find(text(key, ": ", row.default_value)), std::string::npos)
        << row.path << " is not shown with its default " << row.default_value;
  }
}

TEST(Reference, SaysWhatASpecWithoutItWouldMean) {
  const auto source = read_spec_file(CONFIGS "/reference.yaml");
  ASSERT_TRUE(source.ok());
  const SpecOutcome whole = load_spec(*source);
  const SpecOutcome bare =
      load_text("version: 1\njob: reference\nmeshes: {trainer: {dims: {host: 2, gpu: 2}, program: [/bin/true]}}\n");
  ASSERT_TRUE(whole.loaded && bare.loaded);
  JobSpec a = whole.loaded->spec;
  JobSpec b = bare.loaded->spec;
  a.directory = b.directory;
  EXPECT_TRUE(a == b);
  for (const std::string& note : whole.loaded->notes) {
    EXPECT_NE(join(bare.loaded->notes, "\n").find(note), std::string::npos) << note;
  }
}

}  // namespace
}  // namespace monarch
