#include "supervisor/spec/yaml/yaml.h"

#include <gtest/gtest.h>

#include "transport/base/text.h"

namespace monarch {
namespace {

struct Read {
  std::optional<YamlNode> root;
  std::string ids;  // "E0004 2:3, …"
};

Read read(std::string_view source) {
  Report report("f", source);
  Read out;
  out.root = read_yaml(source, report);
  std::vector<std::string> ids;
  for (const Diagnostic& d : report.diagnostics()) ids.push_back(text(d.id, " ", d.line, ":", d.column));
  out.ids = join(ids, ", ");
  return out;
}

TEST(Yaml, KeepsScalarsAsTheyWereWritten) {
  const Read r = read("a: 010\nb: yes\nc: '0x1'\nd: 1e3\ne: \"t\\x41\"\nf: |\n  x\n  y\n");
  ASSERT_TRUE(r.root);
  EXPECT_EQ(r.ids, "");
  EXPECT_EQ(r.root->find("a")->text, "010");
  EXPECT_FALSE(r.root->find("a")->quoted);
  EXPECT_EQ(r.root->find("b")->text, "yes");
  EXPECT_EQ(r.root->find("c")->text, "0x1");
  EXPECT_TRUE(r.root->find("c")->quoted);
  EXPECT_EQ(r.root->find("d")->text, "1e3");
  EXPECT_EQ(r.root->find("e")->text, "tA");
  EXPECT_EQ(r.root->find("f")->text, "x\ny\n");
  EXPECT_TRUE(r.root->find("f")->quoted);
}

TEST(Yaml, KnowsWhereEverythingStands) {
  const Read r = read("a: {bb: [x, 'it''s'], c: \"q\\\"q\"}\nd:\n  - one two  # note\n");
  ASSERT_TRUE(r.root);
  const YamlNode& a = *r.root->find("a");
  EXPECT_EQ(r.root->find_key("a")->place, (Place{1, 1, 1}));
  EXPECT_EQ(a.place, (Place{1, 4, 1}));
  EXPECT_EQ(a.find_key("bb")->place, (Place{1, 5, 2}));
  EXPECT_EQ(a.find("bb")->items[0].place, (Place{1, 10, 1}));
  EXPECT_EQ(a.find("bb")->items[1].place, (Place{1, 13, 7}));
  EXPECT_EQ(a.find("c")->place, (Place{1, 26, 6}));
  EXPECT_EQ(r.root->find("d")->items[0].place, (Place{3, 5, 7}));
}

TEST(Yaml, TellsNothingFromAnEmptyText) {
  const Read r = read("a:\nb: ~\nc: null\nd: \"\"\ne: ''\nf: 'null'\n");
  ASSERT_TRUE(r.root);
  for (const char* key : {"a", "b", "c"}) EXPECT_TRUE(r.root->find(key)->is(YamlNode::Kind::kNothing)) << key;
  for (const char* key : {"d", "e", "f"}) EXPECT_TRUE(r.root->find(key)->is(YamlNode::Kind::kScalar)) << key;
}

TEST(Yaml, RefusesWhatHidesMeaning) {
  EXPECT_EQ(read("a: &x 1\n").ids, "E0004 1:4");
  EXPECT_EQ(read("a: *x\n").ids, "E0004 1:4");
  EXPECT_EQ(read("a: &x 1\nb: *x\n").ids, "E0004 1:4, E0004 2:4");
  EXPECT_EQ(read("a: !!str 1\n").ids, "E0005 1:4");
  EXPECT_EQ(read("a: ! 1\n").ids, "E0005 1:4");
  EXPECT_EQ(read("a: !<?> 1\n").ids, "E0005 1:4");
  EXPECT_EQ(read("a: !!map {}\n").ids, "E0005 1:4");
  EXPECT_EQ(read("a: !x [1]\n").ids, "E0005 1:4");
  EXPECT_EQ(read("a: !\n  b: 1\n").ids, "E0005 1:4");
  EXPECT_EQ(read("<<: {a: 1}\nb: 2\n").ids, "E0006 1:1");
  EXPECT_EQ(read("a: 1\na: 2\n").ids, "E0102 2:1");
  EXPECT_EQ(read("a: 1\n\"a\": 2\n").ids, "E0102 2:1");
  EXPECT_EQ(read("{a: 1, b: 2, a: 3}\n").ids, "E0102 1:14");
  EXPECT_EQ(read("a: 1\n---\nb: 2\n").ids, "E0007 2:1");
  EXPECT_EQ(read("%YAML 1.2\n---\na: 1\n").ids, "E0011 1:1");
  EXPECT_EQ(read("[a]: 1\n").ids, "E0104 1:1");
  EXPECT_EQ(read("? \n: 1\n").ids.substr(0, 5), "E0104");
}

TEST(Yaml, TakesQuotedAmpersandsStarsAndBangs) {
  const Read r = read("a: \"&x\"\nb: '*y'\nc: \"!z\"\n'<<': 1\n");
  EXPECT_EQ(r.ids, "");
  EXPECT_EQ(r.root->find("<<")->text, "1");
}

TEST(Yaml, RefusesBytesThatAreNoText) {
  using std::string_literals::operator""s;
  EXPECT_EQ(read("a: \xff\xfe\n").ids, "E0008 1:4");
  EXPECT_EQ(read("a: \xc0\xaf\n").ids, "E0008 1:4");
  EXPECT_EQ(read("a: \xed\xa0\x80\n").ids, "E0008 1:4");
  EXPECT_EQ(read("a: \xf4\x90\x80\x80\n").ids, "E0008 1:4");
  EXPECT_EQ(read("a: \xe6\x97").ids, "E0008 1:4");
  EXPECT_EQ(read("a: b\0c\n"s).ids, "E0008 1:5");
  EXPECT_EQ(read("a: 1\n\x04\nb: 2\n").ids, "E0008 2:1");  // the end of a file to yaml-cpp
  EXPECT_EQ(read("a: 1\rb: 2\n").ids, "E0008 1:5");
  EXPECT_EQ(read("a: 1\r\nb: 2\r\n").ids, "");
  EXPECT_EQ(read("a: é日𝄞\n").ids, "");
}

TEST(Yaml, ReadsBytesInBase64) {
  const Read r = read("a: !!binary Y2Fm6Q==\nb: !!binary \"Y2Fm\n  6Q==\"\nc: [!!binary /w==, d]\n");
  EXPECT_EQ(r.ids, "");
  EXPECT_EQ(r.root->find("a")->text, "caf\xe9");
  EXPECT_EQ(r.root->find("b")->text, "caf\xe9");
  EXPECT_EQ(r.root->find("c")->items[0].text, "\xff");
  EXPECT_EQ(r.root->find("a")->place, (Place{1, 4, 8}));
  EXPECT_EQ(read("a: !!binary caf\n").ids, "E0005 1:4");
  EXPECT_EQ(read("a: !!binary [x]\n").ids, "E0005 1:4");
  EXPECT_EQ(read("a: !!binary &x Y2Fm\n").ids, "E0004 1:4");
  EXPECT_EQ(read("!!binary /w==: 1\n").ids, "E0005 1:1, E0104 1:1");
}

TEST(Yaml, RefusesTabsAndEmptyFiles) {
  EXPECT_EQ(read("a:\n\tb: 1\n").ids, "E0009 2:1");
  EXPECT_EQ(read("a:\n  \tb: 1\n").ids, "E0009 2:3");
  EXPECT_EQ(read("a: 1\t# fine\n\t\n\t# fine\n").ids, "");
  EXPECT_EQ(read("").ids, "E0010 0:0");
  EXPECT_EQ(read("# nothing\n\n  \n").ids, "E0010 0:0");
}

TEST(Yaml, SaysWhereItStopsBeingYaml) {
  EXPECT_EQ(read("a: [1, 2\nb: 3\n").ids.substr(0, 7), "E0001 2");
  EXPECT_EQ(read("a: \"x\nb: 3\n").ids.substr(0, 5), "E0001");
  EXPECT_EQ(read("a: b: c\n").ids.substr(0, 7), "E0001 1");
  EXPECT_EQ(read("a: 1\n  b: 2\n").ids.substr(0, 7), "E0001 2");
  EXPECT_EQ(read("a: @x\n").ids.substr(0, 5), "E0001");
}

TEST(Yaml, DoesNotTakeTheEndOfTheFileForAClosingQuote) {
  EXPECT_EQ(read("a: 1\nb: \"x\n").ids, "E0001 2:4");
  EXPECT_EQ(read("a: 1\nb: 'it''s\nc: 3\n").ids, "E0001 2:4");
  EXPECT_EQ(read("a: 'x\n  y'\nb: \"x\n  y\\\"\"\n").ids, "");
}

TEST(Yaml, KeepsPlacesWithCarriageReturns) {
  const Read r = read("a: 1\r\nb: 'x'\r\nc: yy\r\n");
  EXPECT_EQ(r.root->find("b")->place, (Place{2, 4, 3}));
  EXPECT_EQ(r.root->find("c")->place, (Place{3, 4, 2}));
}

TEST(Yaml, IgnoresNothingThatIsWritten) {
  for (const char* source :
       {"a: 'x' y\n", "a: [x] y\n", "a: {x: 1} y\n", "[a] b\n", "{a: 1} b: 2\n", "a: 1\n}\n", "- a\nb: c\n",
        "a: 1\n...\nb: 2\n", "a: |x\n  y\n", "a: 1\n- b\n", "a:\n  - b\n  c: d\n", "a\nb: 1\n",
        "a: [b\nc: d]\ne: f ]\n", "a: {b: c, d\n", "a: \"x\" \"y\"\n", "a: 1 2: 3\n", "a: [b c: d e: f]\n"}) {
    EXPECT_FALSE(read(source).ids.empty()) << source;
  }
}

TEST(Yaml, NestsThirtyTwoLevelsDeep) {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']') + "\n"; };
  EXPECT_EQ(read(nested(32)).ids, "");
  EXPECT_EQ(read(nested(33)).ids, "E0003 1:33");
}

}  // namespace
}  // namespace monarch
