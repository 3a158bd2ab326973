#include "supervisor/core/spec/hostlist.h"

#include <gtest/gtest.h>

#include <random>

#include "transport/base/text.h"

namespace monarch {
namespace {

std::string expanded(std::string_view list) {
  const auto hosts = expand_hostlist(list);
  return hosts.ok() ? join(*hosts, " ") : "refused: " + hosts.error().message;
}

TEST(Hostlist, ExpandsRangesListsAndSeveralBrackets) {
  EXPECT_EQ(expanded("gpu7"), "gpu7");
  EXPECT_EQ(expanded("node[01-03,25],gpu7"), "node01 node02 node03 node25 gpu7");
  EXPECT_EQ(expanded("r[1-2]n[08-10].cluster"),
            "r1n08.cluster r1n09.cluster r1n10.cluster r2n08.cluster r2n09.cluster r2n10.cluster");
  EXPECT_EQ(expanded("n[9-11]"), "n9 n10 n11");
  EXPECT_EQ(expanded("n[099-101]"), "n099 n100 n101");
  EXPECT_EQ(expanded("n[00-10/5,3]x[1-2]"), "n00x1 n00x2 n05x1 n05x2 n10x1 n10x2 n3x1 n3x2");
}

TEST(Hostlist, RefusesWhatIsNoHost) {
  for (const char* list : {"",
                           ",",
                           "a,",
                           ",a",
                           "-oProxyCommand=x",
                           "a b",
                           "a;b",
                           "$(x)",
                           "a`b`",
                           "node[1-",
                           "node[]",
                           "node[a]",
                           "node[2-1]",
                           "node[1-2-3]",
                           "node[1,]",
                           "node]1[",
                           "a,a",
                           "n[1-2],n2",
                           ".a",
                           "node[1]]",
                           "[-1]",
                           "é",
                           "n[1234567890]",
                           "user@host",
                           "a/b",
                           "node[[1]]",
                           "node[1-4/0]",
                           "node[1-4/]",
                           "node[4/2]",
                           "node[1-4/1/2]",
                           "a\n",
                           "a\nb",
                           "a\tb",
                           "-",
                           "--",
                           "-lroot",
                           "a,-oProxyCommand=touch /tmp/x",
                           "[1-2]-oX=y",
                           "a|b",
                           "a&b",
                           "a>b",
                           "a\\b",
                           "a'b",
                           "a\"b",
                           "${HOME}",
                           "~root",
                           "../a",
                           "a*",
                           "a?",
                           "a%h",
                           "a=b",
                           "a:22",
                           "::1",
                           "a\x7f",
                           "a\x1b[m",
                           "#a",
                           "a#b",
                           "!a"}) {
    EXPECT_TRUE(expanded(list).starts_with("refused: ")) << list << " gave " << expanded(list);
  }
}

TEST(Hostlist, RefusesMoreThanAHundredThousandNames) {
  EXPECT_TRUE(expand_hostlist("n[1-100000]").ok());
  EXPECT_FALSE(expand_hostlist("n[0-100000]").ok());
  EXPECT_FALSE(expand_hostlist("n[1-1000][1-1000]").ok());
  EXPECT_FALSE(expand_hostlist("n[1-60000],m[1-60000]").ok());
  EXPECT_FALSE(expand_hostlist(std::string(250, 'a') + "[1-99999]").ok());
  EXPECT_EQ(expanded("n[1-1000000]"), "refused: `1-1000000` makes 1000000 names; a list has at most 100000");
  EXPECT_EQ(expanded("n[0-999999999]"), "refused: `0-999999999` makes 1000000000 names; a list has at most 100000");
  EXPECT_EQ(expanded("n[1-1000][1-1000]"),
            "refused: `n[1-1000][1-1000]` makes 1000000 names; a list has at most 100000");
  EXPECT_TRUE(expand_hostlist("n[0-999999999/10000]").ok());
}

TEST(Hostlist, RefusesAMillionNamesByArithmetic) {
  // Were they written out first, this would take gigabytes and minutes.
  for (int round = 0; round < 2000; ++round) {
    ASSERT_FALSE(expand_hostlist("n[000000000-999999999]").ok());
    ASSERT_FALSE(expand_hostlist("n[1-999999][1-999999][1-999999]").ok());
  }
}

TEST(Hostlist, RefusesANameThatIsTooLong) {
  EXPECT_TRUE(expand_hostlist(std::string(253, 'a')).ok());
  EXPECT_FALSE(expand_hostlist(std::string(254, 'a')).ok());
  EXPECT_FALSE(expand_hostlist(std::string("a\0b", 3)).ok());
}

std::string with_slots(std::string_view list) {
  const auto hosts = expand_slot_list(list);
  if (!hosts.ok()) return "refused: " + hosts.error().message;
  std::vector<std::string> shown;
  for (const HostSlots& host : *hosts) {
    shown.push_back(host.slots ? text(host.name, "=", *host.slots) : host.name);
  }
  return join(shown, " ");
}

TEST(SlotList, GivesEachHostOfAnItemItsSlots) {
  EXPECT_EQ(with_slots("a,b"), "a b");
  EXPECT_EQ(with_slots("a:4,node[01-02]:2,c"), "a=4 node01=2 node02=2 c");
  EXPECT_EQ(with_slots("a:65536"), "a=65536");
  for (const char* list : {"a:", "a:0", "a:x", "a:-1", "a:1:2", ":4", "a:4,a:2", "a:65537", "a:9999999999", "n[1-2:3]",
                           "::1", "a:0x4", "a: 4", "-oX:4"}) {
    EXPECT_TRUE(with_slots(list).starts_with("refused: ")) << list << " gave " << with_slots(list);
  }
}

TEST(Hostlist, FoldsToRuns) {
  EXPECT_EQ(fold_hostlist({}), "");
  EXPECT_EQ(fold_hostlist({"gpu7"}), "gpu7");
  EXPECT_EQ(fold_hostlist({"node01", "node02", "node03", "node25", "gpu7"}), "node[01-03,25],gpu7");
  EXPECT_EQ(fold_hostlist({"n9", "n10", "n11"}), "n[9-11]");
  EXPECT_EQ(fold_hostlist({"n09", "n10", "a", "n11"}), "n[09-10],a,n11");
  EXPECT_EQ(fold_hostlist({"head", "head2"}), "head,head2");
}

TEST(Hostlist, FoldAndExpandAreInverse) {
  const unsigned seed = 20'260'731;
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> names;
    const auto count = 1 + random() % 12;
    for (unsigned i = 0; i < count; ++i) {
      const char* stem = random() % 2 == 0 ? "n" : "gpu-";
      const std::string number = text(random() % 120);
      std::string name =
          stem + (random() % 3 == 0 ? std::string(3 - std::min<std::size_t>(3, number.size()), '0') : "") + number;
      if (random() % 5 == 0) name = stem + std::string("x");
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
    }
    const auto back = expand_hostlist(fold_hostlist(names));
    ASSERT_TRUE(back.ok()) << "seed " << seed << ": " << fold_hostlist(names) << ": " << back.error().message;
    ASSERT_EQ(*back, names) << "seed " << seed << ": " << fold_hostlist(names);
  }
}

}  // namespace
}  // namespace monarch
