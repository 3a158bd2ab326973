#include "supervisor/workspace/wildmatch.h"

#include <gtest/gtest.h>

#include <string>

namespace monarch {
namespace {

struct Case {
  const char* pattern;
  const char* subject;
  bool path;
  bool name;
};

TEST(Wildmatch, ReadsPatternsAsGitDoes) {
  const Case cases[] = {
      {"foo", "foo", true, true},
      {"foo", "bar", false, false},
      {"", "", true, true},
      {"???", "foo", true, true},
      {"??", "foo", false, false},
      {"*", "foo", true, true},
      {"f*", "foo", true, true},
      {"*f", "foo", false, false},
      {"*ob*a*r*", "foobar", true, true},
      {"foo\\*", "foo*", true, true},
      {"foo\\*bar", "foobar", false, false},
      {"f\\\\oo", "f\\oo", true, true},
      {"foo\\", "foo\\", false, false},
      {"*[al]?", "ball", true, true},
      {"[ten]", "ten", false, false},
      {"t[a-g]n", "ten", true, true},
      {"t[!a-g]n", "ten", false, false},
      {"t[!a-g]n", "ton", true, true},
      {"t[^a-g]n", "ton", true, true},
      {"a[]]b", "a]b", true, true},
      {"a[]-]b", "a-b", true, true},
      {"a[]a-]b", "aab", true, true},
      {"]", "]", true, true},
      {"[", "[", false, false},
      {"[a", "a", false, false},
      {"foo*bar", "foo/baz/bar", false, true},
      {"foo**bar", "foo/baz/bar", false, true},
      {"foo/**/bar", "foo/baz/bar", true, true},
      {"foo/**/**/bar", "foo/b/a/z/bar", true, true},
      {"foo/**/bar", "foo/bar", true, false},
      {"foo?bar", "foo/bar", false, true},
      {"foo[/]bar", "foo/bar", false, true},
      {"f[^eiu][^eiu][^eiu][^eiu][^eiu]r", "foo/bar", false, true},
      {"**/foo", "foo", true, false},
      {"**/foo", "bar/baz/foo", true, true},
      {"*/foo", "bar/baz/foo", false, true},
      {"**/bar*", "deep/foo/bar/baz", false, true},
      {"**/bar/*", "deep/foo/bar/baz", true, true},
      {"**/bar/**", "deep/foo/bar/baz/x", true, true},
      {"*/bar/**", "deep/foo/bar/baz/x", false, true},
      {"[[:alpha:]][[:digit:]][[:upper:]]", "a1B", true, true},
      {"[[:digit:][:spaci:]]", "1", false, false},
      {"[[:xdigit:]]", "5", true, true},
      {"[a-c[:digit:]x-z]", "y", true, true},
      {"[\\-^]", "]", false, false},
      {"[\\]-a]", "^", true, true},
      {"[a-\\c]", "b", true, true},
      {"[,-.]", "-", true, true},
      {"-*-*-*-*-*-*-12-*-*-*-m-*-*-*", "-adobe-courier-bold-o-normal--12-120-75-75-m-70-iso8859-1", true, true},
      {"**/*a*b*g*n*t", "abcd/abcdefg/abcdefghijk/abcdefghijklmnop.txt", true, true},
      {"*X*i", "ab/cXd/efXg/hi", false, true},
      {"*/*X*/*/*i", "ab/cXd/efXg/hi", true, true},
      {"**/*X*/**/*i", "ab/cXd/efXg/hi", true, true},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(WildPattern(each.pattern, WildScope::kPath).matches(each.subject), each.path)
        << each.pattern << ' ' << each.subject;
    EXPECT_EQ(WildPattern(each.pattern, WildScope::kName).matches(each.subject), each.name)
        << each.pattern << ' ' << each.subject;
  }
}

TEST(Wildmatch, ManyStarsTakeNoLongTime) {
  std::string pattern;
  for (int i = 0; i < 60; ++i) pattern += "*a";
  const std::string subject(400, 'a');
  EXPECT_FALSE(WildPattern(pattern + "b", WildScope::kPath).matches(subject));
  EXPECT_FALSE(WildPattern(pattern + "b", WildScope::kName).matches(subject));
  EXPECT_TRUE(WildPattern(pattern, WildScope::kPath).matches(subject));
}

// 122 bytes of a hostile tree.
TEST(Wildmatch, ManyFoldersTakeNoLongTime) {
  std::string pattern;
  std::string subject;
  for (int i = 0; i < 40; ++i) pattern += "**/";
  for (int i = 0; i < 200; ++i) subject += "a/";
  EXPECT_FALSE(WildPattern(pattern + "ab", WildScope::kPath).matches(subject + "b"));
  EXPECT_TRUE(WildPattern(pattern + "b", WildScope::kPath).matches(subject + "b"));
  EXPECT_TRUE(WildPattern(pattern + "b", WildScope::kPath).matches("b"));
}

}  // namespace
}  // namespace monarch
